"""``gpuwatch`` without a command: the home screen."""

from __future__ import annotations

import argparse
import os
from contextlib import ExitStack, closing

from gpuwatch.cli.options import screen_options
from gpuwatch.cli.screen import first_frame, machine_recorder, terminal

_PROGRAMS = 3
"""Programs that load at once: this one, the machine's recorder, and the session lister."""
_GIVEN_SECONDS = 0.3


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
    # Recorder and listing load in parallel with Textual.
    with closing(machine_recorder.recorder(refresh)) as recorder, ExitStack() as ends:
        opening = None
        if first_frame.is_up():
            from gpuwatch.tui.home.listing import HomeListing

            listing = ends.enter_context(closing(HomeListing()))
            from gpuwatch.tui.home.opening import HomeOpening

            opening = ends.enter_context(closing(HomeOpening(recorder, listing, look)))
            if len(os.sched_getaffinity(0)) < _PROGRAMS:
                opening.give_way(_GIVEN_SECONDS)
        from gpuwatch.tui.app import run_home

        with first_frame.handed_over():
            return run_home(look, refresh=refresh, recorder=recorder, opening=opening)
