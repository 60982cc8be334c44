"""Whether there is a terminal that a screen can be drawn on."""

from __future__ import annotations

import os
import shutil
import sys

from gpuwatch.errors import UsageError


def usable() -> bool:
    """Standard input and output are a terminal, and it can place text."""
    capable = os.environ.get("TERM", "") not in ("", "dumb", "unknown")
    return sys.stdin.isatty() and sys.stdout.isatty() and capable


def columns() -> int:
    """The terminal's width, 80 where there is none; the variable COLUMNS comes before both."""
    return shutil.get_terminal_size((80, 24)).columns


def require(instead: str) -> None:
    """Raise UsageError, naming the command to use ``instead``, where no screen can be drawn."""
    if usable():
        return
    if sys.stdin.isatty() and sys.stdout.isatty():
        what = f"a screen cannot be drawn with TERM={os.environ.get('TERM', '')!r}"
        raise UsageError(what, f"set TERM=xterm-256color, or: {instead}")
    raise UsageError("the screen needs a terminal", f"or: {instead}")
