"""Follows the hooked processes of a run, and makes rows of a session of what they report."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, number, sequence
from gpuwatch.core.units import counted
from gpuwatch.recorder.hook.channel import Channel, Reported
from gpuwatch.recorder.hook.combining import Combined, RankTier, count_of_all
from gpuwatch.recorder.output.intake import Intake
from gpuwatch.recorder.output.step_lines import Report, Step
from gpuwatch.session.rows import RankRow
from gpuwatch.session.writing import statements
from gpuwatch.session.writing.statements import Row, event, meta

HELD_NS = 5_000_000_000
"""How long the first steps wait for step lines of the program itself, which would be believed."""
EVALUATION_NS = 15_000_000_000
"""How long steps of inference wait for a training, which would make them an evaluation."""
PATIENCE_NS = 60_000_000_000
"""How long steps wait: of some ranks for ranks that tell none, and of progress lines for a process
that loaded the hook."""
_LARGEST = 2**31
_MOST_NODES = 64
_NO_TORCH = "no Python program of the run imported torch with the hook in place"
_NO_STEPS = (
    "torch was imported, but no optimizer took a step, and no call of a model under "
    "torch.no_grad() or torch.inference_mode() was seen"
)
_OWN = "the program prints step lines itself: they count, and what the hook reports does not"
_OWN_TOO_LATE = (
    "the program prints step lines itself, but only after five seconds of steps: the hook's count; "
    "with --hook off the program's do"
)


@dataclass(frozen=True)
class Before:
    """What an earlier recorder of the run has already written."""

    steps: Mapping[bool, int] = field(default_factory=dict)
    """Number of the run's last step, of the warm-up (``True``) and after it."""
    of_ranks: Mapping[tuple[int, bool], int] = field(default_factory=dict)
    """The same by rank."""
    events: frozenset[str] = frozenset()
    """Texts of the events about the hook."""


@dataclass(frozen=True)
class _Process:
    rank: int | None
    several: bool
    """Whether the run has several ranks."""
    here: int
    """How many of them are on this machine."""
    pid: int | None
    local_rank: int | None
    world_size: int | None


