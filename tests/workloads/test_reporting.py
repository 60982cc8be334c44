"""Clock, scores and reporter: what a step line says of its steps."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from gpuwatch.workloads import clock as clocks
from gpuwatch.workloads import reporter as reporting
from gpuwatch.workloads.clock import PHASES, CpuClock, CudaClock
from gpuwatch.workloads.lines import emit
from gpuwatch.workloads.reporter import Reporter, Result, ScoreReader, Step, accuracy

from .conftest import parse

pytestmark = pytest.mark.torch

CPU = torch.device("cpu")
Report = Callable[..., tuple[list[Any], Reporter]]


def test_phases_add_up_to_their_step_and_steps_touch() -> None:
    clock = CpuClock()
    before = time.monotonic_ns()
    clock.start()
    for _ in range(3 * len(PHASES)):
        clock.mark()
    timings = clock.finished(wait=False)
    assert len(timings) == 3
    for timing in timings:
        assert sum(timing.phases) == pytest.approx(timing.seconds, abs=1e-9)
    total = sum(timing.seconds for timing in timings)
    assert before <= timings[-1].end_ns - total * 1e9 <= timings[-1].end_ns <= time.monotonic_ns()
    assert clock.finished(wait=True) == []


def test_a_step_that_is_under_way_is_not_finished() -> None:
    clock = CpuClock()
    clock.start()
    for _ in range(len(PHASES) + 2):
        clock.mark()
    assert len(clock.finished(wait=True)) == 1
    for _ in range(3):
        clock.mark()
    assert len(clock.finished(wait=False)) == 1


class Stream:
    """A device that runs one mark every ``pace`` milliseconds, only when it is let run."""

    def __init__(self, pace: float) -> None:
        self.pace = pace
        self.time = 0.0
        self.queue: deque[Event] = deque()
        self.waits = 0

    def run(self, marks: int) -> None:
        for _ in range(min(marks, len(self.queue))):
            self.time += self.pace
            self.queue.popleft().at = self.time


class Event:
    stream: Stream

    def __init__(self, **_: Any) -> None:
        self.at: float | None = None

    def record(self, _stream: Any) -> None:
        self.at = None
        self.stream.queue.append(self)

    def query(self) -> bool:
        return self.at is not None

    def synchronize(self) -> None:
        self.stream.waits += 1
        while self.at is None:
            self.stream.run(1)

    def elapsed_time(self, other: Event) -> float:
        assert self.at is not None and other.at is not None
        return other.at - self.at


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> Stream:
    stream = Stream(pace=1.0)
    monkeypatch.setattr(Event, "stream", stream, raising=False)
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _device: stream)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda _device: stream.run(10**6))
    return stream


def marks(clock: clocks.Clock, steps: int) -> None:
    for _ in range(steps * len(PHASES)):
        clock.mark()


def test_on_a_gpu_only_steps_that_the_device_has_finished_are_given(stream: Stream) -> None:
    clock = CudaClock(torch.device("cuda"))
    clock.start()
    marks(clock, 3)
    assert clock.finished(wait=False) == []
    stream.run(1 + 2 * len(PHASES))
    assert [timing.seconds for timing in clock.finished(wait=False)] == pytest.approx([0.005] * 2)
    (last,) = clock.finished(wait=True)
    assert last.phases == pytest.approx((0.001,) * 5)


def test_on_a_gpu_no_short_step_waits_for_the_device(stream: Stream) -> None:
    clock = CudaClock(torch.device("cuda"))
    clock.start()
    for _ in range(50):
        marks(clock, 1)
        stream.run(4)
        clock.finished(wait=False)
    assert stream.waits == 0
    assert len(clock.finished(wait=True)) > 5


def test_on_a_gpu_a_long_step_is_waited_for_one_step_late(stream: Stream) -> None:
    stream.pace = 40.0
    clock = CudaClock(torch.device("cuda"))
    clock.start()
    marks(clock, 1)
    clock.finished(wait=True)
    marks(clock, 2)
    assert len(clock.finished(wait=False)) == 1
    assert len(stream.queue) == len(PHASES)


def results(classes: int, *sizes: int) -> list[Result]:
    return [
        Result(torch.rand(()), torch.randn(n, classes), torch.randint(classes, (n,))) for n in sizes
    ]


@pytest.mark.parametrize("sizes", [(8, 8, 8), (8, 8, 3)])
def test_accuracies_of_many_steps_are_those_of_each(sizes: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    steps = results(10, *sizes)
    for step, (acc1, acc5) in zip(steps, accuracy(steps), strict=True):
        assert step.scores is not None and step.labels is not None
        first = (step.scores.argmax(1) == step.labels).float().mean()
        best = step.scores.topk(5).indices
        fifth = (best == step.labels[:, None]).any(1).float().mean()
        assert acc1 == pytest.approx(first.item())
        assert acc5 == pytest.approx(fifth.item())


def test_top_five_of_fewer_classes_means_nothing() -> None:
    assert accuracy(results(4, 8))[0][1] is None


def test_the_logits_of_two_classes_are_right_by_their_sign() -> None:
    step = Result(
        torch.rand(()), torch.tensor([2.0, -1.0, 3.0, -4.0]), torch.tensor([1.0, 0, 0, 0])
    )
    assert accuracy([step]) == [(0.75, None)]


def test_a_step_without_scores_has_a_loss_and_no_accuracy() -> None:
    (score,) = ScoreReader(CPU).read([Result(torch.tensor(1.5), None, None)])
    assert score == (1.5, None, None)


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Report:
    """Report steps of so many seconds each, by a clock of the test's own."""
    now = 0.0
    monkeypatch.setattr(reporting, "time", SimpleNamespace(perf_counter=lambda: now))

    def run(steps: int, seconds: float, warmup: bool = False) -> tuple[list[Any], Reporter]:
        nonlocal now
        clock = CpuClock()
        reporter = Reporter(clock, ScoreReader(CPU), steps, warmup=warmup)
        clock.start()
        for number in range(1, steps + 1):
            for _ in PHASES:
                clock.mark()
            now += seconds
            result = Result(torch.tensor(float(number)), torch.eye(10), torch.arange(10))
            epoch = number // 4 if number % 4 == 0 else None
            reporter.step(Step(7 if number == 3 else 10, number == 3, result, epoch))
        return parse(capsys.readouterr().out)[0], reporter

    return run


