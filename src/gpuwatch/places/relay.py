"""Prints what is committed to the sessions of a study, for a mirror at the other end of a pipe.

The mirror says first what it has. The relay ends when the other end is gone, or when nobody
records any more and everything was sent.
"""

from __future__ import annotations

import json
import os
import select
import sqlite3
import time
from pathlib import Path

from gpuwatch.core.errors import GpuwatchError, UsageError
from gpuwatch.core.models import JSON, Problem, mapping
from gpuwatch.places.frames import (
    GREETING,
    LONGEST_LINE,
    MOST_ATTEMPTS,
    BatchFrame,
    Beat,
    EndFrame,
    Frame,
    StudyFrame,
    encode,
)
from gpuwatch.session.mirror.changes import Changes, identity
from gpuwatch.session.mirror.content import digest_of
from gpuwatch.session.mirror.cursor import Cursor
from gpuwatch.session.mirror.cursor import parse as parse_cursor
from gpuwatch.session.study.attempts import ATTEMPTS, attempts
from gpuwatch.session.study.plan import PLAN
from gpuwatch.session.study.plan import read as read_plan
from gpuwatch.session.study.progress import recorder_of
from gpuwatch.session.study.study_folder import is_held

EVERY_SECONDS = 0.5
BEAT_SECONDS = 5.0


class Gone(Exception):
    """The other end is gone."""


class Pipe:
    """Lines to the other end, until it closes what it writes into, or no longer reads."""

    def __init__(self, source: int, target: int) -> None:
        self._source, self._target = source, target
        os.set_blocking(target, False)

    def read_line(self) -> bytes:
        """The line with which the other end begins.

        Raises:
            Gone
        """
        line = b""
        while not line.endswith(b"\n"):
            piece = os.read(self._source, 1 << 16)
            line += piece
            if not piece or len(line) > LONGEST_LINE:
                raise Gone
        return line

    def write(self, line: bytes) -> None:
        """
        Raises:
            Gone
        """
        rest = memoryview(line)
        while rest:
            readable, writable, _ = select.select([self._source], [self._target], [])
            if readable:
                self._look()
            if writable:
                try:
                    rest = rest[os.write(self._target, rest) :]
                except BlockingIOError:
                    continue
                except OSError:
                    raise Gone from None

    def wait(self, seconds: float) -> None:
        """
        Raises:
            Gone: within so many seconds.
        """
        if select.select([self._source], [], [], seconds)[0]:
            self._look()

    def _look(self) -> None:
        if not os.read(self._source, 1 << 16):
            raise Gone


class Relay:
    """One connection."""

    def __init__(self, folder: Path, pipe: Pipe, marker: str, every: float) -> None:
        """
        Raises:
            UsageError: the folder has no plan.
        """
        plan = read_plan(folder)
        if plan is None:
            raise UsageError(f"{folder} is not a study", "name the folder of a study")
        self._folder, self._pipe, self._every = folder, pipe, every
        self._marker = marker
        self._files = [run.file for run in plan.runs]
        self._cursors: dict[str, Cursor | None] = {}
        self._open: dict[str, Changes] = {}
        self._unreadable: set[str] = set()
        """Sessions that could not be read when they were last tried."""
        self._n = 0
        self._due = 0.0
        """When a sign of life is due, if nothing is told until then."""
        self._problems: dict[int, tuple[Problem, ...]] = {}
        self._attempts: tuple[str, ...] = ()
        self._versions: dict[str, JSON] = {}
        """By which the last version of a small file of the study is recognised."""
        self._done: dict[str, JSON] = {}
        """Which file was closed by its recorder and is sent, by name."""
        self._told: JSON = None
        """What was told of the study."""

    def run(self) -> None:
        """Relay until the other end is gone, or everything is sent."""
        try:
            self._cursors = _cursors(self._pipe.read_line())
            self._pipe.write(f"{GREETING} {self._marker}\n".encode())
            while not self._round():
                self._beat()
                self._pipe.wait(self._every)
        except Gone:
            pass
        finally:
            for changes in self._open.values():
                changes.close()

    def _round(self) -> bool:
        """Tell what is new; returns whether that was all."""
        # First: what a recorder commits before it ends is there when it has ended.
        held = is_held(self._folder) or recorder_of(self._folder) is not None
        self._tell_study(held)
        while self._tell_sessions(last=not held):
            pass
        if held or is_held(self._folder):
            return False
        self._send(EndFrame(self._next(), self._digests()))
        return True

    def _tell_study(self, held: bool) -> None:
        if self._changed(PLAN):
            plan = read_plan(self._folder)
            self._problems = dict(plan.problems) if plan is not None else self._problems
        if self._changed(ATTEMPTS):
            self._attempts = attempts(self._folder)[-MOST_ATTEMPTS:]
        told = held, self._problems, self._attempts
        if told != self._told:
            self._told = told
            self._send(StudyFrame(self._next(), *told))

    def _changed(self, name: str) -> bool:
        """Whether a small file of the study is another than when it was last asked for."""
        version = _version(self._folder / name)
        before = self._versions.get(name)
        self._versions[name] = version
        return version != before

    def _tell_sessions(self, *, last: bool) -> bool:
        """Tell one batch of each session; returns whether there is more."""
        more = False
        for file in self._files:
            changes = self._session(file)
            if changes is None:
                continue
            try:
                batch = changes.read(last=last)
            except (sqlite3.Error, GpuwatchError):
                # Opened anew, a file is readable whatever its recorder left when it died.
                self._forget(file)
                more |= file not in self._unreadable
                self._unreadable.add(file)
                continue
            self._unreadable.discard(file)
            self._cursors[file] = changes.cursor
            if batch is not None:
                self._send(BatchFrame(self._next(), batch))
            more |= changes.more
            if changes.closed:
                self._done[file] = changes.version
                self._forget(file)
        return more

    def _session(self, file: str) -> Changes | None:
        """The session of that name, if it is there and more may come of it."""
        changes = self._open.get(file)
        if changes is not None and changes.replaced:
            self._forget(file)
        path = self._folder / file
        version = identity(path)
        if version is None or version == self._done.get(file):
            return None
        if file not in self._open:
            try:
                self._open[file] = Changes(path, self._cursors.get(file))
            except GpuwatchError:
                return None  # it is tried again in the next round
        return self._open[file]

    def _forget(self, file: str) -> None:
        self._open.pop(file).close()

    def _digests(self) -> dict[str, str]:
        """The digest of each session; that of one that cannot be read is empty."""
        digests = {}
        for file in self._files:
            if identity(self._folder / file) is not None:
                try:
                    digests[file] = digest_of(self._folder / file, self._beat)
                except (sqlite3.Error, GpuwatchError):
                    digests[file] = ""
        return digests

    def _next(self) -> int:
        self._n += 1
        return self._n

    def _send(self, frame: Frame) -> None:
        self._pipe.write(encode(frame))
        self._due = time.monotonic() + BEAT_SECONDS

    def _beat(self) -> None:
        if time.monotonic() >= self._due:
            self._send(Beat(self._next()))


def _cursors(line: bytes) -> dict[str, Cursor | None]:
    """
    Raises:
        UsageError: the line is not what a mirror begins with.
    """
    try:
        found = mapping(json.loads(line))
        return {file: parse_cursor(document) for file, document in found.items()}
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise UsageError(
            "standard input does not begin with what a mirror has", "gpuwatch starts it by itself"
        ) from error


def _version(path: Path) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
