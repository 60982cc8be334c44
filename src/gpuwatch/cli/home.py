"""``gpuwatch`` without a command: the home screen."""

from __future__ import annotations

import sys

from gpuwatch.errors import UsageError


def home() -> int:
    """Show the home screen.

    Raises:
        UsageError: there is no terminal to show it on.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("the screen needs a terminal", "see `gpuwatch --help` for scripts")
    from gpuwatch.tui.app import run_home

    return run_home()
