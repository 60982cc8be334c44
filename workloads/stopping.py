"""SIGTERM and SIGINT: report what is pending, then leave at once with 128 + the signal."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from types import FrameType
from typing import NoReturn

ONE_REQUEST_SECONDS = 1.0
"""Signals that follow the first one so soon ask for nothing new: a scheduler asks every process of
a job, and so does whoever watches over one of them."""


class Stopped(BaseException):
    """Raised in the training by a signal, between two instructions of it."""


class Stop:
    """Handles SIGTERM and SIGINT of this process and of the loader's workers it forks.

    Before `training` is set a signal ends the process at once. While it is set, a signal raises
    `Stopped`; while also `shielded` (a line is being written), only once the shield is taken away
    by `unshield`. One more, over a second later, ends the process at once.
    """

    def __init__(self) -> None:
        self.signum: int | None = None
        self.training = False
        self.shielded = False
        self._pid = os.getpid()
        self._asked = 0.0

    def install(self) -> None:
        """Handle the two signals from now on."""
        for signum in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signum, self._handle)

    def unshield(self) -> None:
        """End the shield. Raises `Stopped` if a signal came meanwhile."""
        self.shielded = False
        if self.signum is not None:
            raise Stopped

    def _handle(self, signum: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        first = self.signum is None
        if first:
            self.signum, self._asked = signum, now
        again = now - self._asked > ONE_REQUEST_SECONDS
        if again or not self.training or os.getpid() != self._pid:
            leave(128 + signum)
        if first and not self.shielded:
            raise Stopped


def leave(code: int) -> NoReturn:
    """End the process without waiting for anything; the loader's workers go first."""
    for child in multiprocessing.active_children():
        with contextlib.suppress(OSError, AttributeError):
            child.kill()
    os._exit(code)