def test_every_step_is_in_one_line_once(report: Report) -> None:
    events, reporter = report(400, 0.001)
    lines = [e for e in events if e["event"] == "step"]
    assert [loss for line in lines for loss in line["loss"]] == [float(n) for n in range(1, 401)]
    assert sum(line["count"] for line in lines) == reporter.reported == 400
    for line in lines:
        assert len(line["seconds"]) == len(line["acc1"]) == line["count"]
        assert sum(line["phases"].values()) == pytest.approx(sum(line["seconds"]), abs=1e-6)
    assert lines[-1]["step"] == lines[-1]["total_steps"] == 400
    assert [line.get("partial") for line in lines if "partial" in line] == [[3]]
    assert sum(line["samples"] for line in lines) == 3997


def test_lines_come_five_times_a_second(report: Report) -> None:
    events, _ = report(110, 1 / 128)
    assert [e["step"] for e in events if e["event"] == "step"] == [*range(1, 110, 26), 110]


def test_the_first_and_the_last_step_are_reported_at_once(report: Report) -> None:
    events, _ = report(20, 0.0001)
    assert [e["count"] for e in events if e["event"] == "step"] == [1, 19]


def test_a_step_of_a_tenth_of_a_second_has_its_own_line(report: Report) -> None:
    events, _ = report(4, 0.105)
    assert [e["count"] for e in events if e["event"] == "step"] == [1, 1, 1, 1]


def test_the_last_epoch_is_reported_and_short_ones_between_are_not(report: Report) -> None:
    events, _ = report(40, 0.0001)
    epochs = [e for e in events if e["event"] == "epoch"]
    assert [epoch["epoch"] for epoch in epochs] == [1, 10]
    assert epochs[-1]["loss"] == pytest.approx(38.5)


def test_an_epochs_loss_is_weighted_by_samples(report: Report) -> None:
    events, _ = report(4, 0.0001)
    (epoch,) = [e for e in events if e["event"] == "epoch"]
    assert epoch["loss"] == pytest.approx((10 * 1 + 10 * 2 + 7 * 3 + 10 * 4) / 37)


def test_warmup_steps_are_flagged_and_have_no_epochs(report: Report) -> None:
    events, _ = report(8, 0.0001, warmup=True)
    assert all(event["event"] == "step" and event["warmup"] for event in events)


def test_a_loss_that_diverged_is_null(capsys: pytest.CaptureFixture[str]) -> None:
    emit("step", loss=[1.0, float("nan"), float("inf")], nested={"a": float("-inf")})
    events, _ = parse(capsys.readouterr().out)
    assert events == [{"event": "step", "loss": [1.0, None, None], "nested": {"a": None}}]