class HookReports:
    """What the processes of one run report; ``given``: the session's ``hook`` so far."""

    def __init__(
        self,
        channel: Channel,
        intake: Intake,
        base_ns: int,
        given: Mapping[str, JSON],
        before: Before | None = None,
    ) -> None:
        before = before or Before()
        self._channel = channel
        self._intake = intake
        self._base_ns = base_ns
        self._given = dict(given)
        self._before = before
        self._told = set(before.events)
        self._processes: dict[str, _Process] = {}
        self._writers: dict[int | None, str] = {}
        """By rank: the process that tells its steps."""
        self._combined: Combined | None = None
        self._waiting_since: int | None = None
        self._tiers: dict[int, RankTier] = {}
        self._counts: dict[int, Report] = {}
        self._runs: dict[int, Report] = {}
        self._held: list[tuple[int, Step | Report]] = []
        self._held_since: int | None = None
        self._skipped = self._steps = 0
        self._loaded: int | None = None
        """When the first process loaded the hook."""
        self._inferring: dict[str, list[tuple[int, Reported]]] = {}
        """Processes that have not trained, and their lines that wait."""
        self._inferring_since: int | None = None
        self._inferred_until: int | None = None
        """When the last step of inference ended that was told."""
        self._trains = False
        """Whether any process does."""

    def look(self, t: int) -> list[Row]:
        """Rows of what is new at session time ``t`` (ns)."""
        rows: list[Row] = []
        for reported in self._channel.read():
            rows += self._take(t, reported)
        rows += self._infer(t, over=False)
        rows += self._of_all(t)
        rows += self._release(t, over=False)
        if not self._steps and self._loaded is not None and t - self._loaded > PATIENCE_NS:
            rows += self._intake.release_progress()
        return rows + self._problems(t)

    def finish(self, t: int) -> list[Row]:
        """The last rows, once the run is over."""
        rows: list[Row] = []
        while reported := self._channel.read():
            for each in reported:
                rows += self._take(t, each)
        rows += self._infer(t, over=True)
        if self._combined is not None:
            self._combined.give_up()
        rows += self._of_all(t)
        rows += self._release(t, over=True)
        rows += self._intake.release_progress()
        for tier in self._tiers.values():
            rows += tier.flush()
        if self._skipped:
            rows += self._event(t, f"GradScaler skipped {self._skipped} of the steps")
        rows += self._problems(t)
        self._channel.close()
        if self._given.get("given") and not self._steps:
            self._given["text"] = text = _NO_STEPS if self._processes else _NO_TORCH
            if "loss" in sequence(self._given.get("options")):  # which is not there by default
                rows += self._event(t, f"--hook loss gave nothing: {text}")
        return [*rows, meta("hook", self._given)]

    def _take(self, t: int, reported: Reported) -> list[Row]:
        line = reported.line
        if isinstance(line, Report) and line.event == "hook":
            return self._process(t, reported.process, line)
        process = self._processes.get(reported.process)
        if process is None:
            return self._event(t, "a file does not begin with who writes it; it is left out")
        if isinstance(line, Report) and line.event == "problem":
            text = str(line.body.get("text", ""))[:500]
            return self._event(t, f"rank {process.rank}: {text}" if process.several else text)
        if isinstance(line, Report) and line.event == "gpus":
            self._intake.hooked_gpus(line.body.get("device_uuid"))
            return []
        if isinstance(line, Report) and line.event == "waiting":
            if self._steps:
                return []  # of a loader's worker
            told = number(line.body.get("monotonic_ns"))
            since = t if told is None else max(0, min(t, int(told) - self._base_ns))
            return [meta("waiting", {"for": str(line.body.get("what"))[:40], "t": since})]
        if isinstance(line, Report) and line.event == "inference":
            self._inferring[reported.process] = []
            return [] if self._steps else [meta("waiting", {"for": "evaluation", "t": t})]
        if isinstance(line, Report) and line.event == "training":
            self._inferring.pop(reported.process, None)
            return self._train()
        if reported.process in self._inferring:
            self._inferring[reported.process].append((t, reported))
            return []
        rows = [] if self._trains or not isinstance(line, Step) else self._train()
        return rows + self._count(t, reported.process, process, line)

    def _infer(self, t: int, *, over: bool) -> list[Row]:
        """Rows of processes that infer, once it is plain that none trains."""
        waiting = sorted(
            (each for lines in self._inferring.values() for each in lines), key=lambda each: each[0]
        )
        if self._inferring_since is None and waiting:
            self._inferring_since = waiting[0][0]
        if self._inferring_since is None or not (
            over or self._trains or t - self._inferring_since >= EVALUATION_NS
        ):
            return []
        for lines in self._inferring.values():
            lines.clear()
        rows: list[Row] = []
        for arrived, each in waiting if not self._trains else ():
            process, line = self._processes[each.process], each.line
            rows += self._count(arrived, each.process, process, line)
            if isinstance(line, Step) and line.monotonic_ns is not None:
                end = line.monotonic_ns - self._base_ns
                self._inferred_until = max(self._inferred_until or 0, end)
        return rows

    def _train(self) -> list[Row]:
        """A process trains: what was told of inference was an evaluation, and is a warm-up."""
        first, self._trains = not self._trains, True
        if not first or self._inferred_until is None:
            return []
        if not self._intake.hooked:  # else these are the training's, read with it
            self._held = [(t, each) for t, each in self._held if isinstance(each, Step)]
        self._writers.clear()
        self._counts.clear()
        if self._combined is not None:
            self._combined = Combined(self._combined.ranks)
        rows = [row for tier in self._tiers.values() for row in tier.flush()]
        rows.append(meta("evaluated_until", self._inferred_until))
        return rows + [statements.without_meta(key) for key in ("count", "generation")]

    def _count(self, t: int, name: str, process: _Process, line: Step | Report) -> list[Row]:
        """A line of a process whose steps are the run's."""
        if isinstance(line, Step):
            return self._step(t, name, process, line)
        if not process.several or process.rank is None:
            return self._pass(t, line)
        return self._report(t, process.rank, line)

    def _process(self, t: int, name: str, line: Report) -> list[Row]:
        rank, local_rank, world_size, here, pid = (
            _whole(line.body.get(key))
            for key in ("rank", "local_rank", "world_size", "local_world_size", "pid")
        )
        several = rank is not None and (world_size or 1) > 1
        process = _Process(rank, several, here or world_size or 1, pid, local_rank, world_size)
        self._processes[name] = process
        if self._loaded is None:
            self._loaded = t
            self._intake.hold_progress()
        if several and self._combined is None:
            self._combined = Combined(process.here)
        self._given["processes"] = len(self._processes)
        return [meta("hook", self._given)]

    def _step(self, t: int, name: str, process: _Process, step: Step) -> list[Row]:
        rows = [] if self._steps else self._intake.take_scores()
        self._steps += step.count
        writer = self._writers.setdefault(process.rank, name)
        if writer != name:
            return self._intake.several(t, _two(process.rank))
        self._skipped += step.skipped
        rows += self._rank_rows(t, process, step)
        if not process.several or process.rank is None or self._combined is None:
            known = self._before.steps.get(step.warmup, 0)
            return rows + (self._pass(t, step) if step.step > known else [])
        self._combined.add(process.rank, step)
        return rows

    def _rank_rows(self, t: int, process: _Process, step: Step) -> list[Row]:
        """The step in the table of ranks: of several, or of one that tells its tokens."""
        if not process.several and step.tokens is None:
            return []
        rank = process.rank or 0
        rows: list[Row] = []
        if rank not in self._tiers:
            self._tiers[rank] = RankTier(rank)
            rows = [self._rank_row(rank, process)]
        if step.step <= self._before.of_ranks.get((rank, step.warmup), 0):
            return rows
        ended = t if step.monotonic_ns is None else min(t, step.monotonic_ns - self._base_ns)
        return rows + self._tiers[rank].add(max(0, ended), step)

    def _rank_row(self, rank: int, process: _Process) -> Row:
        body = self._runs[rank].body if rank in self._runs else {}
        used = next(iter(sequence(body.get("device_uuid"))), body.get("device"))
        known = map(_whole, sequence(body.get("cpu_nodes")))
        return statements.rank(
            RankRow(
                rank,
                process.local_rank,
                process.world_size,
                process.pid,
                None if used is None else str(used),
                tuple(node for node in known if node is not None)[:_MOST_NODES],
                _whole(body.get("gpu_node")),
                body.get("sharded") is True,
            )
        )

    def _report(self, t: int, rank: int, line: Report) -> list[Row]:
        """A report of one of several ranks, as the run's: of all together, or of the first."""
        if line.event == "generation":
            return []  # of one rank, which says nothing of all
        if line.event == "count":
            self._counts[rank] = line
            if self._combined is None or len(self._counts) < self._combined.ranks:
                return []
            counts = [self._counts[each] for each in sorted(self._counts)]
            return self._pass(t, count_of_all(counts, len(counts)))
        if line.event == "run":
            self._runs[rank] = line
            rows = []
            if rank in self._tiers:
                process = next(p for p in self._processes.values() if p.rank == rank)
                rows = [self._rank_row(rank, process)]
            return rows + self._pass(t, _run_of_all(self._runs))
        first = min(p.rank for p in self._processes.values() if p.rank is not None)
        return self._pass(t, line) if rank == first or line.event == "error" else []

    def _of_all(self, t: int) -> list[Row]:
        """The steps of the run that all ranks have told since."""
        if self._combined is None:
            return []
        if self._combined.missing and self._writers:
            self._waiting_since = t if self._waiting_since is None else self._waiting_since
            if t - self._waiting_since > PATIENCE_NS:
                ranks = counted(self._combined.missing, "rank")
                self._combined.give_up()
                return self._event(t, f"{ranks} without steps; the others' count")
        rows = []
        for step in self._combined.take(self._before.steps):
            rows += self._pass(t, step)
        return rows

    def _pass(self, t: int, line: Step | Report) -> list[Row]:
        """Hold a line for the intake, to the end of a look, or for the first seconds of steps."""
        if self._intake.own_steps and not self._intake.hooked:
            return self._event(t, _OWN)
        self._held.append((t, line))
        if isinstance(line, Step) and self._held_since is None and not self._intake.hooked:
            self._held_since = t
            return [meta("waiting", {"for": "own lines", "t": t})]
        return []

    def _release(self, t: int, *, over: bool) -> list[Row]:
        """The held lines, once no step line of the program itself came for long enough."""
        intake, rows = self._intake, list[Row]()
        if intake.hooked and intake.own_steps:
            rows = self._event(t, _OWN_TOO_LATE)
        elif intake.own_steps:
            held, self._held = self._held, []
            return self._event(t, _OWN) if held else []
        waited = self._held_since is not None and t - self._held_since >= HELD_NS
        if not self._held or not (over or waited or self._before.steps or intake.hooked):
            return rows
        known = math.inf if over or not intake.hooked else None
        intake.hooked = intake.hooked or self._held_since is not None
        held, self._held = self._held, []
        for place, (arrived, line) in enumerate(held, 1):
            later = (_between(line, each) for _, each in held[place:] if isinstance(each, Step))
            rows += intake.reported(arrived, line, late_ns=next(later, known))
        return rows

    def _problems(self, t: int) -> list[Row]:
        problems, self._channel.problems = self._channel.problems, []
        return [row for text in problems for row in self._event(t, text)]

    def _event(self, t: int, text: str) -> list[Row]:
        """An event of each text, once."""
        if text in self._told:
            return []
        self._told.add(text)
        return [event(t, "hook", text)]


