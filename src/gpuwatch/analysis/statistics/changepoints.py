"""Where the level of a series changes: optimal partitioning by least squares.

Jackson et al. (2005), "An algorithm for optimal partitioning of data on an interval", IEEE Signal
Processing Letters 12. PELT (Killick, Fearnhead, Eckley 2012, J. American Statistical Association
107) gives the same result; series here are short, so every start is tried instead of pruning.

A change must lower the squared error by three times the long-run variance times the logarithm of
the length. The variance comes from differences of neighbours, which changes of level hardly affect,
and allows for correlation from step to step, which would otherwise look like changes (Chakar et al.
2017, Bernoulli 23, for AR(1) series).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import NormalDist

import numpy as np

from gpuwatch.core.lazy_dataclass import dataclass

PENALTY = 3.0
SHORTEST = 5
"""Fewest values in a level; a shorter run of values counts as spikes."""
_SCALE = 1.4826
"""Standard deviation of normal values over their median absolute deviation."""
_AROUND = 3
"""Neighbours on each side in the spike filter: up to three slow steps in a row are spikes."""
_SPIKE = 4.0
"""Standard deviations from the median of the neighbours beyond which a value is a spike."""
_LEAST_NOISE = 1e-4
"""Floor of the noise (relative): below it the noise would only be the clock's resolution."""
_MOST_SPIKES = 0.15
"""Largest share of spikes; beyond it they are normal values, such as two alternating speeds."""
_FEW_CHANGES = 0.9
"""Upper limit of the share of differences that are free of level changes."""
_CHANCE = 0.01
"""Two-sided error of the rank test between neighbouring levels: five values all beyond five others
pass."""
_FARTHEST_BY_CHANCE = NormalDist().inv_cdf(1 - _CHANCE / 2)
_MOST_CORRELATED = 0.9
_LEAST_CORRELATED = 0.5
"""Assumed where the estimate is lower: few steps hide it, and real steps seldom have less."""


@dataclass(frozen=True)
class Noise:
    """Noise of a series of logarithms (relative noise)."""

    deviation: float
    """Standard deviation of one value around its level."""
    long_run: float
    """Variance of the mean of many values, times their number."""


def spikes(values: np.ndarray) -> np.ndarray:
    """Mask of the values far from the median of their neighbours (Hampel filter).

    Single slow steps are not a level, even if they recur regularly. The mask is all false where
    more than ``_MOST_SPIKES`` of the values would be spikes.

    Args:
        values: shape (n,), logarithms of seconds.

    Returns:
        Booleans, shape (n,).
    """
    far = np.abs(values - _near(values)) > _SPIKE * max(
        _LEAST_NOISE, _scale(np.diff(values)) / math.sqrt(2)
    )
    return far if far.mean() <= _MOST_SPIKES else np.zeros_like(far)


def without_spikes(values: np.ndarray) -> np.ndarray:
    """Copy of ``values`` (n,) with :func:`spikes` replaced by the median of their neighbours."""
    return np.where(spikes(values), _near(values), values)


def noise_of(values: np.ndarray) -> Noise:
    """Noise of ``values`` (n,), from the clipped differences at lag one and lag two.

    An AR(1) series with variance v and correlation r has mean squared differences 2v(1-r) at lag
    one and 2v(1-r^2) at lag two: their ratio minus 1 is r. Negative correlation counts as zero.
    """
    # Subtracting the median keeps a drift from looking like correlation.
    one, two = (
        differences - np.median(differences)
        for differences in (np.diff(values), values[2:] - values[:-2])
    )
    half_one, half_two = _half_square(one), _half_square(two)
    correlation = min(_MOST_CORRELATED, max(0.0, half_two / half_one - 1))
    supposed = max(_LEAST_CORRELATED, correlation)
    return Noise(
        math.sqrt(half_one / (1 - correlation)), half_one * (1 + supposed) / (1 - supposed) ** 2
    )


