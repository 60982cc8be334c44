"""How a screen is drawn: the options that every command with a screen takes."""

from __future__ import annotations

import argparse
import os
import sys

from gpuwatch.tui.display_options import THEMES, DisplayOptions, only_ascii


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--plain",
        action="store_true",
        help="lines of words instead of the screen: for screen readers and pipes",
    )
    parser.add_argument(
        "--ascii",
        action="store_true",
        help="draw with ASCII alone, as is done by itself where the locale is not UTF-8",
    )
    parser.add_argument(
        "--theme",
        choices=THEMES,
        help="colours of the screen; without it what the terminal is known to show",
    )
    parser.add_argument("--read-only", action="store_true", help=argparse.SUPPRESS)


def look(arguments: argparse.Namespace) -> DisplayOptions:
    """What was asked for, and what the terminal needs."""
    poor = only_ascii(os.environ, sys.stdout.encoding)
    return DisplayOptions(arguments.ascii or poor, arguments.read_only, arguments.theme)
