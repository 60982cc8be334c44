"""Where the level of a series changes: optimal partitioning by least squares.

Jackson et al. (2005), "An algorithm for optimal partitioning of data on an interval", IEEE Signal
Processing Letters 12; what PELT (Killick, Fearnhead, Eckley 2012, J. American Statistical
Association 107) finds too, with every start tried: series here are short. A change must lower the
squared error by three times the long-run variance times the logarithm of the length. That variance
comes from differences of neighbours, which levels hardly touch, so that noise that is correlated
from step to step is not taken for changes (Chakar et al. 2017, Bernoulli 23, for series of AR(1)).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import NormalDist

import numpy as np

from gpuwatch.core.lazy_dataclass import dataclass

PENALTY = 3.0
SHORTEST = 5
"""Values that a level has at least: fewer are spikes."""
_SCALE = 1.4826
_AROUND = 3
"""Neighbours on each side that tell whether a value is a spike: three slow steps in a row are."""
_SPIKE = 4.0
"""Standard deviations from the median of its neighbours that make a value a spike."""
_LEAST_NOISE = 1e-4
"""Relative: below this a clock's resolution would be taken for the noise."""
_MOST_SPIKES = 0.15
"""Share of all values that spikes can be; more are how the values are, as at two speeds in turn."""
_FEW_CHANGES = 0.9
"""Share of the differences, at most, that no change of level has a part in."""
_CHANCE = 0.01
"""Two-sided error of the rank test that neighbouring levels must pass: five values that all lie
beyond five others do."""
_FARTHEST_BY_CHANCE = NormalDist().inv_cdf(1 - _CHANCE / 2)
_MOST_CORRELATED = 0.9
_LEAST_CORRELATED = 0.5
"""What is supposed where less is seen: few steps do not show it, and steps seldom have less."""


@dataclass(frozen=True)
class Noise:
    """Of a series of logarithms."""

    deviation: float
    """Standard deviation of one value around its level."""
    long_run: float
    """Variance of a mean of many values, times their number."""


def spikes(values: np.ndarray) -> np.ndarray:
    """Which of ``values`` are far from the median of their neighbours (Hampel's filter): single
    slow steps, also where they come regularly, are no level. None are where they would be many."""
    far = np.abs(values - _near(values)) > _SPIKE * max(
        _LEAST_NOISE, _scale(np.diff(values)) / math.sqrt(2)
    )
    return far if far.mean() <= _MOST_SPIKES else np.zeros_like(far)


def without_spikes(values: np.ndarray) -> np.ndarray:
    """``values``, :func:`spikes` replaced by the median of their neighbours."""
    return np.where(spikes(values), _near(values), values)


def noise_of(values: np.ndarray) -> Noise:
    """From the differences of values one and two apart, those at a change of level cut short.

    With correlation r from value to value, the first are 2v(1-r) in the mean square and the second
    2v(1-r^2): their ratio less 1 is r. Negative correlation is taken as none.
    """
    one, two = (
        each - np.median(each) for each in (np.diff(values), values[2:] - values[:-2])
    )  # a drift is no correlation
    half_one, half_two = _half_square(one), _half_square(two)
    correlation = min(_MOST_CORRELATED, max(0.0, half_two / half_one - 1))
    supposed = max(_LEAST_CORRELATED, correlation)
    return Noise(
        math.sqrt(half_one / (1 - correlation)),
        half_one * (1 + supposed) / (1 - supposed) ** 2,
    )


def partition(values: np.ndarray, penalty: float) -> list[int]:
    """Starts of the segments of constant level that fit best, each change costing ``penalty``."""
    count = values.size
    centred = values - values.mean()
    sums = np.concatenate([[0.0], np.cumsum(centred)])
    squares = np.concatenate([[0.0], np.cumsum(centred**2)])
    best = np.full(count + 1, np.inf)
    best[0] = -penalty
    before = np.zeros(count + 1, dtype=int)
    for end in range(SHORTEST, count + 1):
        starts = np.arange(0, end - SHORTEST + 1)
        error = squares[end] - squares[starts]
        error -= (sums[end] - sums[starts]) ** 2 / (end - starts)
        cost = best[starts] + error + penalty
        before[end] = int(np.argmin(cost))
        best[end] = cost[before[end]]
    found, end = [], count
    while end > 0:
        end = int(before[end])
        found.append(end)
    return found[::-1]


def supported(values: np.ndarray, starts: Sequence[int]) -> list[int]:
    """``starts`` without those of levels that are not told from the one before by ranks.

    Least squares choose their changes after the fact, so that values of two speeds in turn seem to
    change where a few alike come together. The test is that of Wilcoxon (1945) and Mann and Whitney
    (1947) by the normal approximation, spikes left out; the weakest change goes first.
    """
    kept, spiky = list(starts), spikes(values)
    plain = [each[~out] for each, out in _parts(values, spiky, kept)]
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


def _parts(
    values: np.ndarray, spiky: np.ndarray, starts: Sequence[int]
) -> Iterable[tuple[np.ndarray, np.ndarray]]:
    cuts = list(starts[1:])
    return zip(np.split(values, cuts), np.split(spiky, cuts), strict=True)


def _apart(one: np.ndarray, two: np.ndarray) -> float:
    """Standard errors by which the ranks of ``two`` lie from those of ``one``."""
    if not one.size or not two.size:
        return 0.0
    from scipy.stats import rankdata

    count = one.size + two.size
    ranks = rankdata(np.concatenate([one, two]))[one.size :]
    error = math.sqrt((count + 1) * one.size / (12 * two.size))
    return abs(float(ranks.mean()) - (count + 1) / 2) / error


def squared_error(values: np.ndarray, *columns: np.ndarray) -> tuple[float, np.ndarray]:
    """Of the least-squares fit of a constant and ``columns``; and the fit itself."""
    design = np.stack([np.ones(values.size), *columns], axis=1)
    weights, *_ = np.linalg.lstsq(design, values, rcond=None)
    fit = design @ weights
    return float(np.sum((values - fit) ** 2)), fit


def _half_square(differences: np.ndarray) -> float:
    """Half of the mean square, which is the variance of the values; never below a clock's."""
    share = min(_FEW_CHANGES, 1 - 2 / differences.size)  # one change is in up to two of them
    high = float(np.quantile(np.abs(differences), share, method="lower"))
    most = _SPIKE * max(_scale(differences), high / NormalDist().inv_cdf((1 + share) / 2))
    cut = np.clip(differences, -most, most) if most else differences
    return max(_LEAST_NOISE**2, float(np.mean(cut**2)) / 2)


def _near(values: np.ndarray) -> np.ndarray:
    """The median of each value and its neighbours; at the ends that of the outermost seven."""
    width = min(2 * _AROUND + 1, values.size)
    middle = np.median(np.lib.stride_tricks.sliding_window_view(values, width), axis=1)
    before = (width - 1) // 2
    return np.pad(middle, (before, width - 1 - before), mode="edge")


def _scale(differences: np.ndarray) -> float:
    return _SCALE * float(np.median(np.abs(differences)))
