"""The trimmed mean of a few values: intervals, tests, and Holm's procedure for several.

Of every ten values the smallest and the largest are trimmed; under ten it is Student's t.

Sources: Student (1908), "The probable error of a mean", Biometrika 6; Tukey and McLaughlin (1963),
Sankhya A 25, for the standard error of a trimmed mean; Theil (1950) and Sen (1968), Journal of the
American Statistical Association 63, for the effect of the place; Yuen (1974), Biometrika 61, for
the difference of two, with Satterthwaite's degrees of freedom (1946), Biometrics Bulletin 2; Holm
(1979), "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
Statistics 6.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gpuwatch.core.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Interval:
    """A relative change and its interval, ``exp(log-ratio) - 1``: 0.031 is +3.1 %."""

    estimate: float
    low: float
    high: float
    level: float
    """Confidence, such as 0.95."""


ALPHA = 0.05
"""Family-wise error rate of all comparisons of one question."""
LEAST = 3
"""Fewest values for an interval: with two it is useless (12.7 standard errors each way)."""
FEWEST = 5
"""Fewest pairs, or runs per side, for a verdict, and for an effect of the place."""
_TRIMMED = 10
"""Of so many values one is trimmed at either end."""


@dataclass(frozen=True)
class Mean:
    """An estimated mean, or difference of two means, in the unit of the values."""

    value: float
    error: float
    """Standard error."""
    freedom: float
    """Degrees of freedom of Student's t."""
    wider: float = 1.0
    """Factor in ``error`` for the spread that the effect of the place hides."""

    def bounds(self, level: float) -> tuple[float, float]:
        """Lower and upper bound of the two-sided interval at confidence ``level``."""
        from scipy.special import stdtrit

        half = float(stdtrit(self.freedom, (1 + level) / 2)) * self.error
        return self.value - half, self.value + half

    def p_above(self, bound: float) -> float:
        """One-sided p value: small where the mean lies above ``bound``."""
        return self._share_below((bound - self.value) / self.error)

    def p_below(self, bound: float) -> float:
        """One-sided p value: small where the mean lies below ``bound``."""
        return self._share_below((self.value - bound) / self.error)

    def p_zero(self) -> float:
        """Two-sided p value of the hypothesis that the mean is zero."""
        return min(1.0, 2 * min(self.p_above(0), self.p_below(0)))

    def p_beyond(self, margin: float) -> float:
        """p value of the hypothesis that the mean is within ``margin`` of zero: twice the smaller
        one-sided one."""
        return min(1.0, 2 * min(self.p_above(margin), self.p_below(-margin)))

    def p_within(self, margin: float) -> float:
        """p value of the hypothesis that the mean is ``margin`` or more from zero: the larger
        one-sided one (TOST)."""
        return max(self.p_above(-margin), self.p_below(margin))

    def change(self, level: float) -> Interval:
        """The relative change and its interval, of a mean of log-ratios."""
        low, high = self.bounds(level)
        return Interval(relative(self.value), relative(low), relative(high), level)

    def _share_below(self, t: float) -> float:
        """Distribution function of Student's t."""
        from scipy.special import stdtr

        return float(stdtr(self.freedom, t))


def mean_of(values: np.ndarray, places: np.ndarray | None = None) -> Mean | None:
    """Trimmed mean of ``values`` (n,) and its standard error; ``None`` for fewer than two values.

    Args:
        places: (n,), how many places later in its block the one of a pair ran than the other. From
            five pairs on, a linear effect of it (the median of the slopes between two pairs) is
            subtracted first, at the cost of one degree of freedom.
    """
    if values.size < 2:
        return None
    count = values.size
    placed = places is not None and count >= FEWEST and np.ptp(places) > 0
    wider = 1.0
    if placed and places is not None:
        from scipy.stats import theilslopes  # slow to load

        with np.errstate(invalid="ignore"):  # ties have no interval, which is not used
            slope = float(theilslopes(values, places).slope)
        values = values - slope * places
        skew = float(places.mean()) ** 2 / float(places.var())
        wider = hidden(count) * math.sqrt(1 + skew)
    kept, deviation = _trimmed(values)
    deviation *= math.sqrt((count - 1) / (count - 2)) if placed else 1.0
    error = wider * deviation * math.sqrt(count) / kept.size
    return Mean(float(kept.mean()), error, float(freedom(count, placed=placed)), wider)


