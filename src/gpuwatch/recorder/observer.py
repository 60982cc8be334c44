"""Following what a recorder does, in this process or detached from its terminal."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from gpuwatch.core import output
from gpuwatch.core.errors import ExitCode, GpuwatchError
from gpuwatch.session.study.study_folder import RECORDER_LOG


class Observer:
    """Follows one command of a recorder: each method reports an event. By default only messages
    are passed on."""

    def __init__(self, show: Callable[[str], None]) -> None:
        """``show`` gets each message for the user, on one line."""
        self._show = show
        self._shown: set[str] = set()

    def message(self, text: str) -> None:
        """A message for the user."""
        self._shown.add(text)
        self._show(text)

    def message_once(self, text: str) -> None:
        """A message for the user that is the same for many runs; shown with the first."""
        if text not in self._shown:
            self.message(text)

    def study_created(self, folder: Path) -> None:
        """The study's folder exists, or is resumed."""

    def next_run(self, text: str) -> None:
        """One of several runs comes next; ``text`` says which, and how long the rest takes."""

    def session_created(self, path: Path) -> None:
        """A run has started, and its session exists."""

    def reached(self, text: str) -> None:
        """Every minute of a run: how far it is."""

    def summary_written(self, text: str) -> None:
        """The summary was rewritten; ``text`` is its short form."""


class _Detached(Observer):
    """Names the first session to the waiting process, and writes to a log from then on."""

    def __init__(self, show: Callable[[str], None], waiting: int) -> None:
        super().__init__(show)
        self._waiting: int | None = waiting

    def next_run(self, text: str) -> None:
        self.message(text)

    def session_created(self, path: Path) -> None:
        if self._waiting is None:
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        log = output.private_file(str(path.parent / RECORDER_LOG), flags)
        os.dup2(log, 2)
        os.close(log)
        self._answer(b"0 " + os.fsencode(path))

    def ended(self, code: int) -> None:
        """The recorder ends; without a session its exit code is the answer."""
        if self._waiting is not None:
            self._answer(f"{code or 1} ".encode())

    def _answer(self, data: bytes) -> None:
        assert self._waiting is not None
        os.write(self._waiting, data)
        os.close(self._waiting)
        self._waiting = None


def detach(record: Callable[[Observer], int], show: Callable[[str], None]) -> tuple[ExitCode, str]:
    """Run ``record`` in the background and wait until it has its first session.

    ``show`` gets its messages. Returns ``DONE`` and the session's path; if the recorder ends before
    that, its exit code and the error that it could not print itself. Until the session exists it
    writes to this process's standard error. Call it before any thread starts.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    ready, waiting = os.pipe()
    if os.fork() == 0:
        status = int(ExitCode.RUN_FAILED)
        try:
            os.close(ready)
            status = _child(record, _Detached(show, waiting))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(waiting)
    with os.fdopen(ready, encoding="utf-8", errors="surrogateescape") as pipe:
        code, _, text = pipe.read().partition(" ")
    if not code:
        return ExitCode.RUN_FAILED, "the recorder ended before it could begin"
    return ExitCode(int(code)), text


def _child(record: Callable[[Observer], int], observer: _Detached) -> int:
    os.setsid()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    try:
        code = record(observer)
    except GpuwatchError as error:
        code = error.exit_code
        print(f"gpuwatch: error: {error}", file=sys.stderr)
    sys.stderr.flush()
    observer.ended(int(code))
    return int(code)
