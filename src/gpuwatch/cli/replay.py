"""Watch a saved session on the live screen. SESSION as for `gpuwatch show`."""

from __future__ import annotations

import argparse
import sys

from gpuwatch.cli import find
from gpuwatch.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION")


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    path = find.session(arguments.session)
    if not sys.stdout.isatty():
        raise UsageError("replay needs a terminal", f"or: gpuwatch show {path}")
    from gpuwatch.tui.app import run_live

    return run_live(path)
