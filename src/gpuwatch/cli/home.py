"""``gpuwatch`` without a command: the home screen."""

from __future__ import annotations

import argparse

from gpuwatch.cli import first_frame, looks, screen
from gpuwatch.tui.machine_recorder import MachineRecorder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    screen.add_arguments(parser)
    looks.add_arguments(parser)


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    """Show the home screen.

    Raises:
        UsageError: there is no terminal to show it on.
    """
    refresh = screen.refresh(arguments)
    if arguments.plain:
        from gpuwatch.tui import plain

        return plain.devices(plain.INTERVAL_SECONDS if arguments.interval is None else refresh)
    screen.require("gpuwatch --plain; for scripts see `gpuwatch --help`")
    # It loads beside the program of the screens.
    recorder = MachineRecorder(refresh)
    try:
        from gpuwatch.tui.app import run_home

        with first_frame.HandedOver():
            return run_home(looks.look(arguments), refresh=refresh, recorder=recorder)
    finally:
        recorder.close()
