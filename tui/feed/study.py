"""The study of a feed's session: its runs and the comparison so far."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from gpuwatch.session import placement
from gpuwatch.session.placement import JobState
from gpuwatch.session.reading.reader import known_meta
from gpuwatch.session.reading.status import status
from gpuwatch.session.study.plan import Plan, read, run_label
from gpuwatch.session.study.progress import StudyPosition, following, place, recorder_alive, tally
from gpuwatch.session.study.study_folder import SUMMARY_JSON, is_held
from gpuwatch.session.study.summary import Contrast, contrasts
from gpuwatch.tui.feed.snapshot import StudyRun, StudyStrip, UpcomingRuns

_SECONDS = 30.0
"""Least time between two reads of the study during a run."""
_BETWEEN_SECONDS = 1.0
"""Least time between two reads of the study after a run."""
_SHARE, _BETWEEN_SHARE = 0.01, 0.05
"""Most of the time that reading may take, during a run and after it."""
TO_COME, DID_NOT_RUN, UNREADABLE = "to come", "did not run", "unreadable"

_Stamp = tuple[int, int, int]
"""Inode, size and modification time of a file: they change with its content."""


class CurrentStudy:
    """Runs and comparison of a study, read again from time to time."""

    def __init__(self, path: Path) -> None:
        self.place: StudyPosition | None = None
        self.tally = ""
        """States of all runs; empty while the study is recorded."""
        self.strip: StudyStrip | None = None
        self._path = path
        self._next_read = self._next_tally = 0.0
        self._states: dict[str, tuple[_Stamp, str]] = {}
        """States of finished runs by file name."""
        self._contrasts: tuple[Contrast, ...] = ()
        self._summary_stamp: _Stamp | None = None
        """Stamp of the summary file with the comparison."""
        self._read_plan()

    def update(self, *, live: bool) -> None:
        """Read the study again if it is time; ``live``: the run has not ended."""
        if self.place is None:
            return
        if live:
            self.tally = ""
            if time.monotonic() >= self._next_read:
                self._read_plan()
        else:
            self.place = replace(self.place, seconds_left=None)
            began = time.monotonic()
            if not self.tally and began >= self._next_tally:
                self.tally = tally(self._path.parent) or ""
                self.strip = self._strip()
                taken = time.monotonic() - began
                self._next_tally = began + max(_BETWEEN_SECONDS, taken / _BETWEEN_SHARE)

    def upcoming(self, *, live: bool) -> UpcomingRuns | None:
        """The next runs after a finished one; ``None``: the run is live, or there are none."""
        if live or self.place is None or not goes_on(self._path.parent):
            return None
        return upcoming_runs(self._path)

    def _read_plan(self) -> None:
        began = time.monotonic()
        self.place = place(self._path)
        self.strip = self._strip() if self.place is not None else None
        self._next_read = began + max(_SECONDS, (time.monotonic() - began) / _SHARE)

    def _strip(self) -> StudyStrip | None:
        plan = read(self._path.parent)
        runs = () if plan is None else plan.runs
        own = next((run for run in runs if run.file == self._path.name), None)
        if plan is None or own is None:
            return None
        stamp = _stamp(self._path.parent / SUMMARY_JSON)
        if stamp != self._summary_stamp:
            self._summary_stamp, self._contrasts = stamp, contrasts(self._path.parent)
        return StudyStrip(
            runs=tuple(
                StudyRun(run_label(plan, run), run.block, self._state(plan, run.index, run.file))
                for run in plan.runs
                if run.part == own.part
            ),
            at=sum(1 for run in plan.runs[: own.index - 1] if run.part == own.part),
            blocks=plan.parts[own.part].blocks,
            contrasts=self._contrasts,
        )

    def _state(self, plan: Plan, index: int, file: str) -> str:
        """State of a run; a finished one is read only once."""
        path = self._path.parent / file
        stamp = _stamp(path)
        if stamp is None:
            return DID_NOT_RUN if index in plan.problems else TO_COME
        known = self._states.get(file)
        if known is not None and known[0] == stamp:
            return known[1]
        meta = known_meta(path)
        if meta is None:
            return UNREADABLE
        current = status(meta, path)
        if not current.live:
            self._states[file] = stamp, current.state.value
        return current.state.value


def _stamp(path: Path) -> _Stamp | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


# The runs that follow.


def goes_on(folder: Path) -> bool:
    """Whether a recorder on this host runs the study, also before and between its runs."""
    return is_held(folder) or recorder_alive(folder)


def upcoming_runs(path: Path) -> UpcomingRuns | None:
    """The runs after the session ``path``; ``None``: it is the last one."""
    newest = None
    next_run = following(path)
    while next_run is not None and next_run.path.exists():
        newest = next_run.path
        meta = known_meta(newest)  # one that cannot be read yet was only just created
        if meta is None or status(meta, newest).live:
            break
        next_run = following(newest)
    if newest is None and next_run is None:
        return None
    if newest is not None:
        return UpcomingRuns(newest, None)
    known = placement.read(path.parent)
    waits = known is not None and known.state in (JobState.QUEUED, JobState.UNKNOWN)
    return UpcomingRuns(None, next_run, known.text if known is not None and waits else "")
