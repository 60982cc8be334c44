"""The step times of a run: one by one, or grouped with their counts.

A quantile of grouped times is off by less than
:data:`gpuwatch.session.writing.step_tier.RESOLUTION`, relative; their mean is exact.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from gpuwatch.analysis.samples.rates import StepLine, full_times
from gpuwatch.analysis.samples.step_lines import NO_FULL_STEP, TOGETHER, times_of
from gpuwatch.session.rows import StepBucket

_FINE = 1 << 16
"""Bins of the first search for a quantile of many values."""
_FEW = 1 << 14
"""Values up to which they are all sorted."""


class Series(Protocol):
    """The times of a run's full timed steps, in seconds and in their order."""

    @property
    def size(self) -> int:
        """How many steps."""

    def binned(self, most: int) -> np.ndarray:
        """Medians (b,), b <= ``most``, of about equal numbers of neighbouring steps, in seconds;
        the last bin ends with the last step."""

    def at(self, place: int) -> int:
        """First step of a bin of :meth:`binned`; 0 for the first bin."""

    def level(self, begin: int, end: int) -> float:
        """Median of the steps ``begin <= n < end``, in seconds."""

    def spread(self, begin: int, around: float) -> float:
        """Median distance from ``around`` of the steps from ``begin`` on, in seconds."""

    def good(self) -> bool:
        """Whether each time is finite and above 0."""

    def quantiles(self, *shares: float, begin: int = 0) -> list[float]:
        """Quantiles of the steps from ``begin`` on in seconds; 0 and 1 are the shortest and the
        longest."""

    def mean(self) -> float:
        """Mean of all steps in seconds."""


class Single:
    """A series with one time per step."""

    def __init__(self, times: np.ndarray) -> None:
        """``times``: (n,), seconds."""
        self.times = times
        self._width, self._rest = 1, 0

    @property
    def size(self) -> int:
        return int(self.times.size)

    def good(self) -> bool:
        return bool((np.isfinite(self.times) & (self.times > 0)).all())

    def binned(self, most: int) -> np.ndarray:
        self._width = math.ceil(self.times.size / most)
        self._rest = self.times.size % self._width  # steps before the first bin, left out
        medians: np.ndarray = np.median(self.times[self._rest :].reshape(-1, self._width), axis=1)
        return medians

    def at(self, place: int) -> int:
        return self._rest + self._width * place if place else 0

    def level(self, begin: int, end: int) -> float:
        return float(np.median(self.times[begin:end]))

    def spread(self, begin: int, around: float) -> float:
        return float(np.median(np.abs(self.times[begin:] - around)))

    def quantiles(self, *shares: float, begin: int = 0) -> list[float]:
        return [float(value) for value in np.quantile(self.times[begin:], shares)]

    def mean(self) -> float:
        return float(self.times.mean())


class StepBuckets:
    """A series of weighted times in buckets; the position of a step is known only by bucket."""

    def __init__(self, values: np.ndarray, weights: np.ndarray, sizes: Sequence[int]) -> None:
        """``values``: (n,), seconds, bucket by bucket; ``weights``: (n,), the number of steps each
        value is the mean of; ``sizes``: number of values in each bucket."""
        self._values, self._weights = values, weights
        self._entries = np.cumsum([0, *sizes])
        cumulative = np.concatenate([[0.0], np.cumsum(weights)])
        self._steps = cumulative[self._entries].astype(np.int64)
        self._bins: list[int] = [0]

    @property
    def size(self) -> int:
        return int(self._steps[-1])

    def good(self) -> bool:
        values = np.isfinite(self._values) & (self._values > 0)
        return bool(values.all() and (self._weights > 0).all())

    def binned(self, most: int) -> np.ndarray:
        width = math.ceil(self.size / most)
        places = (self.size - self._steps[1:]) // width
        starts = [0, *(int(index) + 1 for index in np.flatnonzero(np.diff(places)))]
        if len(starts) > 1 and self._steps[starts[1]] < width / 2:
            del starts[0]
        self._bins = starts
        ends = [*starts[1:], len(self._steps) - 1]
        return np.array([self._median(*pair) for pair in zip(starts, ends, strict=True)])

    def at(self, place: int) -> int:
        return int(self._steps[self._bins[place]]) if place else 0

    def level(self, begin: int, end: int) -> float:
        return self._median(*self._buckets(begin, end))

    def spread(self, begin: int, around: float) -> float:
        values, weights = self._of(*self._buckets(begin, self.size))
        return quantiles(np.abs(values - around), weights, (0.5,))[0]

    def quantiles(self, *shares: float, begin: int = 0) -> list[float]:
        return quantiles(*self._of(*self._buckets(begin, self.size)), shares)

    def mean(self) -> float:
        return float(np.average(self._values, weights=self._weights))

    def _buckets(self, begin: int, end: int) -> tuple[int, int]:
        """The buckets that hold these steps."""
        first = int(np.searchsorted(self._steps, begin, "right")) - 1
        last = int(np.searchsorted(self._steps, end, "left"))
        return min(first, len(self._steps) - 2), max(last, first + 1)

    def _of(self, begin: int, end: int) -> tuple[np.ndarray, np.ndarray]:
        at = slice(self._entries[begin], self._entries[end])
        return self._values[at], self._weights[at]

    def _median(self, begin: int, end: int) -> float:
        return quantiles(*self._of(begin, end), (0.5,))[0]


