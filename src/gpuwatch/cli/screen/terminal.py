"""Whether the terminal can show a screen, and how often the screen is drawn."""

from __future__ import annotations

import argparse
import os
import shutil
import sys

from gpuwatch.core.errors import UsageError

REFRESH_SECONDS = 1.0
_SHORTEST, _LONGEST = 0.1, 60.0
_NO_SCREEN = ("", "dumb", "unknown")
"""Values of TERM."""


def add_arguments(parser: argparse.ArgumentParser, *, plain: bool = True) -> None:
    """The options of the home, attach, replay and demo screens; ``plain``: it has ``--plain``."""
    parser.add_argument(
        "--interval",
        type=float,
        metavar="SECONDS",
        help=f"time between screen updates (default {REFRESH_SECONDS:g})"
        + ("; with --plain between two lines" if plain else ""),
    )


def refresh(arguments: argparse.Namespace) -> float:
    """The time between screen updates in s, from ``--interval`` or the default.

    Raises:
        UsageError: the interval is below 0.1 s or above 60 s.
    """
    seconds = REFRESH_SECONDS if arguments.interval is None else float(arguments.interval)
    if _SHORTEST <= seconds <= _LONGEST:
        return seconds
    raise UsageError(
        f"--interval {seconds:g} is out of range", f"{_SHORTEST:g} to {_LONGEST:g} seconds"
    )


def usable() -> bool:
    """Whether stdin and stdout are a terminal that can position text, or a browser draws. A cell
    of a notebook pretends to be one."""
    if os.environ.get("TEXTUAL_DRIVER"):
        return True
    if "JPY_PARENT_PID" in os.environ:  # Jupyter's kernels
        return False
    capable = os.environ.get("TERM", "") not in _NO_SCREEN
    return sys.stdin.isatty() and sys.stdout.isatty() and capable


def columns() -> int:
    """The terminal's width in columns; COLUMNS overrides it, and 80 is the fallback."""
    return shutil.get_terminal_size((80, 24)).columns


def colours() -> bool:
    """Whether what is printed may have colours."""
    plain = "NO_COLOR" in os.environ or os.environ.get("TERM", "") in _NO_SCREEN
    return sys.stdout.isatty() and not plain


def require(instead: str) -> None:
    """Raise UsageError if no screen can be drawn; ``instead`` is the command to suggest."""
    if usable():
        return
    if sys.stdin.isatty() and sys.stdout.isatty():
        what = f"a screen cannot be drawn with TERM={os.environ.get('TERM', '')!r}"
        raise UsageError(what, f"set TERM=xterm-256color, or use: {instead}")
    raise UsageError("the screen needs a terminal", f"without one use: {instead}")
