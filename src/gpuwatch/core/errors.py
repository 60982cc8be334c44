"""Errors that the user can fix, and the exit codes."""

from __future__ import annotations

import errno
from enum import IntEnum

REFUSED = {
    errno.EMFILE: "allow more: ulimit -n 4096",
    errno.ENFILE: "end other programs, or allow more: sysctl fs.file-max",
    errno.EAGAIN: "end other programs, or allow more processes and threads: ulimit -u",
    errno.ENOMEM: "end other programs, or allow more memory",
}
"""Hints for resources that the system refuses, by error number."""
NO_THREAD = "can't start new thread"
"""Message of the ``RuntimeError`` that Python raises when the system refuses a thread."""


class ExitCode(IntEnum):
    DONE = 0
    RUN_FAILED = 1
    USAGE = 2
    NOT_AVAILABLE = 3
    INTERRUPTED = 130


class GpuwatchError(Exception):
    """An error in one line: what and why, then the hint.

    ``hint`` is the command or action that helps; ``None`` if nothing does.
    """

    exit_code = ExitCode.RUN_FAILED

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        between = " " if self.message.endswith("?") else "; "
        return f"{self.message}{between}{self.hint}" if self.hint else self.message


class UsageError(GpuwatchError):
    """The command line asks for something that does not exist or contradicts itself."""

    exit_code = ExitCode.USAGE


class NotAvailable(GpuwatchError):
    """An environment, interpreter or device that was asked for is not available here."""

    exit_code = ExitCode.NOT_AVAILABLE


class StorageError(GpuwatchError):
    """A folder or file cannot be written or read: permission, space, no such place."""

    exit_code = ExitCode.USAGE


class NotASession(GpuwatchError):
    """The file is not a gpuwatch session, or is damaged beyond reading."""

    exit_code = ExitCode.USAGE


class NewerSchema(GpuwatchError):
    """The session was written by a newer gpuwatch."""

    exit_code = ExitCode.USAGE