def quantiles(values: np.ndarray, weights: np.ndarray, shares: Sequence[float]) -> list[float]:
    """Weighted quantiles: each value (n,) counts as often as its weight (n,); interpolated linearly
    as numpy does."""
    ranked = _Ranked(values, weights)
    count = int(weights.sum())
    results = []
    for share in shares:
        place = share * (count - 1)
        low, high = ranked.at(math.floor(place), math.ceil(place))
        results.append(low + (high - low) * (place - math.floor(place)))
    return results


class _Ranked:
    """Values by rank; of many values only those near the rank are sorted."""

    def __init__(self, values: np.ndarray, weights: np.ndarray) -> None:
        self._values, self._weights = values, weights
        self._places: np.ndarray | None = None
        low, high = float(values.min()), float(values.max())
        if values.size > _FEW and low < high:
            scaled = np.log1p((values - low) / (high - low) * _FINE) * (_FINE / math.log1p(_FINE))
            self._places = scaled.astype(np.int64)
            self._behind = np.cumsum(np.bincount(self._places, weights))

    def at(self, *ranks: int) -> list[float]:
        """The values at these ranks, in ascending order from 0."""
        below, values, weights = 0, self._values, self._weights
        if self._places is not None:
            first, last = (
                int(np.searchsorted(self._behind, rank, "right")) for rank in (ranks[0], ranks[-1])
            )
            near = (self._places >= first) & (self._places <= last)
            below = int(self._behind[first - 1]) if first else 0
            values, weights = values[near], weights[near]
        order = np.argsort(values, kind="stable")
        behind = below + np.cumsum(weights[order])
        return [float(values[order[np.searchsorted(behind, rank, "right")]]) for rank in ranks]


StepTimes = tuple[Series, str | None]
"""Step times, and the reason where they are not step times."""


def series_of(timed: Sequence[StepLine]) -> StepTimes:
    """The step times of these lines, as in
    :func:`gpuwatch.analysis.samples.step_lines.times_of`."""
    if not any(isinstance(row, StepBucket) for row in timed):
        times, reason = times_of([row for row in timed if not isinstance(row, StepBucket)])
        return Single(np.array(times)), reason
    if not all(
        isinstance(row, StepBucket) or row.seconds is not None or row.count == 1 for row in timed
    ):
        return Single(np.array([])), TOGETHER
    joined, weights, sizes = array("d"), array("I"), []
    for row in timed:
        times_of_row, weights_of_row = _part(row)
        if times_of_row:
            joined.extend(times_of_row)
            weights.extend(weights_of_row)
            sizes.append(len(times_of_row))
    if not joined:
        return Single(np.array([])), NO_FULL_STEP
    values = np.frombuffer(joined)
    if not any(isinstance(row, StepBucket) and row.weights is not None for row in timed):
        return Single(values), None
    series = StepBuckets(values, np.frombuffer(weights, np.uint32).astype(float), sizes)
    if not series.good():
        return Single(np.array([])), "a reported step time is impossible"
    return series, None


def _part(row: StepLine) -> tuple[array[float], array[int]]:
    """Times in seconds, and the number of steps that each is the mean of."""
    if not isinstance(row, StepBucket):
        times = array("d", full_times(row))
    elif row.times and row.weights is not None:
        return row.times, row.weights
    else:
        times = row.times or array("d")
    return times, array("I", [1]) * len(times)
