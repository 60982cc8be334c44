"""SIGTERM and SIGINT: report pending steps, then exit at once with 128 + the signal."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from types import FrameType
from typing import NoReturn

ONE_REQUEST_SECONDS = 1.0
"""Signals this soon after the first one belong to the same request: a scheduler signals every
process of a job, and so does a launcher that supervises some of them."""


class Stopped(BaseException):
    """Raised in the training loop by a signal handler."""


class Stop:
    """Handles SIGTERM and SIGINT of this process and of the loader's forked workers.

    Until `training` is set, a signal ends the process at once. After that it raises `Stopped`,
    delayed to `unshield` while `shielded` is set (a line is being written). Another signal over a
    second later ends the process at once.
    """

    def __init__(self) -> None:
        self.signum: int | None = None
        self.training = False
        self.shielded = False
        self._pid = os.getpid()
        self._asked = 0.0

    def install(self) -> None:
        """Install the handlers."""
        for signum in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signum, self._handle)

    def unshield(self) -> None:
        """End the shield. Raises `Stopped` if a signal arrived meanwhile."""
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
    """Exit without waiting for anything, after ending the loader's workers."""
    for child in multiprocessing.active_children():
        with contextlib.suppress(OSError, AttributeError):
            child.kill()
    os._exit(code)
