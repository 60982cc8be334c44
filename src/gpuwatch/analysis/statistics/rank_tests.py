"""Rank tests, one-sided in both directions: the cross-check of Student's t.

Wilcoxon (1945), Biometrics Bulletin 1, for paired values, Mann and Whitney (1947), Annals of
Mathematical Statistics 18, for two samples, both computed by scipy: exact for small samples, by the
normal approximation for larger ones (scipy's ``method="auto"``).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from gpuwatch.core.lazy_dataclass import dataclass

_MOST_TIED = 13
"""Most values with tied ranks for which all signs are enumerated (2^13)."""


@dataclass(frozen=True)
class Ranks:
    """One-sided p values of a rank test."""

    above: float
    """Small where the values lie above zero (the first sample above the second)."""
    below: float

    @property
    def two_sided(self) -> float:
        """Twice the smaller p value, at most 1."""
        return min(1.0, 2 * min(self.above, self.below))


def signed_rank(values: np.ndarray) -> Ranks:
    """Wilcoxon's signed-rank test of ``values`` (n,): is their distribution symmetric about zero?

    Zeros are left out; without other values both p values are 1.
    """
    kept = values[values != 0]
    sizes = np.abs(kept)
    if not kept.size:
        return Ranks(1.0, 1.0)
    if np.unique(sizes).size < kept.size:
        return _tied(kept) if kept.size <= _MOST_TIED else _wilcoxon(kept)
    positive = kept[np.argsort(sizes)] > 0
    return _untied(kept.size, int(np.sum(np.flatnonzero(positive) + 1)))


def mann_whitney(values: np.ndarray, baseline: np.ndarray) -> Ranks:
    """Mann-Whitney test of ``values`` (m,) against ``baseline`` (n,)."""
    from scipy.stats import mannwhitneyu

    above, below = (
        float(mannwhitneyu(values, baseline, alternative=side).pvalue)
        for side in ("greater", "less")
    )
    return Ranks(above, below)


@lru_cache(maxsize=16384)
def _untied(count: int, rank_sum: int) -> Ranks:
    """p values of ``count`` untied values; the ranks of the positive ones sum to ``rank_sum``."""
    signed = -np.arange(1.0, count + 1)
    for rank in range(count, 0, -1):
        if rank <= rank_sum:
            signed[rank - 1] = rank
            rank_sum -= rank
    return _wilcoxon(signed)


def _tied(values: np.ndarray) -> Ranks:
    """Exact p values with tied ranks: signed mid-rank sums of all sign combinations."""
    from scipy.stats import permutation_test, rankdata

    signed = rankdata(np.abs(values)) * np.sign(values)
    above, below = (
        float(
            permutation_test(
                (signed,),
                np.sum,
                permutation_type="samples",
                n_resamples=np.inf,
                alternative=side,
                vectorized=True,
            ).pvalue
        )
        for side in ("greater", "less")
    )
    return Ranks(above, below)


def _wilcoxon(values: np.ndarray) -> Ranks:
    from scipy.stats import wilcoxon

    above, below = (
        float(wilcoxon(values, alternative=side).pvalue) for side in ("greater", "less")
    )
    return Ranks(above, below)
