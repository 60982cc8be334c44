"""How far a study is: where a run stands in it, what comes after, what became of all of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpuwatch.errors import GpuwatchError
from gpuwatch.models import JSON, mapping
from gpuwatch.session.reader import SessionReader
from gpuwatch.session.status import State, process_id, status
from gpuwatch.session.study import PLAN, NotRun, not_run, sessions_in

_LARGEST_PLAN = 4 << 20
_UNREADABLE, _DID_NOT_RUN = "unreadable", "did not run"
_ENDS = (*(state.value for state in State), _UNREADABLE, _DID_NOT_RUN)
_BAD = frozenset({"failed", "killed", "lost", _UNREADABLE})


@dataclass(frozen=True)
class Place:
    """Where a run stands among the several of its study."""

    number: int
    """Counts from 1, among ``total`` runs."""
    total: int
    failed: int
    """Runs before it that failed, were killed or lost."""
    not_run: int
    """Runs before it that could not be started."""
    to_come: int
    """Runs after it that are to be started; those known to be impossible are left out."""


@dataclass(frozen=True)
class Following:
    """The run that a study has after another one."""

    place: int
    """Counts from 1, among ``total`` runs."""
    total: int
    label: str
    path: Path
    """Its session, there once it has begun."""


def place(path: Path) -> Place | None:
    """Where ``path`` stands in its study; ``None`` without a plan that has it among several."""
    plan = _plan(path.parent)
    names = [_file(run) for run in _runs(plan)]
    if path.name not in names or len(names) < 2:
        return None
    at = names.index(path.name)
    problems = mapping(plan.get("problems"))
    before = set(names[:at])
    ends = _ends(names[:at], [each for each in sessions_in(path.parent) if each.name in before])
    later = range(at + 1, len(names))
    return Place(
        number=at + 1,
        total=len(names),
        failed=sum(ends[end] for end in _BAD),
        not_run=ends[_DID_NOT_RUN],
        to_come=sum(1 for index in later if names[index] and not problems.get(str(index + 1))),
    )


def tally(folder: Path) -> str | None:
    """``3 runs: 1 finished, 1 failed, 1 did not run``; ``None`` while the study goes on, and
    without a plan of several runs."""
    names = [_file(run) for run in _runs(_plan(folder))]
    if len(names) < 2 or recorder_alive(folder):
        return None
    ends = _ends(names, sessions_in(folder))
    if any(ends[state.value] for state in (State.QUEUED, State.STARTING, State.RUNNING)):
        return None
    told = ", ".join(f"{ends[end]} {end}" for end in _ENDS if ends[end])
    return f"{len(names)} runs: {told}"


def unstarted(folder: Path) -> list[NotRun]:
    """The runs that did not take place, of a plan that may be anybody's."""
    return not_run(folder) if _plan(folder) else []


def following(path: Path) -> Following | None:
    """The next run of the study that ``path`` belongs to; one that cannot run is left out."""
    plan = _plan(path.parent)
    runs = _runs(plan)
    names = [_file(run) for run in runs]
    if path.name not in names:
        return None
    problems = mapping(plan.get("problems"))
    for place in range(names.index(path.name) + 1, len(names)):
        name = names[place]
        if name and not problems.get(str(place + 1)):
            label = mapping(mapping(runs[place]).get("environment")).get("label")
            return Following(place + 1, len(names), str(label), path.parent / name)
    return None


def recorder_alive(folder: Path) -> bool:
    """Whether a recorder of the study still runs here: more may come."""
    for path in reversed(sessions_in(folder)):
        try:
            with SessionReader(path) as reader:
                recorder = process_id(reader.meta().get("recorder"))
        except GpuwatchError:
            continue
        if recorder is not None and recorder.alive():
            return True
    return False


def _ends(names: Sequence[str], sessions: Sequence[Path]) -> Counter[str]:
    """How many of the runs ``names`` ended how, as their sessions tell."""
    states = {path.name: _state(path) for path in sessions}
    return Counter(states.get(name, _DID_NOT_RUN) for name in names)


def _state(path: Path) -> str:
    try:
        with SessionReader(path) as reader:
            return status(reader.meta(), path).state.value
    except GpuwatchError:
        return _UNREADABLE


def _plan(folder: Path) -> dict[str, JSON]:
    if not (folder / PLAN).is_file():  # a pipe of that name would be waited for
        return {}
    try:
        with (folder / PLAN).open(encoding="utf-8") as file:
            plan = json.loads(file.read(_LARGEST_PLAN))
    except (OSError, ValueError, RecursionError):
        return {}
    return plan if isinstance(plan, dict) else {}


def _runs(plan: dict[str, JSON]) -> list[JSON]:
    runs = plan.get("runs")
    return runs if isinstance(runs, list) else []


def _file(run: JSON) -> str:
    """The name of a run's session; empty where the plan names no plain file."""
    name = str(mapping(run).get("file") or "")
    return name if name == Path(name).name else ""
