"""Finds what this user sent to a place."""

from __future__ import annotations

from pathlib import Path

from gpuwatch.core.errors import UsageError
from gpuwatch.core.text import shell
from gpuwatch.places import placements
from gpuwatch.places.placements import Placed
from gpuwatch.session import placement


def sent(folder: Path) -> Placed | None:
    """What was sent to a place, of which ``folder`` is the study; ``None``: it runs here.

    Raises:
        UsageError: it runs at a place, but was not sent there from here by this user, who therefore
            cannot change it.
    """
    placed = placements.of_study(folder)
    known = placement.read(folder)
    if placed is None and known is not None and known.going_on:
        raise UsageError(
            f"{folder} says that it runs on {known.place}; you did not send it there from here",
            "do this where it was started, as the user who started it; "
            f"of a copy remove {shell(folder / placement.PLACEMENT)} first",
        )
    return placed
