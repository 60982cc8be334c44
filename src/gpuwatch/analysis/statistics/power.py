"""Statistical power: what a number of blocks can show, and how many a verdict needs.

Student's t test by the noncentral t distribution; two one-sided tests by the sum of their powers
minus 1 (Phillips 1990, J. Pharmacokinetics and Biopharmaceutics 18), which is exact except for
studies that fail both. The required agreement of a rank test costs about one block, where the rank
test can reach the level at all; the tests and docs/statistics.md check this against simulation.
"""

from __future__ import annotations

import math

import numpy as np

from gpuwatch.analysis.statistics.intervals import ALPHA, relative
from gpuwatch.core.lazy_dataclass import dataclass


@dataclass(frozen=True)
class DetectableChange:
    """What a number of blocks can show at the given noise, with a power of 80 %."""

    blocks: int
    excludes_zero: float
    """The smallest relative change that can be told from zero."""
    beyond_margin: float
    """The smallest relative change that is called SLOWER or FASTER."""
    same: bool
    """Whether a true change of zero would be called SAME."""


FEWEST = 5
"""Fewest pairs, or runs per side, for a verdict."""
NOISE_GATE = 2.0
"""Noise, in margins, above which no change is called within the margin."""
NOISY_ALPHA = 0.01
"""Error of SLOWER and FASTER above the gate, where chance alone can look like a difference."""
POWER = 0.8
MOST = 200
"""Largest number of blocks that is suggested."""
_QUIETEST = 1e-9
_FARTHEST = 37.0
"""Noncentrality, in standard errors, beyond which scipy's noncentral t fails."""


def blocks_to_decide(
    estimate: float, noise: float, margin: float, comparisons: int = 1
) -> int | None:
    """About how many blocks in total give a verdict in 80 % of studies.

    With several comparisons each must pass Holm's strictest level.

    Args:
        estimate: the true relative change.
        noise: relative standard deviation of one run.
        margin: relative change that matters.
        comparisons: how many share ``ALPHA``.

    Returns:
        ``None``: more than ``MOST`` blocks, or no number would do.
    """
    blocks = np.arange(FEWEST, MOST + 1)
    level = ALPHA / comparisons
    outside = abs(math.log1p(estimate)) > math.log1p(margin)
    power = power_beyond if outside else power_within
    enough = np.flatnonzero(power(estimate, noise, margin, blocks, level) >= POWER)
    return int(blocks[enough[0]]) if enough.size else None


def resolves(noise: float, margin: float, blocks: int) -> DetectableChange:
    """What ``blocks`` paired blocks can show at ``noise`` (relative standard deviation of one run).

    Raises:
        ValueError: fewer than three blocks; two have a power of 80 % for no realistic change.
    """
    if blocks < 3:
        raise ValueError("three blocks are needed to say what they resolve")
    zero = _reach(noise, float(_less_ranks(np.array([blocks]), ALPHA / 2)[0]))
    beyond = max(zero, math.log1p(margin) + _reach(noise, blocks, _stricter(noise, margin)))
    # A true zero is called different in one study of twenty; only the others can say SAME.
    same = (1 - ALPHA) * float(power_within(0.0, noise, margin, np.array([blocks]))[0])
    return DetectableChange(
        blocks, relative(zero), relative(beyond), blocks >= FEWEST and same >= POWER
    )


def power_zero(change: float, noise: float, blocks: np.ndarray, level: float = ALPHA) -> np.ndarray:
    """Share of studies that tell a true relative ``change`` from zero; shape of ``blocks``."""
    return _power_of_t(abs(math.log1p(change)), noise, _less_ranks(blocks, level / 2), level / 2)


def power_beyond(
    change: float, noise: float, margin: float, blocks: np.ndarray, level: float = ALPHA
) -> np.ndarray:
    """Share of studies that call a true ``change`` SLOWER or FASTER; shape of ``blocks``."""
    distance = abs(math.log1p(change)) - math.log1p(margin)
    beyond = _power_of_t(distance, noise, blocks, level / 2 * _stricter(noise, margin))
    return np.asarray(np.minimum(beyond, power_zero(change, noise, blocks, level)))


def power_within(
    change: float, noise: float, margin: float, blocks: np.ndarray, level: float = ALPHA
) -> np.ndarray:
    """Share of studies that call a true ``change`` SAME or SMALL; shape of ``blocks``."""
    from scipy.special import chdtr

    size, edge = abs(math.log1p(change)), math.log1p(margin)
    usable = _less_ranks(blocks, level)
    both = (
        _power_of_t(edge - size, noise, usable, level)
        + _power_of_t(edge + size, noise, usable, level)
        - 1
    )
    freedom = blocks - 1
    quiet = chdtr(freedom, freedom * (NOISE_GATE * margin / max(noise, _QUIETEST)) ** 2)
    return np.asarray(np.minimum(np.maximum(both, 0.0), quiet))


def _stricter(noise: float, margin: float) -> float:
    """Factor on the level of SLOWER and FASTER for the noise gate."""
    return NOISY_ALPHA / ALPHA if noise > NOISE_GATE * margin else 1.0


def _less_ranks(blocks: np.ndarray, one_sided: float) -> np.ndarray:
    """``blocks`` minus the one that the signed-rank test costs where it can reach the level."""
    return blocks - (0.5**blocks <= one_sided)


def _power_of_t(distance: float, noise: float, blocks: np.ndarray, one_sided: float) -> np.ndarray:
    """Power of the one-sided t test against a bound that the truth exceeds by ``distance``."""
    from scipy.special import nctdtr, stdtrit

    error = max(noise, _QUIETEST) * np.sqrt(2 / blocks)
    shift = np.clip(distance / error, -_FARTHEST, _FARTHEST)
    return np.asarray(1 - nctdtr(blocks - 1, shift, stdtrit(blocks - 1, 1 - one_sided)))


def _reach(noise: float, blocks: float, stricter: float = 1.0) -> float:
    """Distance, as a log-ratio, at which the two-sided t test at ``ALPHA`` has power ``POWER``."""
    from scipy.optimize import brentq
    from scipy.special import nctdtr, stdtrit

    needed = stdtrit(blocks - 1, 1 - ALPHA / 2 * stricter)
    shift = brentq(lambda x: 1 - nctdtr(blocks - 1, x, needed) - POWER, 0.0, _FARTHEST)
    return float(shift) * max(noise, _QUIETEST) * math.sqrt(2 / blocks)
