"""Display options of every command with a screen."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from gpuwatch.tui.display_options import THEMES, DisplayOptions, only_ascii


def add_arguments(parser: argparse.ArgumentParser, *, plain: bool = True) -> None:
    if plain:
        parser.add_argument(
            "--plain",
            action="store_true",
            help="print lines of text instead of the screen: for screen readers and pipes",
        )
    parser.add_argument(
        "--ascii",
        action="store_true",
        help="draw with ASCII only (the default if the locale is not UTF-8)",
    )
    parser.add_argument(
        "--theme",
        choices=THEMES,
        help="colours of the screen (default: detected from the terminal)",
    )
    parser.add_argument("--read-only", action="store_true", help=argparse.SUPPRESS)


def look(arguments: argparse.Namespace) -> DisplayOptions:
    """The display options from the command line and the terminal's encoding."""
    needs_ascii = only_ascii(os.environ, sys.stdout.encoding)
    return DisplayOptions(arguments.ascii or needs_ascii, arguments.read_only, arguments.theme)


def watch(
    arguments: argparse.Namespace,
    path: Path,
    refresh: float,
    *,
    follow: bool,
    started: bool = False,
) -> int:
    """Show a session while it is recorded, on a screen or with ``--plain`` in lines; returns the
    exit code. ``follow``: the next runs of its study, too. ``started``: as in :func:`run_live`."""
    if arguments.plain:
        from gpuwatch.tui.plain import plain

        interval = plain.INTERVAL_SECONDS if arguments.interval is None else refresh
        return plain.watch(path, interval, follow=follow)
    from gpuwatch.tui.app import run_live

    shown = look(arguments)
    return run_live(path, follow=follow, started=started, refresh=refresh, look=shown)
