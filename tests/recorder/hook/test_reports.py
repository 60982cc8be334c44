"""From the lines of hooked processes to the rows of a session: one process, several ranks."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.analysis.summary.summary import summarise
from gpuwatch.analysis.summary.training import training_of
from gpuwatch.core.models import Output
from gpuwatch.recorder.hook.channel import Channel
from gpuwatch.recorder.hook.reports import EVALUATION_NS, HELD_NS, PATIENCE_NS, Before, HookReports
from gpuwatch.recorder.output.intake import Intake
from gpuwatch.report.export.session_tables import steps as steps_table
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.rows import mean_phases
from gpuwatch.session.writing.store import SessionStore
from tests.reading import meta

BASE = 1_000
SECOND = 1_000_000_000


class Run:
    """A run whose processes report what the test says; its session can be read at the end."""

    def __init__(
        self, tmp_path: Path, before: Before | None = None, options: Sequence[str] = ()
    ) -> None:
        self.folder = tmp_path / "hook"
        self.folder.mkdir(exist_ok=True)
        self.path = tmp_path / "s.gpuwatch"
        if before is None:
            SessionStore.create(self.path, []).close()
        self.store = SessionStore.reopen(self.path)
        self.intake = Intake(BASE)
        given = {"given": True, "sha256": None, "options": [*options], "processes": 0, "text": None}
        self.hook = HookReports(Channel(self.folder), self.intake, BASE, given, before)

    def tell(self, process: str, **keys: Any) -> None:
        with (self.folder / process).open("a") as file:
            file.write(json.dumps(keys) + "\n")

    def begin(self, process: str, rank: int | None = None, of: int | None = None) -> None:
        world = {"rank": rank, "local_rank": rank, "world_size": of, "local_world_size": of}
        self.tell(process, event="hook", version=1, pid=4000 + (rank or 0), **world)

    def steps(self, process: str, last: int, *seconds: float, **keys: Any) -> None:
        """A line of steps of these seconds, up to step ``last`` that ends at ``last`` s."""
        self.tell(
            process,
            event="step",
            step=last,
            count=len(seconds),
            seconds=list(seconds),
            samples=8 * len(seconds),
            monotonic_ns=BASE + last * SECOND,
            **keys,
        )

    def printed(self, text: str, t: float) -> None:
        self.store.write(
            self.intake.take([Output(BASE + int(t * SECOND), "stdout", text.encode())])
        )

    def look(self, t: float) -> None:
        self.store.write(self.hook.look(int(t * SECOND)))

    def end(self, t: float, *, killed: bool = False) -> SessionReader:
        at = int(t * SECOND)
        self.store.write([*self.hook.finish(at), *self.intake.finish(at, killed=killed)])
        self.store.close()
        return SessionReader(self.path)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_the_gpus_that_a_process_used_are_the_run_s_without_a_step_too(run: Run) -> None:
    run.begin("a")
    run.tell("a", event="gpus", device_uuid=["GPU-1", 7, "GPU-2"])
    run.tell("a", event="gpus", device_uuid="GPU-3")
    run.end(1.0).close()
    assert sorted(run.intake.device_uuids) == ["GPU-1", "GPU-2"]


def events(reader: SessionReader) -> list[tuple[str, str]]:
    return [(row.kind, row.text) for row in reader.events()]


def test_one_process_is_recorded_as_a_program_that_prints_step_lines(run: Run) -> None:
    run.begin("a")
    run.tell("a", event="run", batch_size=8, device="cpu")
    run.tell("a", event="count", flop_per_step=1e9, bytes_per_step=1e6, samples=8)
    run.steps("a", 1, 0.5, warmup=True)
    run.steps("a", 3, 1.0, 1.0, phases={"data": 0.5, "forward": 1.5})
    run.look(3)
    assert not run.store.last_steps(), "held, in case that the program prints step lines itself"
    run.look(3 + HELD_NS / SECOND)
    assert run.store.last_steps() == {True: 1, False: 3}
    with run.end(10) as reader:
        first, rest = reader.steps()
        assert (first.warmup, first.count, first.t) == (True, 1, SECOND)
        assert (rest.step, rest.seconds, rest.samples) == (3, (1.0, 1.0), 16)
        assert rest.phases == {"data": 0.5, "forward": 1.5} and rest.t == 3 * SECOND
        meta = reader.meta()
        assert meta["count"]["flop_per_step"] == 1e9 and meta["run"]["device"] == "cpu"
        assert meta["hook"]["processes"] == 1 and meta["hook"]["text"] is None
        assert meta["step_ends"] == "told"
        assert reader.ranks() == [] and events(reader) == []


def test_phases_of_some_steps_are_kept_with_their_number(run: Run) -> None:
    run.begin("a")
    run.steps("a", 3, 1.0, 1.0, 1.0, phases={"forward": 0.5}, sampled=1, tokens=9)
    run.steps("a", 5, 1.0, 1.0, phases={}, sampled=0, tokens=9)
    with run.end(6) as reader:
        assert [(row.phases, row.sampled) for row in reader.steps()] == [
            ({"forward": 0.5}, 1),
            ({}, 0),
        ]
        (bucket,) = reader.steps_together()
        (rank,) = reader.all_rank_steps()
        for row in (bucket, rank):
            assert (row.count, row.phases, row.sampled) == (5, {"forward": 0.5}, 1)


def test_phases_of_several_ranks_are_means_of_the_ranks_however_many_steps_each_drew(
    run: Run,
) -> None:
    for rank, name in enumerate(("a", "b")):
        run.begin(name, rank, 2)
    for last, drawn in ((4, (2, 1)), (8, (4, 0)), (12, (1, 1)), (16, (3, 0))):
        for name, each, of in zip("ab", (0.4, 9.0), drawn, strict=True):
            run.steps(name, last, *[1.0] * 4, phases={"forward": each * of}, sampled=of)
        run.look(last + HELD_NS / SECOND)
    with run.end(20) as reader:
        rows = reader.steps()
        assert [row.sampled for row in rows] == [1.5, 0, 3, 0]
        assert mean_phases(rows) == {"forward": pytest.approx((0.4 + 9.0) / 2)}


def test_what_is_waited_for_before_the_first_step_is_told_at_once(run: Run) -> None:
    def waiting() -> Any:
        return meta(run.path).get("waiting")

    run.begin("a")
    run.tell("a", event="waiting", what="import", monotonic_ns=BASE + SECOND)
    run.look(2)
    assert waiting() == {"for": "import", "t": SECOND}
    run.tell("a", event="waiting", what="first step", monotonic_ns=10**300)
    run.look(9)
    assert waiting() == {"for": "first step", "t": 9 * SECOND}, "nothing is later than now"
    run.tell("a", event="startup", import_seconds=7.0, model_seconds=1.0, first_step_seconds=2.0)
    run.steps("a", 1, 1.0, warmup=True)
    run.look(12)
    assert waiting()["for"] == "own lines", "which would be believed"
    with run.end(20) as reader:
        assert reader.meta()["startup"]["import_seconds"] == 7.0


def test_tokens_of_one_process_are_those_of_rank_0(run: Run) -> None:
    run.begin("a")
    run.steps("a", 2, 1.0, 1.0, tokens=4096)
    with run.end(3) as reader:
        (row,) = reader.all_rank_steps()
        assert (row.rank, row.tokens, row.count) == (0, 4096, 2)
        assert [each.rank for each in reader.ranks()] == [0]


def test_steps_of_ranks_that_are_late_in_turn_add_up_to_the_time_that_they_took(run: Run) -> None:
    for rank, name in enumerate("ab"):
        run.begin(name, rank, 2)
    run.steps("a", 3, 1.0, 1.1, 0.9)
    run.steps("b", 3, 1.1, 0.9, 1.0)
    with run.end(9) as reader:
        (row,) = reader.steps()
        assert row.seconds == pytest.approx((1.1, 1.0, 0.9)), "ends at 1.1, 2.1 and 3.0 s"


def test_an_evaluation_of_one_rank_is_whole_and_the_wait_of_the_others_is_no_phase(
    run: Run,
) -> None:
    for rank, name in enumerate("ab"):
        run.begin(name, rank, 2)
    run.steps("a", 62, 1.0, phases={"forward": 0.4, "backward": 0.6, "evaluation": 60.0})
    run.steps("b", 62, 61.0, phases={"forward": 0.4, "backward": 60.6})
    with run.end(70) as reader:
        (row,) = reader.steps()
        assert (row.seconds, row.evaluation) == ((1.0,), 60.0)
        assert math.fsum(row.phases.values()) == pytest.approx(1.0)


def test_a_step_of_two_ranks_ends_with_the_later_and_has_the_samples_of_both(run: Run) -> None:
    for rank, name in enumerate(("a", "b")):
        run.begin(name, rank, 2)
        gpu = {"device": "cuda", "device_uuid": [f"GPU-{rank}"], "gpu_node": rank}
        run.tell(name, event="run", batch_size=8, **gpu, cpu_nodes=[0, -1, 2**70], sharded=rank > 0)
        run.tell(name, event="count", flop_per_step=1e9, bytes_per_step=None, samples=8)
    run.steps("a", 3, 0.5, 0.5, 0.5, phases={"forward": 1.5}, loss=2.0)
    run.look(3)
    run.steps("b", 2, 0.75, 0.25, phases={"forward": 1.0}, loss=4.0, total_steps=99)
    run.steps("b", 4, 0.5, 0.5, phases={"forward": 0.9, "data": 0.1}, loss=4.0)
    run.look(4)
    with run.end(9) as reader:
        steps = reader.steps()
        assert [(row.step, row.count) for row in steps] == [(3, 3)]
        (row,) = steps
        assert row.seconds == (0.5, 0.5, 0.5) and row.samples == 48 and row.t == 3.5 * SECOND
        assert row.loss == (3.0, 3.0, 3.0)
        meta = reader.meta()
        assert meta["count"]["flop_per_step"] == 2e9 and meta["count"]["bytes_per_step"] is None
        assert meta["count"]["samples"] == 16 and meta["run"]["total_steps"] == 99
        assert meta["run"]["device_uuid"] == ["GPU-0", "GPU-1"] and meta["run"]["batch_size"] == 16
        ranks = reader.ranks()
        assert [(each.rank, each.device, each.pid) for each in ranks] == [
            (0, "GPU-0", 4000),
            (1, "GPU-1", 4001),
        ]
        assert [(each.cpu_nodes, each.gpu_node, each.sharded) for each in ranks] == [
            ((0,), 0, False),
            ((0,), 1, True),
        ]
        by_rank = {row.rank: (row.count, row.seconds) for row in reader.all_rank_steps()}
        assert by_rank == {0: (3, 1.5), 1: (4, 2.0)}
        assert "several_writers" not in meta


def test_ranks_that_tell_no_step_are_waited_for_and_then_told(run: Run) -> None:
    run.begin("a", 0, 3)
    run.begin("b", 1, 3)
    for name in "ab":
        run.steps(name, 2, 1.0, 1.0)
    run.look(2)
    run.look(10)
    assert not run.store.last_steps()
    run.look(11 + PATIENCE_NS / SECOND)
    run.look(12 + PATIENCE_NS / SECOND)
    with run.end(99) as reader:
        assert [row.samples for row in reader.steps()] == [32]
        assert ("hook", "1 rank without steps; the others' count") in events(reader)


@pytest.mark.parametrize("rank", [None, 0])
def test_two_processes_of_one_rank_are_several_writers(run: Run, rank: int | None) -> None:
    for name in "ab":
        run.begin(name, rank, None if rank is None else 2)
        run.steps(name, 2, 1.0, 1.0)
        run.steps(name, 4, 1.0, 1.0)
    with run.end(9) as reader:
        (event,) = events(reader)
        assert event[0] == "several-writers"
        assert reader.meta()["several_writers"]["text"] == event[1]


def test_a_program_that_prints_step_lines_itself_is_believed(run: Run) -> None:
    run.begin("a")
    run.tell("a", event="count", flop_per_step=1e9)
    run.steps("a", 2, 1.0, 1.0)
    run.look(2)
    run.printed(':::GPUWATCH {"event": "step", "step": 10, "count": 10, "samples": 99}\n', 3)
    run.look(3)
    run.steps("a", 4, 1.0, 1.0)
    run.look(9)
    with run.end(10) as reader:
        assert [row.samples for row in reader.steps()] == [99]
        assert "count" not in reader.meta()
        ((kind, text),) = events(reader)
        assert kind == "hook" and "prints step lines itself" in text


def test_step_lines_that_come_late_stay_in_the_log(run: Run) -> None:
    run.begin("a")
    run.steps("a", 2, 1.0, 1.0)
    run.look(2)
    run.look(8)
    own = ':::GPUWATCH {"event": "step", "step": 10, "count": 10, "samples": 99}'
    run.printed(own + "\n", 9)
    run.look(9)
    with run.end(10) as reader:
        assert [row.samples for row in reader.steps()] == [16]
        assert [row.text for row in reader.log()] == [own]
        ((_, text),) = events(reader)
        assert "--hook off" in text


@pytest.mark.parametrize(
    ("tell", "says"),
    [
        (lambda run: None, "no Python program of the run imported torch"),
        (lambda run: run.begin("a"), "no optimizer took a step"),
    ],
)
def test_why_there_are_no_steps_is_told(
    tmp_path: Path, tell: Callable[[Run], None], says: str
) -> None:
    run = Run(tmp_path, options=["loss"])
    tell(run)
    with run.end(1) as reader:
        assert says in reader.meta()["hook"]["text"] and reader.steps() == []
        ((kind, text),) = events(reader)
    assert kind == "hook" and text.startswith("--hook loss gave nothing: ") and says in text


def test_a_profile_alone_asked_for_no_loss(tmp_path: Path) -> None:
    run = Run(tmp_path, options=["profile=4"])
    with run.end(1) as reader:
        assert events(reader) == [] and "torch" in reader.meta()["hook"]["text"]


def test_problems_are_events_each_once_and_skipped_steps_are_counted(run: Run) -> None:
    run.begin("a")
    for _ in range(3):
        run.tell("a", event="problem", text="the hook left")
    run.steps("a", 2, 1.0, 1.0, skipped=[1])
    run.tell("nobody", event="step", step=1)
    with run.end(3) as reader:
        texts = [text for kind, text in events(reader) if kind == "hook"]
    assert sorted(texts) == [
        "GradScaler skipped 1 of the steps",
        "a file does not begin with who writes it; it is left out",
        "the hook left",
    ]


def test_another_recorder_goes_on_where_the_first_one_died(run: Run, tmp_path: Path) -> None:
    for rank, name in enumerate(("a", "b")):
        run.begin(name, rank, 2)
        run.tell(name, event="problem", text="once")
        run.steps(name, 3, 0.5, 0.5, 0.5)
    run.look(3)
    run.look(9)
    assert run.store.last_steps() == {False: 3}
    run.store.write([row for tier in run.hook._tiers.values() for row in tier.flush()])
    run.steps("a", 5, 0.5, 0.5)
    run.steps("b", 6, 0.5, 0.5, 0.5)
    run.store.close()
    store = SessionStore.reopen(run.path)
    before = Before(store.last_steps(), store.last_rank_steps(), store.events_of("hook"))
    store.close()
    again = Run(tmp_path, before)
    with again.end(12) as reader:
        assert [(row.step, row.count) for row in reader.steps()] == [(3, 3), (5, 2)]
        counts = [(row.rank, row.step, row.count) for row in reader.all_rank_steps()]
        assert sorted(counts) == [(0, 3, 3), (0, 5, 2), (1, 3, 3), (1, 6, 3)]
        assert len(events(reader)) == 2, "one of each rank"


LINE = (
    "Epoch: [0][{:5d}/5005]\tTime  0.125 ( 0.140)\tData  0.010 ( 0.020)\tLoss 6.9e+00 (7.0e+00)\n"
)


SCORED = LINE.replace("\n", "\tAcc@1  25.00 ( 12.00)\tAcc@5  50.00 ( 30.00)\n")


def test_steps_are_the_hooks_and_scores_those_that_the_program_prints(run: Run) -> None:
    run.begin("a")
    run.look(1)
    run.printed(SCORED.format(0).replace("6.9e+00", "7.5e+00") + SCORED.format(1), 2)
    run.steps("a", 2, 1.0, 1.0)
    run.look(2.1)
    run.steps("a", 3, 1.0)
    run.printed(SCORED.format(2).replace("6.9e+00", "6.5e+00"), 3.7)  # while step 4 runs
    run.look(3.8)
    run.steps("a", 4, 1.0)
    run.look(4)
    run.printed(SCORED.format(3).replace("6.9e+00", "6.2e+00"), 4.1)
    run.steps("a", 5, 1.0)
    run.printed(SCORED.format(5).replace("6.9e+00", "6.1e+00"), 6.9)  # late, but no later step is
    run.look(7.2)
    run.printed(SCORED.format(6).replace("6.9e+00", "5.5e+00"), 8.5)  # after a checkpoint
    with run.end(9) as reader:
        shown = [(row.step, row.samples, row.loss, row.acc1) for row in reader.steps()]
        assert shown == [
            (2, 16, (6.9,), (0.25,)),
            (3, 8, (6.5,), (0.25,)),
            (4, 8, (6.2,), (0.25,)),
            (5, 8, (6.1,), (0.25,)),
        ]
        texts = [text for kind, text in events(reader) if kind == "progress-lines"]
        assert texts[0].startswith("loss and accuracy are from lines in the format of pytorch/exam")
        assert len(reader.log()) == 6 and len(texts) == 1, "it was not late"
        last = training_of(reader, None).step
        assert (last.loss.figure.value, last.loss.at, last.acc1.at) == (5.5, 5, 5)
        assert summarise(reader).steps.last_loss == 5.5
        ((*_, exported),) = steps_table(reader).batches()
        assert {5, 5.5} <= set(exported)


def test_of_lines_that_are_read_together_each_has_its_loss(run: Run) -> None:
    run.begin("a")
    run.steps("a", 1, 1.0)
    run.look(1)
    run.look(7)
    run.steps("a", 8, 1.0)
    run.printed("step 8 loss 2.5\n", 8.7)
    run.steps("a", 9, 1.0)
    run.printed("step 9 loss 1.5\n", 9.3)
    run.look(9.4)
    with run.end(10) as reader:
        assert [row.loss for row in reader.steps()] == [None, (2.5,), (1.5,)]


@pytest.mark.parametrize("killed", [False, True])
def test_what_was_printed_last_counts_and_only_all_at_once_gives_advice(
    run: Run, killed: bool
) -> None:
    run.begin("a")
    run.steps("a", 2, 1.0, 1.0)
    run.look(2.1)
    run.look(8)
    run.printed(SCORED.format(0) + SCORED.format(6).replace("6.9e+00", "nan"), 8.5)
    with run.end(9, killed=killed) as reader:
        advice = [text for _, text in events(reader) if "does not flush" in text]
        assert len(advice) == (not killed)
        last = training_of(reader, None)
        assert (last.step.loss.at, last.step.loss.figure.value) == (2, None)
        assert last.lost_at == (True, 2)


def test_a_loss_that_is_printed_after_a_pause_is_of_the_step_before_it(run: Run) -> None:
    run.begin("a")
    run.look(0.5)
    run.steps("a", 1, 0.1)
    run.printed("epoch 1 loss 4.5\n", 2.7)
    run.steps("a", 3, 1.9, 0.1)
    run.printed("epoch 2 loss 2.5\n", 3.05)
    run.look(4)
    run.steps("a", 9, 0.1, loss=0.5)
    run.look(9)
    run.printed("epoch 3 loss 0.6\n", 9.5)
    with run.end(10) as reader:
        assert [row.loss for row in reader.steps()] == [(4.5,), (2.5,), (0.5,)]
        assert training_of(reader, None).step.loss.figure.value == 0.5, "the hook's own"


def test_a_bar_without_an_end_tells_its_loss_with_its_step(run: Run) -> None:
    run.begin("a")
    run.steps("a", 1, 1.0)
    run.look(1 + HELD_NS / SECOND)
    for step in (2, 3):
        bar = f"\r 2%|  | {step}/100 [00:02<01:38, 1.0it/s, loss=0.{step}]  "
        run.printed(bar, step + 5.1)
        run.steps("a", step + 5, 1.0)
        run.look(step + 5.2)
    with run.end(9, killed=True) as reader:
        assert [row.loss for row in reader.steps()] == [None, (0.2,), (0.3,)]
        assert len(reader.log()) == 2


def test_lines_without_a_number_tell_scores_beside_the_hook_alone(run: Run) -> None:
    printed = "{{'loss': {}, 'grad_norm': 1.5, 'learning_rate': 5e-05, 'epoch': 0.1}}\n"
    run.printed(printed.format(9.0), 0.5)
    run.begin("a")
    run.look(0.6)
    run.printed(printed.format(4.5), 1.0)
    run.steps("a", 1, 1.0)
    run.look(1)
    run.printed(printed.format(2.25), 2.1)
    run.steps("a", 2, 1.0)
    run.look(2.2)
    with run.end(9) as reader:
        assert [(row.step, row.loss) for row in reader.steps()] == [(1, (4.5,)), (2, (2.25,))]


def test_a_printed_loss_that_is_not_finite_is_never_left_out(run: Run) -> None:
    run.begin("a")
    run.look(1)
    for last, losses in (3, "9 nan 8 7"), (6, "6 5"), (9, "4 inf"):
        run.printed("".join(f"step {last} loss {loss}\n" for loss in losses.split()), last)
        run.steps("a", last, 1.0, 1.0, 1.0)
        run.look(last)
    with run.end(10) as reader:
        losses = [f"{row.loss}" for row in reader.steps()]
        assert losses == ["(nan, nan, 7.0)", "(5.0,)", "(4.0, inf, inf)"]
        assert ("loss", "the loss was not finite at steps 1 to 2") in events(reader)


def test_of_lines_of_no_program_that_is_known_only_what_they_tell_is_said(run: Run) -> None:
    run.begin("a")
    run.look(0.6)
    run.printed("Epoch 1 Iter 5/200: train_loss=0.4\n", 1.0)
    run.steps("a", 1, 1.0)
    run.look(1)
    with run.end(9) as reader:
        (told,) = [text for kind, text in events(reader) if kind == "progress-lines"]
    assert told == (
        "the loss is from lines with `loss` and a number, of a step or a mean; "
        "a late one is a few steps off"
    )


def test_lines_without_a_number_are_no_steps_where_the_hook_tells_none(run: Run) -> None:
    run.begin("a")
    run.look(1)
    run.printed("{'loss': 2.25, 'learning_rate': 5e-05, 'epoch': 0.1}\n", 2)
    with run.end(9) as reader:
        assert reader.steps() == [] and events(reader) == []


def test_scores_that_two_ranks_print_are_not_mixed(run: Run) -> None:
    for rank, name in enumerate("ab"):
        run.begin(name, rank, 2)
        run.steps(name, 1, 1.0)
    run.look(1)
    run.printed("".join(LINE.format(number) for number in (1, 1, 2, 2, 3)), 2)
    for name in "ab":
        run.steps(name, 2, 1.0)
    run.look(2)
    with run.end(9) as reader:
        assert [row.loss for row in reader.steps()] == [None, None]
        assert any("several processes print" in text for _, text in events(reader))


def test_another_recorder_still_takes_only_scores_from_progress_lines(run: Run) -> None:
    run.begin("a")
    run.steps("a", 2, 1.0, 1.0)
    run.look(2)
    known = json.loads(json.dumps(run.intake.state))
    second = Intake(BASE, {"cursor": known})
    rows = second.take([Output(BASE + 3 * SECOND, "stdout", LINE.format(3).encode())])
    assert not [sql for sql, _ in rows if "INTO step " in sql]


@pytest.mark.parametrize("line", [LINE, "step {} loss 0.5\n"])
@pytest.mark.parametrize("until", [3, 70])
def test_progress_lines_of_a_program_whose_optimizers_are_not_torchs(
    run: Run, until: int, line: str
) -> None:
    run.begin("a")
    run.look(1)
    run.printed(line.format(0) + line.format(10), 2)
    run.look(until)
    run.printed(line.format(20), until + 1)
    with run.end(until + 2) as reader:
        assert len(reader.steps()) == 3
        assert "progress-lines" in [kind for kind, _ in events(reader)]


def test_a_rank_that_fits_no_database_is_none(run: Run) -> None:
    run.tell("a", event="hook", pid=2**70, rank=2**70, world_size=2)
    run.steps("a", 2, 1.0, 1.0, tokens=8)
    with run.end(3) as reader:
        assert [(row.rank, row.pid) for row in reader.ranks()] == [(0, None)]
        assert sum(row.count for row in reader.steps()) == 2


def test_steps_of_inference_wait_for_a_training_that_would_make_them_an_evaluation(
    run: Run,
) -> None:
    run.begin("a")
    run.tell("a", event="inference")
    run.steps("a", 4, 1.0, 1.0)
    run.look(4)
    run.tell("a", event="training")
    run.steps("a", 2, 0.5, 0.5)
    run.look(5)
    with run.end(6) as reader:
        assert [(row.step, row.seconds) for row in reader.steps()] == [(2, (0.5, 0.5))]
        assert "evaluated_until" not in reader.meta()


@pytest.mark.parametrize("over", [True, False])
def test_steps_of_inference_are_the_run_s_once_it_is_over_or_no_training_came(
    run: Run, over: bool
) -> None:
    run.begin("a")
    run.tell("a", event="inference")
    run.tell("a", event="generation", sequences=4, prompt_tokens=12, new_tokens=20)
    run.steps("a", 4, 1.0, 1.0, phases={"prefill": 0.5, "decode": 1.5}, tokens=160)
    run.look(4)
    if not over:
        run.look(4 + EVALUATION_NS / SECOND)
        assert run.store.last_steps() == {False: 4}
    with run.end(30) as reader:
        (row,) = reader.steps()
        assert (row.step, row.count, row.warmup, row.t) == (4, 2, False, 4 * SECOND)
        assert reader.meta()["generation"]["new_tokens"] == 20


@pytest.mark.parametrize("process", ["a", "another"])
def test_a_late_training_makes_what_was_told_of_inference_a_warm_up(run: Run, process: str) -> None:
    """The same process after a long evaluation, or a learner beside those that only act."""
    run.begin("a")
    run.tell("a", event="inference")
    run.tell("a", event="count", flop_per_step=1.0, samples=8)
    run.steps("a", 4, 1.0, 1.0, tokens=64)
    run.look(4)
    run.look(4 + EVALUATION_NS / SECOND)
    if process == "a":
        run.tell("a", event="training")
    else:
        run.begin("another")
    run.steps(process, 31, 0.5, warmup=True)
    run.steps(process, 33, 0.5, 0.5, tokens=32)
    if process != "a":
        run.steps("a", 40, 1.0)
    run.look(34)
    with run.end(50) as reader:
        assert [(row.step, row.warmup) for row in reader.steps()] == [
            *((4, True), (31, True), (33, False))
        ]
        assert [row.warmup for row in reader.all_rank_steps()] == [True, False]
        assert reader.step_count() == 2
        assert "count" not in reader.meta() and "several_writers" not in reader.meta()


def test_ranks_that_evaluate_long_and_train_then_are_withdrawn_once(run: Run) -> None:
    for rank, name in enumerate("ab"):
        run.begin(name, rank, 2)
        run.tell(name, event="inference")
        run.steps(name, 4, 1.0, 1.0)
    run.look(5)
    run.look(5 + EVALUATION_NS / SECOND)
    for name in "ab":
        run.tell(name, event="training")
        run.tell(name, event="count", flop_per_step=2.0, samples=8)
        run.steps(name, 31, 0.5, warmup=True)
        run.steps(name, 33, 0.5, 0.5)
    run.look(34)
    with run.end(50) as reader:
        steps = [(row.count, row.warmup) for row in reader.steps()]
        assert steps[-2:] == [(1, True), (2, False)] and all(warm for _, warm in steps[:-1])
        assert reader.meta()["count"]["flop_per_step"] == 4.0
