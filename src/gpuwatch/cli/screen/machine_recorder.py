"""The home screen's recorder, started before the command line is parsed.

The full screen waits for its first sample, so it loads in parallel with everything else.
"""

from __future__ import annotations

from gpuwatch.cli.options.global_options import command_at
from gpuwatch.cli.screen import terminal
from gpuwatch.tui.feed.machine_recorder import MachineRecorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_ELSEWHERE = {"-h", "--help", "--version", "--record", "--plain", "--"}
"""Arguments with which no screen is shown."""

_begun: MachineRecorder | None = None


class Begun:
    """Context with a running recorder if the arguments ask for the home screen at a valid interval.

    The recorder ends with the context, unless :func:`recorder` has taken it.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        self._arguments = arguments

    def __enter__(self) -> None:
        global _begun
        interval = _interval(self._arguments) if _home(self._arguments) else None
        if interval is not None:
            try:
                _begun = MachineRecorder(interval)
            except OSError:
                return  # the error is reported on the next try

    def __exit__(self, *_: object) -> None:
        _close()


def recorder(interval: float) -> MachineRecorder:
    """The recorder already started, or a new one if there is none with this interval (s)."""
    global _begun
    if _begun is None or _begun.interval != interval:
        _close()
        return MachineRecorder(interval)
    begun, _begun = _begun, None
    return begun


def _close() -> None:
    global _begun
    if _begun is not None:
        begun, _begun = _begun, None
        begun.close()


def _home(arguments: Sequence[str]) -> bool:
    """Whether the arguments ask for the home screen, and the terminal can show it."""
    named = command_at(arguments) < len(arguments)
    places = any(word.startswith("--o") for word in arguments)
    elsewhere = places or bool(_ELSEWHERE.intersection(arguments))
    return not named and not elsewhere and terminal.usable()


def _interval(arguments: Sequence[str]) -> float | None:
    """The interval in s; ``None`` if only the argument parser can tell."""
    if not any(word.startswith("--i") for word in arguments):
        return terminal.REFRESH_SECONDS
    if list(arguments[:1]) != ["--interval"] or len(arguments) != 2:
        return None
    try:
        seconds = float(arguments[1])
    except ValueError:
        return None
    return seconds if terminal.in_range(seconds) else None