def partition(values: np.ndarray, penalty: float) -> list[int]:
    """Start indices of the constant levels that fit ``values`` (n,) best in least squares.

    Each change costs ``penalty``, in squared units of ``values``; the first start is 0, and every
    level has at least ``SHORTEST`` values. Jackson et al. (2005); O(n^2).
    """
    count = values.size
    centred = values - values.mean()
    sums = np.concatenate([[0.0], np.cumsum(centred)])
    squares = np.concatenate([[0.0], np.cumsum(centred**2)])
    best = np.full(count + 1, np.inf)
    best[0] = -penalty
    last_start = np.zeros(count + 1, dtype=int)
    for end in range(SHORTEST, count + 1):
        starts = np.arange(0, end - SHORTEST + 1)
        error = squares[end] - squares[starts]
        error -= (sums[end] - sums[starts]) ** 2 / (end - starts)
        cost = best[starts] + error + penalty
        last_start[end] = int(np.argmin(cost))
        best[end] = cost[last_start[end]]
    segment_starts, end = [], count
    while end > 0:
        end = int(last_start[end])
        segment_starts.append(end)
    return segment_starts[::-1]


def supported(values: np.ndarray, starts: Sequence[int]) -> list[int]:
    """The ``starts`` whose level differs from the one before in a rank test.

    Least squares picks its changes after the fact: with two alternating speeds, a few equal values
    in a row look like a change. The test is the rank-sum test of Wilcoxon (1945) and Mann and
    Whitney (1947) by the normal approximation, without the spikes of ``values`` (n,); the weakest
    change is removed first.
    """
    kept, spiky = list(starts), spikes(values)
    parts = zip(np.split(values, kept[1:]), np.split(spiky, kept[1:]), strict=True)
    plain = [part[~mask] for part, mask in parts]
    weights = [_apart(*pair) for pair in pairwise(plain)]
    while weights and min(weights) < _FARTHEST_BY_CHANCE:
        weakest = int(np.argmin(weights))
        del kept[weakest + 1]
        plain[weakest : weakest + 2] = [np.concatenate(plain[weakest : weakest + 2])]
        del weights[weakest]
        for place in (weakest - 1, weakest):
            if 0 <= place < len(weights):
                weights[place] = _apart(plain[place], plain[place + 1])
    return kept


def _apart(one: np.ndarray, two: np.ndarray) -> float:
    """Distance of the mean rank of ``two`` from its expectation, in standard errors."""
    if not one.size or not two.size:
        return 0.0
    from scipy.stats import ranksums

    return abs(float(ranksums(one, two).statistic))


def squared_error(values: np.ndarray, *columns: np.ndarray) -> tuple[float, np.ndarray]:
    """Sum of squared residuals of the least-squares fit of a constant and ``columns``; and the fit.

    ``values``, each column and the fit have shape (n,).
    """
    design = np.stack([np.ones(values.size), *columns], axis=1)
    weights, *_ = np.linalg.lstsq(design, values, rcond=None)
    fit = design @ weights
    return float(np.sum((values - fit) ** 2)), fit


def _half_square(differences: np.ndarray) -> float:
    """Half of the mean square of the clipped differences: the variance of uncorrelated values.

    Never below ``_LEAST_NOISE`` squared.
    """
    share = min(_FEW_CHANGES, 1 - 2 / differences.size)  # one change affects up to two differences
    high = float(np.quantile(np.abs(differences), share, method="lower"))
    most = _SPIKE * max(_scale(differences), high / NormalDist().inv_cdf((1 + share) / 2))
    cut = np.clip(differences, -most, most)
    return max(_LEAST_NOISE**2, float(np.mean(cut**2)) / 2)


def _near(values: np.ndarray) -> np.ndarray:
    """Running median of seven values (n,); near the ends that of the outermost seven."""
    width = min(2 * _AROUND + 1, values.size)
    middle = np.median(np.lib.stride_tricks.sliding_window_view(values, width), axis=1)
    before = (width - 1) // 2
    return np.pad(middle, (before, width - 1 - before), mode="edge")


def _scale(differences: np.ndarray) -> float:
    return _SCALE * float(np.median(np.abs(differences)))