def _between(line: Step | Report, later: Step) -> float:
    """Nanoseconds from the last step of ``line`` to the end of the first one of ``later``: what is
    printed between, also after a long pause, is of ``line``."""
    end = line.monotonic_ns if isinstance(line, Step) else None
    if end is None or later.monotonic_ns is None:
        return 0.0
    return later.monotonic_ns - end - sum((later.seconds or ())[1:]) * 1e9


def _two(rank: int | None) -> str:
    if rank is None:
        return (
            "two processes train or infer, each for itself, and their steps do not belong "
            "together: record each on its own"
        )
    return f"rank {rank} was started anew: two processes tell its steps"


def _run_of_all(runs: Mapping[int, Report]) -> Report:
    """The ``run`` of the first rank, with the GPUs and the batches of all."""
    bodies = [runs[rank].body for rank in sorted(runs)]
    body = dict(bodies[0])
    listed = [uuid for each in bodies for uuid in sequence(each.get("device_uuid"))]
    if listed:
        body["device_uuid"] = list(dict.fromkeys(listed))
    sizes = [_whole(each.get("batch_size")) for each in bodies]
    if all(size is not None for size in sizes):
        body["batch_size"] = sum(size for size in sizes if size is not None)
    return Report("run", body)


def _whole(value: JSON) -> int | None:
    """A number that a rank, a process or a batch can have; a hostile one may fit no database."""
    known = isinstance(value, int) and not isinstance(value, bool)
    return value if known and 0 <= value < _LARGEST else None
