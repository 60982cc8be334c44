"""The clocks of the hook, with a GPU whose work takes as long as the test says."""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest

from gpuwatch.hook.gpuwatch_hook.clocks import (
    BACKWARD,
    EVALUATION,
    EVENTS,
    FORWARD,
    HOST,
    MEAN,
    OTHER,
    CpuClock,
    CudaClock,
    Timing,
)

MS = 1_000_000


@dataclass
class Gpu:
    """Stands in for ``torch.cuda``: what is launched runs after what was launched before."""

    now: int = 1_000 * MS
    """The host's clock."""
    busy_until: int = 0
    capturing: bool = False
    holds_ms: float = math.inf
    """Work of so long may wait in its queue; who launches more waits."""
    record_ms: float = 0
    waited: int = 0
    calls: Counter[str] = field(default_factory=Counter)

    def launch(self, ms: float) -> None:
        self.busy_until = max(self.busy_until, self.now) + round(ms * MS)

    def host(self, ms: float) -> None:
        self.now += round(ms * MS)

    def wait_for_room(self) -> int:
        before = self.now
        if self.holds_ms < math.inf:
            self.now = max(self.now, self.busy_until - round(self.holds_ms * MS))
        return self.now - before

    def synchronize(self) -> None:
        self.now = max(self.now, self.busy_until)

    def current_stream(self, device: Any) -> None:
        assert not self.capturing

    def is_current_stream_capturing(self) -> bool:
        return self.capturing

    def Event(self, *, enable_timing: bool) -> Event:
        assert enable_timing
        return Event(self)


class Event:
    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.at = 0

    def _call(self, name: str) -> None:
        assert not self.gpu.capturing, "it would become a part of the graph, or break it"
        self.gpu.calls[name] += 1

    def record(self, stream: None) -> None:
        self._call("record")
        self.gpu.host(self.gpu.record_ms)
        self.gpu.waited += self.gpu.wait_for_room()
        self.at = max(self.gpu.now, self.gpu.busy_until)

    def query(self) -> bool:
        self._call("query")
        return self.at <= self.gpu.now

    def synchronize(self) -> None:
        self._call("synchronize")
        self.gpu.now = max(self.gpu.now, self.at)

    def elapsed_time(self, later: Event) -> float:
        self._call("elapsed_time")
        assert later.at <= self.gpu.now, "it is not over"
        return (later.at - self.at) / MS


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    made = Gpu()
    monkeypatch.setattr(time, "monotonic_ns", lambda: made.now)
    monkeypatch.setattr(time, "thread_time_ns", lambda: made.now)  # a driver that waits spins
    return made


@pytest.fixture
def clock(gpu: Gpu) -> CudaClock:
    return CudaClock(gpu, None, CpuClock())


def milliseconds(ended: list[Timing]) -> list[float]:
    return [round(each.ns / MS, 6) for each in ended]


def test_phases_are_the_devices_although_the_host_runs_ahead(gpu: Gpu, clock: CudaClock) -> None:
    for _ in range(5):
        for phase, ms in ((FORWARD, 10), (BACKWARD, 20), (OTHER, 1)):
            clock.enter(phase)
            gpu.launch(ms)
            gpu.host(0.1)
        clock.end_step(sample=True)
    assert clock.finished() == []
    gpu.synchronize()
    ended = clock.finished()
    assert [each.phases[FORWARD] for each in ended] == [10 * MS] * 5
    assert [each.phases[BACKWARD] for each in ended] == [20 * MS] * 5
    assert milliseconds(ended) == [31] * 5
    assert {(each.sampled, each.by) for each in ended} == {(True, EVENTS)}
    assert ended[-1].end_ns <= gpu.now
    assert gpu.calls["synchronize"] == 0, "nothing waits"


def test_one_event_is_enough_for_the_time_of_a_step(gpu: Gpu, clock: CudaClock) -> None:
    clock.end_step(sample=False)
    before = gpu.calls["record"]
    for ms in (3, 1, 2):
        clock.enter(FORWARD)
        gpu.launch(ms)
        clock.enter(BACKWARD)
        clock.end_step(sample=False)
    assert gpu.calls["record"] - before == 3
    gpu.synchronize()
    ended = clock.finished()[1:]
    assert milliseconds(ended) == [3, 1, 2]
    assert {(each.sampled, each.by) for each in ended} == {(False, EVENTS)}


