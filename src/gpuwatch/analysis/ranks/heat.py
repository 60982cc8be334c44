"""Rank by time: each rank's own time beside the median of the moment."""

from __future__ import annotations

import numpy as np

from gpuwatch.analysis.ranks.own_time import Cells
from gpuwatch.core.lazy_dataclass import dataclass

COLUMNS = 60


@dataclass(frozen=True)
class Heat:
    """Own time of each rank over that of the median rank of the same moment, less 1.

    Of an even number of ranks the lower of the two in the middle is the median: of two ranks the
    faster one.
    """

    ranks: tuple[int, ...]
    starts: tuple[float, ...]
    """Session nanoseconds, one for each column."""
    ends: tuple[float, ...]
    values: tuple[tuple[float, ...], ...]
    """For each rank one value per column: 0.12 is 12 % longer."""


def heat_of(cells: Cells, columns: int = COLUMNS) -> Heat:
    """The map in at most ``columns`` columns, neighbouring cells put together."""
    parts = np.array_split(np.arange(cells.edges.shape[0]), min(columns, cells.edges.shape[0]))
    first = [part[0] for part in parts]
    last = [part[-1] for part in parts]
    own = np.add.reduceat(cells.own, first, axis=1) / np.add.reduceat(cells.steps, first, axis=1)
    median = np.sort(own, axis=0)[(own.shape[0] - 1) // 2]
    relative = np.divide(own, median, out=np.ones_like(own), where=median > 0) - 1
    return Heat(
        cells.ranks,
        tuple(map(float, cells.edges[first, 0])),
        tuple(map(float, cells.edges[last, 1])),
        tuple(tuple(map(float, row)) for row in relative),
    )
