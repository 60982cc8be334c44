"""Why two environments differ: what goes with the change, down the ladder of explanation."""

from __future__ import annotations

from gpuwatch.analysis.results import Cell, Explanation


def explain(baseline: Cell, other: Cell, margin: float) -> Explanation:
    """What goes with the change from ``baseline`` to ``other``, by the judged runs of both."""
    raise NotImplementedError
