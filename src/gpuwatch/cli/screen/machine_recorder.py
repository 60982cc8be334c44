"""The home screen's recorder, started before the words of the command line are understood.

Its first sample is what the full screen waits for, and it loads while everything else does.
"""

from __future__ import annotations

from gpuwatch.cli.options.global_options import command_at
from gpuwatch.cli.screen import terminal
from gpuwatch.tui.feed.machine_recorder import MachineRecorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_begun: MachineRecorder | None = None


class Begun:
    """Within it the recorder is there, where these words ask for the home screen and tell its
    interval plainly; it ends with it, unless it was taken."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._arguments = arguments

    def __enter__(self) -> None:
        global _begun
        home = command_at(self._arguments) == len(self._arguments)
        interval = _interval(self._arguments) if home else None
        if interval is not None:
            try:
                _begun = MachineRecorder(interval)
            except OSError:
                return  # what is wrong is told when it is tried again

    def __exit__(self, *_: object) -> None:
        _close()


def recorder(interval: float) -> MachineRecorder:
    """The one that was started, or if it was for another interval, or for none, a new one."""
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


def _interval(arguments: Sequence[str]) -> float | None:
    """Seconds; ``None`` where it is for the parser of the command line to say."""
    if not any(word.startswith("--i") for word in arguments):
        return terminal.REFRESH_SECONDS
    if list(arguments[:1]) != ["--interval"] or len(arguments) != 2:
        return None
    try:
        seconds = float(arguments[1])
    except ValueError:
        return None
    return seconds if terminal.in_range(seconds) else None
