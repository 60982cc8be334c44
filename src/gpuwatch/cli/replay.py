"""Watch a saved session on the live screen. SESSION as for `gpuwatch show`."""

from __future__ import annotations

import argparse

from gpuwatch.cli import find, looks, screen


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION")
    screen.add_arguments(parser)
    looks.add_arguments(parser)


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    refresh = screen.refresh(arguments)
    path = find.session(arguments.session)
    if arguments.plain:
        from gpuwatch.tui import plain

        return plain.replay(path, arguments.interval)
    screen.require(f"gpuwatch replay --plain {path}")
    from gpuwatch.tui.app import run_live

    return run_live(path, refresh=refresh, look=looks.look(arguments))
