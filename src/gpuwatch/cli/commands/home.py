"""``gpuwatch`` without a command: the home screen."""

from __future__ import annotations

import argparse
from contextlib import closing

from gpuwatch.cli.options import screen_options
from gpuwatch.cli.screen import machine_recorder, terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    terminal.add_arguments(parser)
    screen_options.add_arguments(parser)


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    """Show the home screen.

    Raises:
        UsageError: there is no terminal to show it on.
    """
    refresh = terminal.refresh(arguments)
    if arguments.plain:
        from gpuwatch.tui.plain import plain

        return plain.devices(plain.INTERVAL_SECONDS if arguments.interval is None else refresh)
    terminal.require("gpuwatch --plain; for scripts see `gpuwatch --help`")
    look = screen_options.look(arguments)
    with closing(machine_recorder.recorder(refresh)) as recorder:
        from gpuwatch.tui.app import run_home

        return run_home(look, refresh=refresh, recorder=recorder)
