"""The samples of single channels, and their totals over a window."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

from gpuwatch.analysis.samples.window import Window
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.session.rows import ChannelRow

if TYPE_CHECKING:
    import numpy as np

_TYPICAL = 10_000
"""Distances between samples, drawn evenly, that tell the usual one."""
FULL = 0.9
"""Share of a window that samples must cover before their integral is scaled to all of it."""


class Pairs(Sequence["tuple[int, float]"]):
    """Times and values, 16 bytes a pair."""

    def __init__(self, t: np.ndarray, values: np.ndarray) -> None:
        """``t``: (n,) int64, nanoseconds since the session's start; ``values``: (n,) float64."""
        self.t, self.values = t, values

    def __len__(self) -> int:
        return int(self.t.size)

    def __getitem__(self, at: Any) -> Any:
        return int(self.t[at]), float(self.values[at])


@dataclass(frozen=True)
class Samples:
    """One channel's known values in order, each with its time in ns since the session's start."""

    channel: ChannelRow
    values: Sequence[tuple[int, float]]


@dataclass(frozen=True)
class Integral:
    total: float
    """Over the covered part of the window: unit times seconds."""
    coverage: float
    """Share of the window that the samples cover, 0 to 1."""
    mean: float | None = None
    """Over the covered part, each value weighted by its share of it; ``None``: nothing is
    covered."""


def arrays(values: Sequence[tuple[int, float]]) -> tuple[np.ndarray, np.ndarray]:
    """Times (n,) int64 in nanoseconds, and values (n,) float64."""
    # Imported here so that users of FULL alone do not load numpy.
    import numpy as np

    if isinstance(values, Pairs):
        return values.t, values.values
    t, amounts = zip(*values, strict=True) if values else ((), ())
    return np.array(t, dtype=np.int64), np.array(amounts, dtype=float)


def middle(values: np.ndarray) -> float:
    """Median of ``values`` (n,)."""
    import numpy as np

    return float(np.quantile(values, 0.5))  # np.median imports numpy.ma


def integral(values: Sequence[tuple[int, float]], window: Window) -> Integral:
    """Integrate a rate over ``window``.

    A value is the mean since the previous one, as GPM, DCGM, RAPL and the driver's own samples
    report it; of the time before the window none counts. It covers at most twice the median
    distance between values: anything further back is a gap.
    Of the values that the ends of the window cut, neither counts where one beside it is no further
    away, which stands for its part: they may be of what is before the steps, such as an import, or
    behind them, such as a profile.
    """
    import numpy as np

    t, rates = arrays(values)
    first, behind = np.searchsorted(t, window.start), np.searchsorted(t, window.end, "right")
    if first == behind:
        return Integral(0.0, 0.0)
    near = slice(max(0, int(first) - 1), int(behind) + 1)
    t = t[near]
    rates = np.append(rates[near.start : behind], rates[behind - 1])[: t.size]
    apart = np.diff(t)
    reach = 2 * middle(apart[:: apart.size // _TYPICAL + 1]) if apart.size else 0.0
    if window.end <= window.start or t.size < 2:
        return Integral(0.0, 0.0)
    covered = np.minimum(apart, reach)
    if t[0] < window.start and behind - first > 1 and apart[1] <= reach:
        rates[1] = rates[2]
    for at, (before, end) in ((0, t[:2]), (-1, t[-2:])):  # what the ends of the window cut
        start = max(window.start, before, end - reach)
        covered[at] = max(0.0, min(window.end, end) - start)
    total, length = float(np.sum(rates[1:] * covered)), float(covered.sum())
    mean = total / length if length else None
    return Integral(total / 1e9, length / (window.end - window.start), mean)


def value_at(readings: Sequence[tuple[int, float]], moment: int) -> float | None:
    """A counter's value at ``moment``, on the line between the readings around it; ``None``: there
    is none on one side."""
    at = bisect_left(readings, (moment,))
    if at == len(readings) or (at == 0 and readings[0][0] > moment):
        return None
    (before, low), (t, high) = readings[max(0, at - 1)], readings[at]
    return low + (high - low) * (moment - before) / max(1, t - before)


def mean_between(
    times: Sequence[int], values: Sequence[float], start: int, end: int
) -> tuple[float, float] | None:
    """Mean and coverage as in :func:`integral`, for the few samples of a screen and without numpy.

    ``times``: nanoseconds; NaN values are unknown.
    """
    known = [(t, value) for t, value in zip(times, values, strict=True) if value == value]
    first, behind = bisect_left(known, (start,)), bisect_right(known, (end, math.inf))
    near = known[max(0, first - 1) : behind + 1]
    if first == behind or len(near) < 2 or end <= start:
        return None
    if behind < len(known):
        near[-1] = near[-1][0], known[behind - 1][1]
    reach = 2 * median(after[0] - before[0] for before, after in pairwise(near))
    if near[0][0] < start and behind - first > 1 and near[2][0] - near[1][0] <= reach:
        near[1] = near[1][0], near[2][1]
    total = length = 0.0
    for (before, _), (t, value) in pairwise(near):
        covered = max(0.0, min(end, t) - max(start, before, t - reach))
        total += value * covered
        length += covered
    return (total / length, length / (end - start)) if length else None
