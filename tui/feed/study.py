"""What the feed knows of the study around its session."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from gpuwatch.core.errors import GpuwatchError
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.status import status
from gpuwatch.session.study.plan import Plan, case_label, read, unique
from gpuwatch.session.study.progress import StudyPosition, place, tally
from gpuwatch.session.study.study_folder import SUMMARY_JSON
from gpuwatch.session.study.summary import Contrast, contrasts
from gpuwatch.tui.feed.next_run import UpcomingRuns, ahead, goes_on
from gpuwatch.tui.feed.snapshot import StudyRun, StudyStrip

_SECONDS = 30.0
"""Between two looks at how long the study still takes, at least."""
_BETWEEN_SECONDS = 1.0
"""The same between two runs of the study and at its end."""
_SHARE, _BETWEEN_SHARE = 0.01, 0.05
"""Of the time, that looking may take, and the same between two runs."""
TO_COME, DID_NOT_RUN, UNREADABLE = "to come", "did not run", "unreadable"

_Stamp = tuple[int, int, int]
"""Inode, size and time of a file: the same stamp, the same content."""


class StudyNow:
    """The other sessions are read now and then while the run goes on, and once it is over."""

    def __init__(self, path: Path) -> None:
        self.place: StudyPosition | None = None
        self.tally = ""
        """Empty while the study goes on."""
        self.strip: StudyStrip | None = None
        self._path = path
        self._next = self._after = 0.0
        self._states: dict[str, tuple[_Stamp, str]] = {}
        """Of runs that are over, by file."""
        self._found: tuple[Contrast, ...] = ()
        self._stamp: _Stamp | None = None
        """Of the summary that the comparison so far was read from."""
        self._read()

    def look(self, *, live: bool) -> None:
        """Sum the study up once nobody records it any more; ``live``: the session still grows."""
        if self.place is None:
            return
        if live:
            self.tally = ""
            if time.monotonic() >= self._next:
                self._read()
        else:
            self.place = replace(self.place, seconds_left=None)
            if not self.tally and time.monotonic() >= self._after:
                self._sum_up()

    def ahead(self, *, live: bool) -> UpcomingRuns | None:
        """What comes after the session, once it is over and while a recorder goes through the
        study."""
        if live or self.place is None or not goes_on(self._path.parent):
            return None
        return ahead(self._path)

    def _read(self) -> None:
        began = time.monotonic()
        self.place = place(self._path)
        self.strip = self._strip() if self.place is not None else None
        took = time.monotonic() - began
        self._next = began + max(_SECONDS, took / _SHARE)

    def _sum_up(self) -> None:
        began = time.monotonic()
        self.tally = tally(self._path.parent) or ""
        self.strip = self._strip()
        took = time.monotonic() - began
        self._after = began + max(_BETWEEN_SECONDS, took / _BETWEEN_SHARE)

    def _strip(self) -> StudyStrip | None:
        plan = read(self._path.parent)
        own = (
            next((run for run in plan.runs if run.file == self._path.name), None) if plan else None
        )
        if plan is None or own is None:
            return None
        stamp = _stamp(self._path.parent / SUMMARY_JSON)
        if stamp != self._stamp:
            self._stamp, self._found = stamp, contrasts(self._path.parent)
        labels = _labels(plan)
        return StudyStrip(
            runs=tuple(
                StudyRun(run.index, labels[at], run.block, self._state(plan, run.index, run.file))
                for at, run in enumerate(plan.runs)
                if run.part == own.part
            ),
            at=sum(1 for run in plan.runs[: own.index - 1] if run.part == own.part),
            blocks=plan.parts[own.part].blocks,
            found=self._found,
        )

    def _state(self, plan: Plan, index: int, file: str) -> str:
        """A run that is over is read once."""
        path = self._path.parent / file
        stamp = _stamp(path)
        if stamp is None:
            return DID_NOT_RUN if index in plan.problems else TO_COME
        known = self._states.get(file)
        if known is not None and known[0] == stamp:
            return known[1]
        try:
            with SessionReader(path) as reader:
                found = status(reader.meta(), path)
        except GpuwatchError:
            return UNREADABLE
        if not found.live:
            self._states[file] = stamp, found.state.value
        return found.state.value


def _labels(plan: Plan) -> list[str]:
    """Each run's environment, and its case where its part has several."""
    found = []
    for run in plan.runs:
        cases = plan.parts[run.part].workloads
        case = "" if len(unique(cases)) < 2 else f"{case_label(run.workload, cases)} in "
        found.append(f"{case}{run.environment.label}")
    return found


def _stamp(path: Path) -> _Stamp | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
