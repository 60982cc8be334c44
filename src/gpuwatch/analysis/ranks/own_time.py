"""The own time of each rank: what it does in a step before it waits for the other ranks.

A rank waits for others where gradients are exchanged: in ``backward`` and ``optimizer``. Everything
else in its step is its own. Ranks are compared moment by moment: their sums are cut at common
edges, two seconds apart or as far as their rows are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.units import NS
from gpuwatch.session.rows import RankStepRow

WAITING = ("backward", "optimizer")
"""Phases in which a rank waits for the others."""
CELL_SECONDS = 2.0
_MOST_VALUES = 2_000_000
"""Cells of all ranks together; a day of eight ranks has 345,600."""
_ROUNDED = 1.01
"""Phases may add up to slightly more than their steps."""
_LONGEST = 1e9
"""Seconds; a file from elsewhere may hold any number."""
_LEAST_STEPS = 0.25
"""Share of the usual number of steps that each rank needs in a cell; else the cell is left out."""


@dataclass(frozen=True)
class Cells:
    """Own time of each rank over common stretches of time, in order."""

    ranks: tuple[int, ...]
    edges: np.ndarray
    """Start and end of each cell in session nanoseconds, shape (cells, 2)."""
    steps: np.ndarray
    """Steps, fractions of one included; shape (ranks, cells)."""
    own: np.ndarray
    """Seconds of all these steps, in the same shape."""

    @property
    def per_step(self) -> np.ndarray:
        """Own seconds of a step, shape (ranks, cells)."""
        return np.asarray(self.own / self.steps)


def own_seconds(row: RankStepRow) -> float | None:
    """The own time of all steps of a row, where those with phases stand for the others; ``None`` if
    nothing tells where the rank waited."""
    if not any(name in row.phases for name in WAITING):
        return None
    own = sum(seconds for name, seconds in row.phases.items() if name not in WAITING)
    if not row.sampled:
        return own
    scaled, seconds = own * row.count / row.sampled, seconds_of(row)
    return scaled if seconds is None else min(scaled, seconds)


def seconds_of(row: RankStepRow) -> float | None:
    """Seconds of all steps of a row; ``None`` if unknown or impossible."""
    seconds = row.seconds if row.seconds is not None else sum(row.phases.values())
    return seconds if 0 < seconds < _LONGEST else None


def cells_of(rows: Sequence[RankStepRow]) -> Cells | None:
    """Cut the timed rows of all ranks at common edges.

    ``None`` for fewer than two ranks, an unknown own time, or ranks that share no time.
    """
    series = _series(rows)
    if series is None or len(series) < 2:
        return None
    start = max(int(each.start[0]) for each in series.values())
    end = min(int(each.end[-1]) for each in series.values())
    gaps = [np.diff(each.end) for each in series.values() if each.end.size > 1]
    usual = max((float(np.median(gap)) for gap in gaps), default=0.0)
    width = max(CELL_SECONDS * NS, usual, (end - start) * len(series) / _MOST_VALUES)
    count = int((end - start) / width)
    if count < 1:
        return None
    edges = start + np.arange(count + 1) * width
    steps = np.array([np.diff(_total_at(each, each.count, edges)) for each in series.values()])
    own = np.array([np.diff(_total_at(each, each.own, edges)) for each in series.values()])
    enough = (steps > _LEAST_STEPS * np.median(steps, axis=1, keepdims=True)).all(axis=0)
    enough &= (steps > 0).all(axis=0)
    if not enough.any():
        return None
    pairs = np.column_stack([edges[:-1], edges[1:]])[enough]
    return Cells(tuple(series), pairs, steps[:, enough], own[:, enough])


@dataclass(frozen=True)
class _Series:
    """Rows of one rank in order, each array of shape (rows,)."""

    start: np.ndarray
    end: np.ndarray
    count: np.ndarray
    own: np.ndarray


def _series(rows: Sequence[RankStepRow]) -> dict[int, _Series] | None:
    """The timed rows by rank; ``None`` if an own time is unknown."""
    columns: dict[int, list[tuple[float, float, int, float]]] = {}
    previous: dict[int, int] = {}
    for row in rows:
        before = previous.get(row.rank)
        if before is not None and row.t <= before:
            continue  # rows of a file from elsewhere may be in any order
        previous[row.rank] = row.t
        if row.warmup or row.sampled == 0:
            continue
        own, taken = own_seconds(row), seconds_of(row)
        if own is None or taken is None or not 0 <= own <= taken * _ROUNDED:
            return None
        start = row.t - taken * NS
        start = start if before is None else max(start, before)
        columns.setdefault(row.rank, []).append((start, row.t, row.count, own))
    return {rank: _Series(*np.array(columns[rank], dtype=float).T) for rank in sorted(columns)}


def _total_at(series: _Series, values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The running total of ``values`` (rows,) at ``edges``, rising evenly within each row."""
    total = np.cumsum(values)
    t = np.column_stack([series.start, series.end]).ravel()
    known = np.column_stack([total - values, total]).ravel()
    return np.asarray(np.interp(edges, t, known))