def hidden(count: int) -> float:
    """Factor for the spread of ``count`` values that a slope fitted to all of them hides in those
    that are not trimmed."""
    return math.sqrt((count - 2) / (count - 2 - count // _TRIMMED))


def freedom(count: int, *, placed: bool = False) -> int:
    """Degrees of freedom of the trimmed mean of ``count`` values."""
    return count - 2 * (count // _TRIMMED) - (2 if placed else 1)


def _trimmed(values: np.ndarray) -> tuple[np.ndarray, float]:
    """``values`` (n,) without the trimmed ones, and the standard deviation of all with each
    trimmed one set to its nearest kept one (winsorized)."""
    ordered = np.sort(values)
    cut = values.size // _TRIMMED
    kept = ordered[cut : values.size - cut]
    return kept, float(np.std(np.clip(ordered, kept[0], kept[-1]), ddof=1))


def welch(baseline: np.ndarray, other: np.ndarray) -> Mean | None:
    """Trimmed mean of ``other`` (m,) minus that of ``baseline`` (n,), for unequal variances.

    Welch's test as extended to trimmed means by Yuen; ``None`` if either has fewer than two
    values.
    """
    if min(baseline.size, other.size) < 2:
        return None
    (first, *_), (second, *_) = sides = [_trimmed(values) for values in (baseline, other)]
    value = float(np.mean(second) - np.mean(first))
    shares = [
        deviation**2 * (values.size - 1) / (kept.size * (kept.size - 1))
        for values, (kept, deviation) in zip((baseline, other), sides, strict=True)
    ]
    total = sum(shares)
    if not total:
        return Mean(value, 0.0, first.size + second.size - 2.0)
    freedoms = (first.size - 1, second.size - 1)
    # As shares of the total, so that variances near the smallest number do not vanish.
    degrees = 1 / sum((share / total) ** 2 / df for share, df in zip(shares, freedoms, strict=True))
    return Mean(value, math.sqrt(total), degrees)


def middle(values: Sequence[float]) -> float | None:
    """What repeated runs come to: the geometric mean, trimmed as the estimate is, so that the ratio
    of two is the change that is estimated; the median where a value is not above zero."""
    if not values or min(values) <= 0:
        return float(np.quantile(values, 0.5)) if values else None
    cut = len(values) // _TRIMMED
    kept = sorted(values)[cut : len(values) - cut]
    if kept[0] == kept[-1]:
        return kept[0]  # to the last digit
    return math.exp(sum(map(math.log, kept)) / len(kept))


def interval(log_ratios: Sequence[float], level: float = 0.95) -> Interval | None:
    """The interval of the trimmed mean log-ratio, as a relative change.

    ``None`` for fewer than three values.

    Raises:
        ValueError: a value is not finite.
    """
    mean = mean_of(finite(log_ratios))
    return None if mean is None or len(log_ratios) < LEAST else mean.change(level)


def difference(
    values: Sequence[float], level: float = 0.95, places: Sequence[float] | None = None
) -> Interval | None:
    """The interval of the trimmed mean of ``values``, in their own unit; ``None`` under three.

    ``places``: as for :func:`mean_of`.

    Raises:
        ValueError: a value is not finite.
    """
    mean = mean_of(finite(values), None if places is None else finite(places))
    if mean is None or len(values) < LEAST:
        return None
    return Interval(mean.value, *mean.bounds(level), level)


def holm_levels(p_values: Sequence[float]) -> tuple[float, ...]:
    """The level at which Holm's procedure tests each, so that all together err in ``ALPHA``.

    The i-th smallest of k is tested at ALPHA/(k-i+1); from the first that is not rejected on, all
    have that one's level. So a p value is at most its level exactly where Holm rejects it.
    """
    levels = [ALPHA] * len(p_values)
    level, open_ = ALPHA, True
    for place, index in enumerate(np.argsort(p_values, kind="stable")):
        if open_:
            level = ALPHA / (len(p_values) - place)
            open_ = p_values[index] <= level
        levels[index] = level
    return tuple(levels)


def holm_adjusted(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm-adjusted p values, in the order given; compare them with ``ALPHA`` itself."""
    adjusted = [1.0] * len(p_values)
    largest = 0.0
    for place, index in enumerate(np.argsort(p_values, kind="stable")):
        largest = max(largest, min(1.0, (len(p_values) - place) * p_values[index]))
        adjusted[index] = largest
    return tuple(adjusted)


def relative(log_ratio: float) -> float:
    """Relative change of a log-ratio; clipped to stay finite and above -1 for absurd ratios."""
    return math.expm1(min(max(log_ratio, -30.0), 700.0))


def lower_end(margin: float) -> float:
    """The negative relative change as large as ``margin`` in logarithms: -0.0476 for 0.05.

    1.05 times as long is as far from equal as 1/1.05 times.
    """
    return -margin / (1 + margin)


def finite(values: Sequence[float]) -> np.ndarray:
    """``values`` as an array of floats, shape (n,).

    Raises:
        ValueError: a value is not finite.
    """
    array = np.asarray(values, dtype=float)
    if not np.isfinite(array).all():
        raise ValueError("values must be finite")
    return array
