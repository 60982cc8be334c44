"""How the runs of a study ended, and which of the others need not be tried any more."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from pathlib import Path

from gpuwatch.core.models import JSON, Problem, mapping
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.status import State, status
from gpuwatch.session.study.estimate import cell
from gpuwatch.session.study.plan import Plan, PlannedRun, case_label

FAILED_TWICE = "failed-twice"
OUT_OF_MEMORY = "out-of-memory"
TIME_LIMIT = "--duration"
"""How the reason begins for which a run was stopped that had a time limit."""
GIVEN_UP = frozenset({FAILED_TWICE, OUT_OF_MEMORY})
"""Codes of the problems that :func:`given_up` finds."""
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
    """How the run of a session ended; ``None`` while it is not known.

    Raises:
        NotASession, NewerSchema, StorageError: the session cannot be read.
    """
    with SessionReader(path) as reader:
        meta = reader.meta()
    state = status(meta, path).state
    if state is State.FINISHED:
        return End.FINISHED
    if state is State.STOPPED:
        return End.STOPPED
    if state not in (State.FAILED, State.KILLED):
        return None
    said = str(mapping(meta.get("error")).get("message"))
    killed = mapping(meta.get("result")).get("out_of_memory") is True
    return End.OUT_OF_MEMORY if killed or said.startswith("out of memory") else End.FAILED


def interrupted(meta: Mapping[str, JSON]) -> bool:
    """Whether a run was stopped, and not by its time limit: it has not done what it was to do."""
    why = mapping(meta.get("result")).get("stopped")
    return bool(why) and not str(why).startswith(TIME_LIMIT)


def given_up(plan: Plan, ends: Mapping[int, End]) -> dict[int, Problem]:
    """Why runs that did not take place are not worth starting, by index.

    ``ends`` are those of the runs that did. A case that failed twice in an environment and never
    succeeded there is left alone, and so is, in a sweep over ``batch_size``, every size from the
    smallest one on that ran out of memory, all else being equal.
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
    found: dict[int, Problem] = {}
    for run in plan.runs:
        if run.index in ends:
            continue
        size, limit = _size(plan, run), too_large.get(_sweep(run))
        if size is not None and limit is not None and size >= limit:
            found[run.index] = _out_of_memory(run, limit)
            continue
        bad = cells.get((run.part, cell(run)), [])
        if len(bad) >= _ENOUGH and all(end in _BAD for end in bad):
            found[run.index] = _failed(plan, run, len(bad))
    return found


def _failed(plan: Plan, run: PlannedRun, times: int) -> Problem:
    case = case_label(run.workload, plan.parts[run.part].workloads)
    text = f"{case} failed {times} times in {run.environment.label} and never succeeded"
    return Problem(FAILED_TWICE, text)


def _out_of_memory(run: PlannedRun, size: int) -> Problem:
    where = f"{run.workload.name} in {run.environment.label}"
    return Problem(OUT_OF_MEMORY, f"{where} ran out of memory at batch size {size}")


def _size(plan: Plan, run: PlannedRun) -> int | None:
    """The batch size of a run of a sweep over it."""
    size = run.workload.parameters.get(_BATCH_SIZE)
    return size if _BATCH_SIZE in plan.parts[run.part].sweep and isinstance(size, int) else None


def _sweep(run: PlannedRun) -> object:
    """What runs have in common that differ in nothing but the batch size."""
    workload = run.workload
    others = [item for item in sorted(workload.parameters.items()) if item[0] != _BATCH_SIZE]
    return run.part, run.environment.label, workload.name, repr(others)
