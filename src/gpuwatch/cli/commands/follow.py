"""Follow a study at another place until it is over; started by gpuwatch itself."""

from __future__ import annotations

import argparse
from pathlib import Path

from gpuwatch.core.errors import GpuwatchError, UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID")


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    from gpuwatch.places import load, placements, spec
    from gpuwatch.places.base import JobState
    from gpuwatch.places.follower import follow
    from gpuwatch.session import placement
    from gpuwatch.session.placement import Placement

    placed = placements.read(arguments.id)
    if placed is None:
        raise UsageError(f"nothing was sent under {arguments.id!r}", "see `gpuwatch sessions`")
    try:
        place = load(spec.parse(placed.place), placed.capsule)
    except GpuwatchError as error:  # such as a setup file that is gone: nobody follows it then
        study, why = Path(placed.study), error.message
        known = Placement(placed.place, placed.attempt, JobState.UNKNOWN, why, hint=error.hint)
        placement.write(study, placement.seen_now(known, placement.read(study)))
        raise
    follow(placed, place)
    return 0
