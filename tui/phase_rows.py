"""Where a step's time goes, as one stacked bar with names and shares."""

from __future__ import annotations

from gpuwatch.tui.canvas import Line
from gpuwatch.tui.snapshot import StepShares


def phase_rows(shares: StepShares, width: int, most: int) -> list[Line]:
    """The bar and its names in one row or two; each phase keeps its own pattern and place."""
    raise NotImplementedError
