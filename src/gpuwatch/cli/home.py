"""``gpuwatch`` without a command: the home screen."""

from __future__ import annotations

import argparse

from gpuwatch.cli import screen


def add_arguments(parser: argparse.ArgumentParser) -> None:
    screen.add_arguments(parser)


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    """Show the home screen.

    Raises:
        UsageError: there is no terminal to show it on.
    """
    refresh = screen.refresh(arguments)
    screen.require("see `gpuwatch --help` for scripts")
    from gpuwatch.tui.app import run_home

    return run_home(refresh=refresh)
