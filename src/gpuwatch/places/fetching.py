"""One connection that fetches a study's sessions as they grow."""

from __future__ import annotations

import contextlib
import secrets
import sys
import time
from collections.abc import Iterator, Mapping

from gpuwatch.core.errors import NotAvailable, StorageError
from gpuwatch.core.models import Problem
from gpuwatch.core.text import clean
from gpuwatch.places.base import STUDY, Gone, Job, Place
from gpuwatch.places.frames import BadFrame, BatchFrame, EndFrame, Frame, StudyFrame
from gpuwatch.places.mirror import Mirror
from gpuwatch.places.relay_lines import RelayLines
from gpuwatch.session.study import study_folder
from gpuwatch.session.study.plan import read as read_plan

_SHORTEST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
"""Seconds after a relay had nothing more to tell, until another is started: the job may go on."""
_LONGEST_TEXT = 1_000
_MOST_PROBLEMS = 20
"""Kept of one run."""


class Fetching:
    """A relay there, and the study's folder here as its mirror."""

    def __init__(self, place: Place, job: Job) -> None:
        """
        Raises:
            NotAvailable: the relay does not begin, or the folder here cannot be read.
        """
        plan = read_plan(job.folder)
        self._runs = {run.index: run.file for run in plan.runs} if plan is not None else {}
        self._place, self._job = place, job
        self.whole = False
        """Whether all is here, as the relay's digests prove."""
        self.asks = False
        """Whether what arrived last says that the recorder is gone."""
        self._problems: Mapping[int, tuple[Problem, ...]] = {}
        self._fetched_again: set[str] = set()
        """Sessions that arrived otherwise than they are there."""
        self._pause = _SHORTEST_PAUSE
        self._held: bool | None = None
        with _local_trouble():
            self._mirror = Mirror(job.folder, frozenset(self._runs.values()))
        self._connection = _relay(place, job)

    def __enter__(self) -> Fetching:
        self._connection.begin(self._mirror)
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        self._mirror.close()

    def take(self, seconds: float) -> bool:
        """Take what arrives within ``seconds``; returns whether anything did but a sign of life.

        Raises:
            NotAvailable: the connection is lost, or brings what is no frame.
        """
        until = time.monotonic() + seconds
        moved = False
        self.asks = self._connection.ended_at is not None
        while (left := until - time.monotonic()) > 0:
            if self._connection.ended_at is not None:
                self._begin_again(self._connection.ended_at)
                time.sleep(min(left, 0.2))
                continue
            try:
                frame = self._connection.frame(left)
                if frame is None:
                    break
                with _local_trouble():
                    moved |= self._apply(frame)
            except BadFrame as error:
                raise NotAvailable(f"what arrived cannot be read: {error}") from error
            if self._connection.ended_at is not None:
                break
        return moved

    def _begin_again(self, ended_at: float) -> None:
        """Start another relay after the last had told all: a job that is not over may go on, and
        what arrived otherwise is fetched again."""
        if time.monotonic() - ended_at < self._pause:
            return
        try:
            following = _relay(self._place, self._job)
        except Gone:  # a part of the job is over, and the next has not begun
            self._connection.ended_at = time.monotonic()
            return
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        self._connection.close()
        self._connection = following
        self._connection.begin(self._mirror)

    def _apply(self, frame: Frame) -> bool:
        """Do what a frame says; returns whether it was more than a sign of life."""
        if isinstance(frame, BatchFrame):
            self.whole = False
            self._pause = _SHORTEST_PAUSE
            self._mirror.take(frame.batch)
            return True
        if isinstance(frame, StudyFrame):
            self.asks = not frame.held
            before, self._held = self._held, frame.held
            return self._note(frame.problems) or frame.held != before
        if isinstance(frame, EndFrame):
            self.asks = True
            self._end(frame)
        return False

    def _end(self, frame: EndFrame) -> None:
        self._connection.ended_at = time.monotonic()
        differing = self._mirror.differing(frame)
        self.whole = not differing
        for file in differing:
            if file in self._fetched_again:
                continue
            self._fetched_again.add(file)
            print(
                f"gpuwatch: error: {file} did not arrive as it is there; it is fetched again",
                file=sys.stderr,
                flush=True,
            )
            self._mirror.drop(file)
            self._pause = _SHORTEST_PAUSE

    def _note(self, problems: Mapping[int, tuple[Problem, ...]]) -> bool:
        """Write into the plan here why runs were not started there; returns whether it changed."""
        found = {
            index: tuple(map(_cleaned, those[:_MOST_PROBLEMS]))
            for index, those in problems.items()
            if index in self._runs
        }
        if found == self._problems:
            return False
        gone = dict.fromkeys(self._problems.keys() - found.keys(), ())
        study_folder.note(self._job.folder, {**gone, **found})
        self._problems = found
        return True


def _relay(place: Place, job: Job) -> RelayLines:
    """
    Raises:
        NotAvailable: it does not begin.
    """
    marker = secrets.token_hex(16)
    return RelayLines(place.open(job, ["relay", STUDY, "--marker", marker]), marker)


def _cleaned(problem: Problem) -> Problem:
    hint = None if problem.hint is None else clean(problem.hint, _LONGEST_TEXT)
    return Problem(clean(problem.code, 100), clean(problem.text, _LONGEST_TEXT), hint)


@contextlib.contextmanager
def _local_trouble() -> Iterator[None]:
    """A folder here that cannot be written ends the connection, not the follower."""
    try:
        yield
    except StorageError as error:
        raise NotAvailable(error.message, error.hint) from error
