"""Shades of a map of rank by time."""

from __future__ import annotations

from itertools import pairwise

LEVELS = (0.02, 0.05, 0.10, 0.20)
"""Lower ends of the shades above the plainest: own time this much longer than the median rank's."""


def level(relative: float) -> int:
    """The shade of a value: 0 to ``len(LEVELS)``."""
    return sum(relative >= least for least in LEVELS)


def names() -> list[str]:
    """What each shade stands for."""
    percents = [f"{100 * each:.0f} %" for each in LEVELS]
    between = [f"+{low} to {high}" for low, high in pairwise(percents)]
    return [f"under +{percents[0]}", *between, f"+{percents[-1]} or more"]
