"""Follow a study at another place until it is over; started by gpuwatch itself."""

from __future__ import annotations

import argparse

from gpuwatch.core.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID")


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    from gpuwatch.places import load, placements, spec
    from gpuwatch.places.follower import follow

    placed = placements.read(arguments.id)
    if placed is None:
        raise UsageError(f"nothing was sent under {arguments.id!r}", "see `gpuwatch sessions`")
    follow(placed, load(spec.parse(placed.place), placed.capsule))
    return 0
