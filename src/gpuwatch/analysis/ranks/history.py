"""The own time of each rank over a run that goes on, for any part of it."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from gpuwatch.analysis.ranks.own_time import own_seconds, seconds_of
from gpuwatch.core.units import NS
from gpuwatch.session.rows import RankStepRow

_MOST_ROWS = 16_384
"""Most rows of a rank in the history; beyond it two of the older half become one."""
_LONGEST_NS = 3600 * NS
"""Longest stretch of one row; a file from elsewhere may hold any number."""


class OwnTime:
    """Steps and own seconds of one rank over time."""

    def __init__(self) -> None:
        self.starts, self.ends = array("d"), array("d")
        """Of each row, in nanoseconds."""
        self._steps, self._own = array("d"), array("d")
        """Sums up to the end of each row."""

    def add(self, row: RankStepRow, own: float, seconds: float) -> None:
        """Add the steps of a row behind all others, spread evenly over the time they took."""
        before = self.ends[-1] if self.ends else 0.0
        if row.t <= before:
            return
        taken = min(max(1, round(seconds * NS)), _LONGEST_NS)
        self.starts.append(max(before, row.t - taken))
        self.ends.append(row.t)
        self._steps.append(row.count + (self._steps[-1] if self._steps else 0.0))
        self._own.append(own + (self._own[-1] if self._own else 0.0))
        if len(self.ends) > _MOST_ROWS:
            half = _MOST_ROWS // 2
            self.starts = self.starts[:half:2] + self.starts[half:]
            self.ends, self._steps, self._own = (
                values[1:half:2] + values[half:] for values in (self.ends, self._steps, self._own)
            )

    def between(self, edges: np.ndarray) -> np.ndarray:
        """Steps and own seconds between neighbouring edges, shape (2, edges - 1)."""
        found = np.zeros((2, len(edges) - 1))
        times = np.ravel(np.column_stack([self.starts, self.ends]))
        for at, sums in enumerate((self._steps, self._own) if self.ends else ()):
            known = np.ravel(np.column_stack([np.append(0.0, sums[:-1]), sums]))
            found[at] = np.diff(np.interp(edges, times, known))
        return found


class OwnTimes:
    """Own times of all ranks: those read as they come, and those that were there before."""

    def __init__(self) -> None:
        self._new: defaultdict[int, OwnTime] = defaultdict(OwnTime)
        self._old: defaultdict[int, OwnTime] = defaultdict(OwnTime)

    def add(self, rows: Iterable[RankStepRow], *, old: bool = False) -> None:
        """Add rows in order; ``old``: they are from before the first one that is not."""
        to = self._old if old else self._new
        for row in rows:
            own, seconds = own_seconds(row), seconds_of(row)
            if row.warmup or own is None or seconds is None:
                continue
            if 0 <= own <= 2 * seconds:
                to[row.rank].add(row, own, seconds)

    def columns(
        self, ranks: Sequence[int], borders: Sequence[int], until: int
    ) -> list[list[float | None]]:
        """For each rank, between neighbouring ``borders`` the own time over that of the median
        rank, less 1; ``None``: no steps, or after ``until``. All in nanoseconds."""
        edges = np.array(borders, dtype=float)
        found = [self._old[rank].between(edges) + self._new[rank].between(edges) for rank in ranks]
        steps, own = np.stack(found, axis=1)
        known = (steps > 1e-6) & (edges[:-1] < until)
        per_step = np.divide(own, steps, out=np.full_like(own, np.nan), where=known)
        middle = np.maximum(0, (known.sum(axis=0) - 1) // 2)
        median = np.sort(per_step, axis=0)[middle, np.arange(len(middle))]
        known &= median > 0
        relative = np.divide(per_step, median, out=np.zeros_like(own), where=known) - 1
        return [
            [value if shown else None for value, shown in zip(*row, strict=True)]
            for row in zip(relative.tolist(), known, strict=True)
        ]
