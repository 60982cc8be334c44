"""What so many blocks can tell, and how many it would take."""

from __future__ import annotations

from gpuwatch.analysis.results import Resolves

POWER = 0.8
MOST = 200
"""Blocks that are still called a reasonable number."""


def blocks_to_decide(
    estimate: float, noise: float, margin: float, comparisons: int = 1
) -> int | None:
    """About how many blocks in all give a verdict in 80 % of studies.

    ``estimate``: the true relative change. ``noise``: standard deviation of one run, relative.
    ``None``: more than ``MOST``, or none would.
    """
    raise NotImplementedError


def resolves(noise: float, margin: float, blocks: int) -> Resolves:
    """What ``blocks`` paired blocks can tell at ``noise`` (relative standard deviation of one run)."""
    raise NotImplementedError
