"""What so many blocks can tell, and how many it would take.

Student's t by the noncentral t distribution; two one-sided tests by the sum of their powers less 1
(Phillips 1990, J. Pharmacokinetics and Biopharmaceutics 18), which is exact but for the studies
that fail in both. That a rank test must agree costs about one block, where it can speak at all:
so it is counted, and held against simulation by the tests and in docs/statistics.md.
"""

from __future__ import annotations

import math

import numpy as np

from gpuwatch.analysis.statistics.intervals import ALPHA, relative
from gpuwatch.core.lazy_dataclass import dataclass


@dataclass(frozen=True)
class DetectableChange:
    """What so many blocks can tell at this noise, at a power of 80 %."""

    blocks: int
    excludes_zero: float
    """The smallest relative change that is told from none."""
    beyond_margin: float
    """The smallest that is called SLOWER or FASTER."""
    same: bool
    """Whether no change at all would be called SAME."""


FEWEST = 5
"""Pairs, or runs on each side, that a verdict needs; with fewer the figures are described."""
NOISE_GATE = 2.0
"""Noise in margins, above which nothing is said to be within the margin."""
NOISY_ALPHA = 0.01
"""Error of SLOWER and FASTER above the gate, where no difference at all could pass for one."""
POWER = 0.8
MOST = 200
"""Blocks that are still called a reasonable number."""
_QUIETEST = 1e-9
_FARTHEST = 37.0
"""Standard errors beyond which the distribution function of the noncentral t gives up."""


def blocks_to_decide(
    estimate: float, noise: float, margin: float, comparisons: int = 1
) -> int | None:
    """About how many blocks in all give a verdict in 80 % of studies.

    ``estimate``: the true relative change. ``noise``: standard deviation of one run, relative.
    With several comparisons, as if each had to pass at the strictest of Holm's levels.
    ``None``: more than ``MOST``, or no number would.
    """
    blocks = np.arange(FEWEST, MOST + 1)
    level = ALPHA / comparisons
    outside = abs(math.log1p(estimate)) > math.log1p(margin)
    power = power_beyond if outside else power_within
    enough = np.flatnonzero(power(estimate, noise, margin, blocks, level) >= POWER)
    return int(blocks[enough[0]]) if enough.size else None


def resolves(noise: float, margin: float, blocks: int) -> DetectableChange:
    """What ``blocks`` paired blocks can tell at ``noise`` (relative standard deviation of one run).

    Raises:
        ValueError: under three blocks: two reach a power of 80 % at no change that can be named.
    """
    if blocks < 3:
        raise ValueError("three blocks are needed to say what they resolve")
    zero = _reach(noise, float(_less_ranks(np.array([blocks]), ALPHA / 2)[0]))
    beyond = max(zero, math.log1p(margin) + _reach(noise, blocks, _stricter(noise, margin)))
    # No change at all is called different in one study of twenty, and SAME in the others.
    same = (1 - ALPHA) * float(power_within(0.0, noise, margin, np.array([blocks]))[0])
    return DetectableChange(
        blocks, relative(zero), relative(beyond), blocks >= FEWEST and same >= POWER
    )


def power_zero(change: float, noise: float, blocks: np.ndarray, level: float = ALPHA) -> np.ndarray:
    """Share of studies of each number of blocks that tell a true relative ``change`` from none."""
    return _of_t(abs(math.log1p(change)), noise, _less_ranks(blocks, level / 2), level / 2)


def power_beyond(
    change: float, noise: float, margin: float, blocks: np.ndarray, level: float = ALPHA
) -> np.ndarray:
    """Share of studies that call a true relative ``change`` SLOWER or FASTER."""
    distance = abs(math.log1p(change)) - math.log1p(margin)
    beyond = _of_t(distance, noise, blocks, level / 2 * _stricter(noise, margin))
    return np.asarray(np.minimum(beyond, power_zero(change, noise, blocks, level)))


def power_within(
    change: float, noise: float, margin: float, blocks: np.ndarray, level: float = ALPHA
) -> np.ndarray:
    """Share of studies that call a true relative ``change`` SAME or SMALL."""
    from scipy.special import chdtr

    size, edge = abs(math.log1p(change)), math.log1p(margin)
    left = _less_ranks(blocks, level)
    both = _of_t(edge - size, noise, left, level) + _of_t(edge + size, noise, left, level) - 1
    freedom = blocks - 1
    quiet = chdtr(freedom, freedom * (NOISE_GATE * margin / max(noise, _QUIETEST)) ** 2)
    return np.asarray(np.minimum(np.maximum(both, 0.0), quiet))


def _stricter(noise: float, margin: float) -> float:
    """Factor of the level of SLOWER and FASTER."""
    return NOISY_ALPHA / ALPHA if noise > NOISE_GATE * margin else 1.0


def _less_ranks(blocks: np.ndarray, one_sided: float) -> np.ndarray:
    """``blocks``, less the one that the signed-rank test costs where it can reach the level."""
    return blocks - (0.5**blocks <= one_sided)


def _of_t(distance: float, noise: float, blocks: np.ndarray, one_sided: float) -> np.ndarray:
    """Power of the one-sided t test against a bound that the truth exceeds by ``distance``."""
    from scipy.special import nctdtr, stdtrit

    error = max(noise, _QUIETEST) * np.sqrt(2 / blocks)
    shift = np.clip(distance / error, -_FARTHEST, _FARTHEST)
    return np.asarray(1 - nctdtr(blocks - 1, shift, stdtrit(blocks - 1, 1 - one_sided)))


def _reach(noise: float, blocks: float, stricter: float = 1.0) -> float:
    """Distance, in log-ratios, at which the two-sided t test of ``ALPHA`` has its power."""
    from scipy.optimize import brentq
    from scipy.special import nctdtr, stdtrit

    needed = stdtrit(blocks - 1, 1 - ALPHA / 2 * stricter)
    shift = brentq(lambda x: 1 - nctdtr(blocks - 1, x, needed) - POWER, 0.0, _FARTHEST)
    return float(shift) * max(noise, _QUIETEST) * math.sqrt(2 / blocks)
