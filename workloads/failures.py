"""Why a workload stops: one class for each kind of fix."""

from __future__ import annotations


class Failure(Exception):
    """A stop with a reason, reported as an ``error`` event and one line on stderr.

    ``kind`` is the event's kind, ``exit_code`` the process's exit code, ``hint`` the fix; message
    and hint are one line each.
    """

    kind = "run"
    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        self.message = " ".join(message.split())
        self.hint = " ".join(hint.split())
        super().__init__(self.message)


class UsageFailure(Failure):
    """The command asks for something that does not exist or is impossible."""

    kind = "usage"
    exit_code = 2


class EnvironmentFailure(Failure):
    """The environment lacks what the command needs: torch, a driver, a device."""

    kind = "environment"
    exit_code = 3


class RunFailure(Failure):
    """The run began but could not continue: out of memory, a loader's worker died."""
