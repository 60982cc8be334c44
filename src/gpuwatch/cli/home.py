"""``gpuwatch`` without a command: the home screen."""

from __future__ import annotations

from gpuwatch.cli import screen


def home() -> int:
    """Show the home screen.

    Raises:
        UsageError: there is no terminal to show it on.
    """
    screen.require("see `gpuwatch --help` for scripts")
    from gpuwatch.tui.app import run_home

    return run_home()