def steps(gpu: Gpu, clock: CudaClock, of: Any, count: int, every: int) -> list[Timing]:
    """``count`` steps of which some are sampled; ``of(number)`` does the work of one."""
    clock.ends = False
    for number in range(1, count + 1):
        clock.enter(FORWARD)
        of(number)
        clock.end_step(sample=number % every == 0)
    gpu.synchronize()
    return clock.finished()


def test_between_two_events_the_hosts_clock_counts_where_it_agrees(
    gpu: Gpu, clock: CudaClock
) -> None:
    def launch_bound(number: int) -> None:
        gpu.launch(1 + number % 3)
        gpu.synchronize()  # as a program that reads its loss

    ended = steps(gpu, clock, launch_bound, 81, 9)
    assert [each.sampled for each in ended] == [n % 9 == 1 for n in range(1, len(ended) + 1)]
    known = ended[28:]  # it was compared in the sampled ones before
    assert milliseconds(known) == [1 + n % 3 for n in range(29, len(ended) + 1)]
    assert {each.by for each in known} == {HOST, EVENTS}
    assert {each.by for each in ended[:19]} == {MEAN, EVENTS}


def test_where_the_host_runs_ahead_a_step_has_the_mean_of_its_neighbours(
    gpu: Gpu, clock: CudaClock
) -> None:
    def ahead(number: int) -> None:
        gpu.launch(2)
        gpu.host(0.1)
        if number % 10 == 0:
            gpu.synchronize()

    ended = steps(gpu, clock, ahead, 101, 7)
    assert milliseconds(ended[1:]) == pytest.approx([2] * (len(ended) - 1))
    assert {each.by for each in ended if not each.sampled} == {MEAN}
    assert sum(each.ns for each in ended) == pytest.approx(2 * MS * len(ended))


def test_the_last_steps_without_an_event_are_told_at_the_end(gpu: Gpu, clock: CudaClock) -> None:
    def work(number: int) -> None:
        gpu.launch(2)
        gpu.synchronize()

    ended = steps(gpu, clock, work, 12, 5)
    gpu.host(500)
    ended += clock.finished(wait=True)
    assert milliseconds(ended) == [2] * 12


def test_the_last_steps_are_waited_for_at_the_end(gpu: Gpu, clock: CudaClock) -> None:
    clock.ends = False
    for _ in range(12):
        clock.enter(FORWARD)
        gpu.launch(2)
        clock.end_step(sample=False)
    gpu.host(0.5)
    assert milliseconds(clock.finished(wait=True)) == [2] * 12


def test_an_evaluation_is_apart_also_where_no_step_is_sampled(gpu: Gpu, clock: CudaClock) -> None:
    def work(number: int) -> None:
        if number in (5, 8):
            before = clock.enter(EVALUATION)
            gpu.launch(30)
            clock.enter(before)
        gpu.launch(2)
        gpu.synchronize()

    ended = steps(gpu, clock, work, 31, 10)
    assert [each.phases[EVALUATION] / MS for each in ended if each.phases[EVALUATION]] == [30, 30]
    assert sum(milliseconds(ended)) == pytest.approx(2 * len(ended))


def test_nothing_is_asked_of_the_device_while_a_graph_is_recorded(
    gpu: Gpu, clock: CudaClock
) -> None:
    ended: list[Timing] = []
    for capturing in (False, True, False, False):
        gpu.capturing = capturing
        clock.enter(FORWARD)
        gpu.host(1)
        clock.enter(BACKWARD)
        clock.end_step(sample=True)
        ended += clock.finished()
    assert [each.sampled for each in ended][-1] and not all(each.sampled for each in ended)
    assert sum(milliseconds(ended)) == 4


def test_an_event_is_asked_for_only_when_steps_are_told(gpu: Gpu, clock: CudaClock) -> None:
    for _ in range(100):
        clock.enter(FORWARD)
        gpu.launch(1)
        clock.end_step(sample=True)
    assert not {"query", "elapsed_time", "synchronize"} & gpu.calls.keys()
    assert clock.finished() == [] and gpu.calls["query"] == 2, "the first is over, the second not"


def test_a_call_that_waits_for_room_in_the_queue_costs_the_program_nothing(gpu: Gpu) -> None:
    gpu.record_ms, gpu.holds_ms = 0.001, 30
    clock = CudaClock(gpu, None, CpuClock())
    for _ in range(20):
        for phase, ms in ((FORWARD, 10), (BACKWARD, 20)):
            clock.enter(phase)
            gpu.launch(ms)
        clock.end_step(sample=True)
    assert clock.waited == gpu.waited > 300 * MS
