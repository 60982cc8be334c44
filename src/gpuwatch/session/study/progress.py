"""Progress of a study: the position of a run, the next run, and how all runs ended."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, mapping, number
from gpuwatch.core.processes import ProcessId
from gpuwatch.session.placement import read as read_placement
from gpuwatch.session.reading.reader import known_meta
from gpuwatch.session.reading.status import BAD, State, goes_on_alone, process_id, status
from gpuwatch.session.study.estimate import Timing, cell, times_of_study, timing_of_meta
from gpuwatch.session.study.plan import WARM_UP, Plan, PlannedRun, read, run_label
from gpuwatch.session.study.study_folder import is_held, not_run, sessions_in

_UNREADABLE, _DID_NOT_RUN = "unreadable", "did not run"
_ENDS = (*(state.value for state in State), _UNREADABLE, _DID_NOT_RUN)
_BAD = (*BAD, _UNREADABLE)


@dataclass(frozen=True)
class StudyPosition:
    """Position of a run in a study of several runs."""

    number: int
    """From 1 to ``total``."""
    total: int
    failed: int
    """Earlier runs that failed, were killed, lost or cannot be read."""
    not_run: int
    """Earlier runs that could not be started."""
    to_come: int
    """Later runs still to be started, without those known to be impossible."""
    block: int | None = None
    """Its block; 0 is the warm-up block. ``None``: its part has no blocks."""
    blocks: int | None = None
    """Judged blocks of its part."""
    part: str | None = None
    """The name of its part, if the study has several."""
    seconds_left: float | None = None
    """Until the end of the study's last run, estimated from its earlier runs; ``None``: not known,
    or nothing is running."""

    @property
    def words(self) -> str:
        return place_words(self.number, self.total, self.block, self.blocks)


@dataclass(frozen=True)
class Following:
    """The next run of a study."""

    place: int
    """From 1 to ``total``."""
    total: int
    label: str
    path: Path
    """Its session, which exists once it has begun."""


def place(path: Path) -> StudyPosition | None:
    """The position of session ``path`` in its study; ``None`` unless it is one of several planned
    runs."""
    plan = read(path.parent)
    run = _run(plan, path.name)
    if plan is None or run is None or len(plan.runs) < 2:
        return None
    metas = {session.name: known_meta(session) for session in sessions_in(path.parent)}
    before = plan.runs[: run.index - 1]
    ends = _ends(path.parent, before, metas)
    to_come = [planned for planned in plan.runs[run.index :] if planned.index not in plan.problems]
    part = plan.parts[run.part]
    return StudyPosition(
        number=run.index,
        total=len(plan.runs),
        failed=sum(ends[end] for end in _BAD),
        not_run=ends[_DID_NOT_RUN],
        to_come=len(to_come),
        block=run.block,
        blocks=part.blocks,
        part=part.name if len(plan.parts) > 1 else None,
        seconds_left=_left(path, run, to_come, metas),
    )


def place_words(number: int, total: int, block: int | None, blocks: int | None) -> str:
    """``run 5 of 24 (block 1 of 7)``."""
    words = f"run {number} of {total}"
    if block is None:
        return words
    return f"{words} ({'warm-up block' if block == WARM_UP else f'block {block} of {blocks}'})"


def seconds_to_go(
    runs: Sequence[PlannedRun], timings: Sequence[Timing], pause: float | None = None
) -> float | None:
    """How long ``runs`` will take, estimated from other runs of the study; ``None``: not known.

    ``pause``: an additional observed pause between two runs, in seconds, not in ``timings`` yet.
    """
    known = times_of_study(timings)
    if pause is not None:
        known = replace(known, pauses=[*known.pauses, pause])
    return known.left([cell(run) for run in runs], max(0, len(runs) - 1))


def tally(folder: Path) -> str | None:
    """``3 runs: 1 finished, 1 failed, 1 did not run``; ``None`` while the study goes on, or if its
    plan has fewer than two runs."""
    plan = read(folder)
    if plan is None or len(plan.runs) < 2 or recorder_alive(folder):
        return None
    ends = _ends(
        folder, plan.runs, {session.name: known_meta(session) for session in sessions_in(folder)}
    )
    if any(ends[state.value] for state in (State.QUEUED, State.STARTING, State.RUNNING)):
        return None
    counts = ", ".join(f"{ends[end]} {end}" for end in _ENDS if ends[end])
    return f"{len(plan.runs)} runs: {counts}"


def following(path: Path) -> Following | None:
    """The run after session ``path`` in its study, skipping runs that cannot start."""
    plan = read(path.parent)
    run = _run(plan, path.name)
    if plan is None or run is None:
        return None
    for planned in plan.runs[run.index :]:
        if planned.index not in plan.problems:
            label = run_label(plan, planned)
            return Following(planned.index, len(plan.runs), label, path.parent / planned.file)
    return None


def recorder_alive(folder: Path) -> bool:
    """Whether a recorder of the study still runs, also before its first session: here, or at its
    place as somebody here notes."""
    placement = read_placement(folder)
    if placement is not None:
        return placement.going_on and placement.followed
    return recorder_of(folder) is not None or is_held(folder)


def recorder_of(folder: Path) -> ProcessId | None:
    """The process that records the study here, from its first session on, also between runs."""
    for path in reversed(sessions_in(folder)):
        recorder = process_id((known_meta(path) or {}).get("recorder"))
        if recorder is not None and recorder.alive():
            return recorder
    return None


def without_recorder(folder: Path) -> Path | None:
    """The session of a run of the study that goes on here although its recorder died."""
    sessions = sessions_in(folder)
    return next((path for path in sessions if goes_on_alone(known_meta(path) or {})), None)


def _run(plan: Plan | None, file: str) -> PlannedRun | None:
    return next((run for run in plan.runs if run.file == file), None) if plan else None


def _left(
    path: Path,
    run: PlannedRun,
    rest: Sequence[PlannedRun],
    metas: Mapping[str, Mapping[str, JSON] | None],
) -> float | None:
    """Seconds until the current ``run`` and the ``rest`` after it have ended."""
    meta = metas.get(path.name)
    if meta is None or not status(meta, path).live:
        return None
    timings = [
        timing
        for name, other in metas.items()
        if other is not None and (timing := timing_of_meta(other, path.with_name(name))) is not None
    ]
    started = number(mapping(meta.get("clock")).get("unix_ns"))
    current, all_left = seconds_to_go([run], timings), seconds_to_go([run, *rest], timings)
    if current is None or all_left is None or started is None:
        return None
    return all_left - min(current, max(0.0, time.time() - started / 1e9))


def _ends(
    folder: Path, runs: Sequence[PlannedRun], metas: Mapping[str, Mapping[str, JSON] | None]
) -> Counter[str]:
    """Count the ends of ``runs``, according to their sessions."""
    ends: Counter[str] = Counter()
    in_part = {each.index for each in not_run(folder) if each.in_part}
    for run in runs:
        if run.file not in metas and run.index in in_part:
            ends[State.IN_PART.value] += 1
        elif run.file not in metas:
            ends[_DID_NOT_RUN] += 1
        elif (meta := metas[run.file]) is None:
            ends[_UNREADABLE] += 1
        else:
            ends[status(meta, folder / run.file).state.value] += 1
    return ends
