"""Whether there is a terminal that a screen can be drawn on, and how often that is done.

It imports next to nothing, for the first picture waits for it.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

REFRESH_SECONDS = 1.0
_SHORTEST, _LONGEST = 0.1, 60.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of every screen that follows something: home, attach, replay."""
    parser.add_argument(
        "--interval",
        type=float,
        metavar="SECONDS",
        help=f"how often the screen is drawn anew (default {REFRESH_SECONDS:g}); with --plain "
        "between two lines",
    )


def refresh(arguments: argparse.Namespace) -> float:
    """Seconds between two pictures, as asked for, or as usual.

    Raises:
        UsageError: less than a tenth of a second, or more than a minute.
    """
    seconds = REFRESH_SECONDS if arguments.interval is None else float(arguments.interval)
    if in_range(seconds):
        return seconds
    from gpuwatch.core.errors import UsageError

    raise UsageError(
        f"--interval {seconds:g} is out of range", f"{_SHORTEST:g} to {_LONGEST:g} seconds"
    )


def in_range(seconds: float) -> bool:
    """Whether a screen can be drawn anew so often."""
    return _SHORTEST <= seconds <= _LONGEST


def usable() -> bool:
    """Standard input and output are a terminal, and it can place text; or a browser draws."""
    if os.environ.get("TEXTUAL_DRIVER"):
        return True
    capable = os.environ.get("TERM", "") not in ("", "dumb", "unknown")
    return sys.stdin.isatty() and sys.stdout.isatty() and capable


def columns() -> int:
    """The terminal's width, 80 where there is none; the variable COLUMNS comes before both."""
    import shutil

    return shutil.get_terminal_size((80, 24)).columns


def require(instead: str) -> None:
    """Raise UsageError, naming the command to use ``instead``, where no screen can be drawn."""
    if usable():
        return
    from gpuwatch.core.errors import UsageError

    if sys.stdin.isatty() and sys.stdout.isatty():
        what = f"a screen cannot be drawn with TERM={os.environ.get('TERM', '')!r}"
        raise UsageError(what, f"set TERM=xterm-256color, or: {instead}")
    raise UsageError("the screen needs a terminal", f"or: {instead}")
