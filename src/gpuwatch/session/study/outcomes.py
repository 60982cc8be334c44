"""How the runs of a study ended, and which of the rest are not worth trying."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path

from gpuwatch.core.errors import NotASession
from gpuwatch.core.models import JSON, Problem, mapping
from gpuwatch.session.reading.reader import read_meta
from gpuwatch.session.reading.status import FAILED, State, status
from gpuwatch.session.study.estimate import cell
from gpuwatch.session.study.plan import Plan, PlannedRun, case_label

FAILED_TWICE = "failed-twice"
OUT_OF_MEMORY = "out-of-memory"
TIME_LIMIT = "--duration"
"""Prefix of the stop reason of a run that reached its time limit."""
GIVEN_UP = frozenset({FAILED_TWICE, OUT_OF_MEMORY})
"""Problem codes that :func:`given_up` returns."""
_ENOUGH = 2
_BATCH_SIZE = "batch_size"


class End(str, Enum):
    """How a run ended."""

    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"
    OUT_OF_MEMORY = "out of memory"


_BAD = (End.FAILED, End.OUT_OF_MEMORY)


def end_of(path: Path) -> End | None:
    """How the run of a session ended; ``None`` while unknown.

    Raises:
        NotASession, NewerSchema, StorageError: the session cannot be read.
    """
    meta = read_meta(path)
    state = status(meta, path).state
    if state in (State.FINISHED, State.STOPPED):
        return End(state.value)
    if state not in FAILED:
        return None
    message = str(mapping(meta.get("error")).get("message"))
    killed = mapping(meta.get("result")).get("out_of_memory") is True
    return End.OUT_OF_MEMORY if killed or message.startswith("out of memory") else End.FAILED


def interrupted(meta: Mapping[str, JSON]) -> bool:
    """Whether a run was stopped before its time limit, so that it is incomplete."""
    reason = mapping(meta.get("result")).get("stopped")
    return bool(reason) and not str(reason).startswith(TIME_LIMIT)


def missing(folder: Path, plan: Plan) -> tuple[PlannedRun, ...]:
    """The runs of ``plan`` without a session that ended by itself or by its time limit."""
    return tuple(run for run in plan.runs if not done(folder / run.file))


def first_block(runs: Sequence[PlannedRun]) -> tuple[PlannedRun, ...]:
    """Those of ``runs`` that are of the same block as the first."""
    return tuple(run for run in runs if (run.part, run.block) == (runs[0].part, runs[0].block))


def done(path: Path) -> bool:
    """Whether the run of a session ended by itself or by its time limit."""
    meta = meta_of(path) or {}
    return "result" in meta and not interrupted(meta)


def meta_of(path: Path) -> dict[str, JSON] | None:
    """``None`` if there is no readable session."""
    if not path.exists():
        return None
    try:
        return read_meta(path)
    except NotASession:
        return None


def given_up(plan: Plan, ends: Mapping[int, End]) -> dict[int, Problem]:
    """Why some of the remaining runs are not worth starting, by index.

    ``ends``: the ends of the other runs, by index. Skips a case that failed twice in an environment
    and never succeeded there, and, in a sweep over ``batch_size``, all sizes from the smallest that
    ran out of memory on, everything else being equal.
    """
    cells: dict[object, list[End]] = {}
    too_large: dict[object, int] = {}
    for run in plan.runs:
        if run.index not in ends:
            continue
        cells.setdefault((run.part, cell(run)), []).append(ends[run.index])
        size = _size(plan, run)
        if size is not None and ends[run.index] is End.OUT_OF_MEMORY:
            too_large[_sweep(run)] = min(size, too_large.get(_sweep(run), size))
    problems: dict[int, Problem] = {}
    for run in plan.runs:
        if run.index in ends:
            continue
        size, limit = _size(plan, run), too_large.get(_sweep(run))
        if size is not None and limit is not None and size >= limit:
            where = f"{run.workload.name} in {run.environment.label}"
            text = f"{where} ran out of memory at batch size {limit}"
            problems[run.index] = Problem(OUT_OF_MEMORY, text)
            continue
        past = cells.get((run.part, cell(run)), [])
        if len(past) >= _ENOUGH and all(end in _BAD for end in past):
            problems[run.index] = _failed(plan, run, len(past), ends)
    return problems


def _failed(plan: Plan, run: PlannedRun, times: int, ends: Mapping[int, End]) -> Problem:
    case = case_label(run.workload, plan.parts[run.part].workloads)
    like = [each for each in plan.runs if (each.part, cell(each)) == (run.part, cell(run))]
    warmed = any(each.block == 0 and each.index in ends for each in like)
    which = ", one in the warm-up," if warmed else ""
    text = f"{case} failed {times} times in {run.environment.label}{which} and never succeeded"
    return Problem(FAILED_TWICE, text)


def _size(plan: Plan, run: PlannedRun) -> int | None:
    """The batch size of a run, if its part sweeps over it."""
    size = run.workload.parameters.get(_BATCH_SIZE)
    return size if _BATCH_SIZE in plan.parts[run.part].sweep and isinstance(size, int) else None


def _sweep(run: PlannedRun) -> object:
    """A key shared by runs that differ only in batch size."""
    workload = run.workload
    others = [item for item in sorted(workload.parameters.items()) if item[0] != _BATCH_SIZE]
    return run.part, run.environment.label, workload.name, repr(others)
