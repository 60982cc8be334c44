"""Student's t for the mean of a few values: intervals, tests, and Holm's procedure for several.

Sources: Student (1908), "The probable error of a mean", Biometrika 6; Welch (1947), Biometrika 34,
with Satterthwaite's degrees of freedom (1946), Biometrics Bulletin 2; Holm (1979), "A simple
sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6.
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


@dataclass(frozen=True)
class Mean:
    """An estimated mean, or difference of two means, in the unit of the values."""

    value: float
    error: float
    """Standard error."""
    freedom: float
    """Degrees of freedom of Student's t."""

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


def mean_of(values: np.ndarray) -> Mean | None:
    """Mean of ``values`` (n,) and its standard error; ``None`` for fewer than two values."""
    if values.size < 2:
        return None
    error = float(np.std(values, ddof=1)) / math.sqrt(values.size)
    return Mean(float(np.mean(values)), error, values.size - 1.0)


def welch(baseline: np.ndarray, other: np.ndarray) -> Mean | None:
    """Mean of ``other`` (m,) minus mean of ``baseline`` (n,), for unequal variances.

    Welch's test with Satterthwaite's degrees of freedom; ``None`` if either has fewer than two
    values.
    """
    if min(baseline.size, other.size) < 2:
        return None
    value = float(np.mean(other) - np.mean(baseline))
    shares = [float(np.var(values, ddof=1)) / values.size for values in (baseline, other)]
    total = sum(shares)
    if not total:
        return Mean(value, 0.0, baseline.size + other.size - 2.0)
    freedoms = (baseline.size - 1, other.size - 1)
    # As shares of the total, so that variances near the smallest number do not vanish.
    freedom = 1 / sum((share / total) ** 2 / df for share, df in zip(shares, freedoms, strict=True))
    return Mean(value, math.sqrt(total), freedom)


def interval(log_ratios: Sequence[float], level: float = 0.95) -> Interval | None:
    """Student's t interval of the mean log-ratio, as a relative change.

    ``None`` for fewer than three values.

    Raises:
        ValueError: a value is not finite.
    """
    mean = mean_of(finite(log_ratios))
    return None if mean is None or len(log_ratios) < LEAST else mean.change(level)


def difference(values: Sequence[float], level: float = 0.95) -> Interval | None:
    """Student's t interval of the mean of ``values``, in their own unit; ``None`` under
    three.

    Raises:
        ValueError: a value is not finite.
    """
    mean = mean_of(finite(values))
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
    for place, index in enumerate(_order(p_values)):
        if open_:
            level = ALPHA / (len(p_values) - place)
            open_ = p_values[index] <= level
        levels[index] = level
    return tuple(levels)


def holm_adjusted(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm-adjusted p values, in the order given; compare them with ``ALPHA`` itself."""
    adjusted = [1.0] * len(p_values)
    largest = 0.0
    for place, index in enumerate(_order(p_values)):
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


def _order(p_values: Sequence[float]) -> list[int]:
    return sorted(range(len(p_values)), key=lambda index: p_values[index])
