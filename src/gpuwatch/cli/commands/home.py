"""``gpuwatch`` without a command: the home screen."""

from __future__ import annotations

import argparse
from contextlib import closing

from gpuwatch.cli.options import screen_options
from gpuwatch.cli.screen import terminal
from gpuwatch.core.errors import UsageError
from gpuwatch.core.text import shell, to_paste
from gpuwatch.tui.feed.machine_recorder import MachineRecorder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--on",
        action="append",
        metavar="PLACE",
        help="show this machine instead: ssh=HOST, or slurm,job=ID; may be repeated",
    )
    terminal.add_arguments(parser)
    screen_options.add_arguments(parser)


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    """Show the home screen.

    Raises:
        UsageError: there is no terminal to show it on.
    """
    refresh = terminal.refresh(arguments)
    if arguments.on:
        return _elsewhere(arguments, refresh)
    if arguments.plain:
        from gpuwatch.tui.plain import plain

        return plain.devices(plain.INTERVAL_SECONDS if arguments.interval is None else refresh)
    terminal.require("gpuwatch --plain; for scripts see `gpuwatch --help`")
    look = screen_options.look(arguments)
    with closing(MachineRecorder(refresh)) as recorder:  # it loads while the screen does
        from gpuwatch.tui.app import run_home

        return run_home(look, refresh=refresh, recorder=recorder)


def _elsewhere(arguments: argparse.Namespace, refresh: float) -> int:
    """Show machines elsewhere.

    Raises:
        UsageError: a place is misspelt, or there is no terminal.
    """
    first, *others = arguments.on
    instead = to_paste("--record --on", first) + "".join(f" --on {shell(each)}" for each in others)
    if arguments.plain:
        raise UsageError("--plain shows this machine alone", instead)
    terminal.require(instead)
    from gpuwatch.cli.place.watching import watched

    with watched(arguments.on) as machines:
        from gpuwatch.tui.app import run_fleet

        return run_fleet(machines.now, screen_options.look(arguments), refresh=refresh)
