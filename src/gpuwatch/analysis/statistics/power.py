"""Statistical power: what a number of blocks can show, and how many a verdict needs.

The test of a trimmed mean, with the place in the block, by the noncentral t distribution with its
degrees of freedom; two one-sided tests by the sum of their powers minus 1 (Phillips 1990, J.
Pharmacokinetics and Biopharmaceutics 18), which is exact except for studies that fail both. The
tests and docs/statistics.md check this against simulation.
"""

from __future__ import annotations

import math

import numpy as np

from gpuwatch.analysis.statistics.intervals import ALPHA, FEWEST, freedom, hidden, relative
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


VALUES = 2
"""Values of a comparison of step times: the typical step, and all of them."""
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
    estimate: float, noise: float, margin: float, comparisons: int = 1, values: int = VALUES
) -> int | None:
    """About how many blocks in total give a verdict on one value in 80 % of studies.

    With several comparisons each must pass Holm's strictest level.

    Args:
        estimate: the true relative change.
        noise: relative standard deviation of one run.
        margin: relative change that matters.
        comparisons: how many share ``ALPHA``.
        values: how many each of them has; they share it in SLOWER and FASTER, not in SAME.

    Returns:
        ``None``: more than ``MOST`` blocks, or no number would do.
    """
    blocks = np.arange(FEWEST, MOST + 1)
    outside = abs(math.log1p(estimate)) > math.log1p(margin)
    power = power_beyond if outside else power_within
    level = ALPHA / comparisons / (values if outside else 1)
    enough = np.flatnonzero(power(estimate, noise, margin, blocks, level) >= POWER)
    return int(blocks[enough[0]]) if enough.size else None


def resolves(noise: float, margin: float, blocks: int) -> DetectableChange:
    """What ``blocks`` paired blocks can show at ``noise`` (relative standard deviation of one run);
    three at least, as two have a power of 80 % for no realistic change."""
    level = ALPHA / VALUES
    zero = _reach(noise, blocks, level)
    ways = ways_beyond(noise, margin)
    beyond = max(zero, min(edge + _reach(noise, blocks, level * by) for edge, by in ways))
    # A true zero is called different in one study of twenty; only the others can say SAME.
    same = (1 - ALPHA) * float(power_within(0.0, noise, margin, np.array([blocks]))[0])
    return DetectableChange(
        blocks, relative(zero), relative(beyond), blocks >= FEWEST and same >= POWER
    )


def power_zero(change: float, noise: float, blocks: np.ndarray, level: float = ALPHA) -> np.ndarray:
    """Share of studies that tell a true relative ``change`` from zero; shape of ``blocks``."""
    return _power_of_t(abs(math.log1p(change)), noise, blocks, level / 2)


def power_beyond(
    change: float, noise: float, margin: float, blocks: np.ndarray, level: float = ALPHA
) -> np.ndarray:
    """Share of studies that call a true ``change`` SLOWER or FASTER; shape of ``blocks``."""
    size = abs(math.log1p(change))
    beyond = [
        _power_of_t(size - edge, noise, blocks, level / 2 * factor)
        for edge, factor in ways_beyond(noise, margin)
    ]
    return np.asarray(np.minimum(np.max(beyond, 0), power_zero(change, noise, blocks, level)))


def ways_beyond(noise: float, margin: float) -> tuple[tuple[float, float], ...]:
    """The ways to be SLOWER or FASTER: the log-ratio that a change must be beyond, and a factor on
    the level of that test.

    Above the noise gate one is at the stricter level, the other beyond the margin at which the gate
    would open: so what is beyond a wider margin is beyond a narrower one too.
    """
    edge = math.log1p(margin)
    if noise <= NOISE_GATE * margin:
        return ((edge, 1.0),)
    return (edge, NOISY_ALPHA / ALPHA), (math.log1p(noise / NOISE_GATE), 1.0)


def power_within(
    change: float, noise: float, margin: float, blocks: np.ndarray, level: float = ALPHA
) -> np.ndarray:
    """Share of studies that call a true ``change`` SAME or SMALL; shape of ``blocks``."""
    from scipy.special import chdtr

    size, edge = abs(math.log1p(change)), math.log1p(margin)
    both = (
        _power_of_t(edge - size, noise, blocks, level)
        + _power_of_t(edge + size, noise, blocks, level)
        - 1
    )
    degrees = _freedom(blocks)
    quiet = chdtr(degrees, degrees * (NOISE_GATE * margin / max(noise, _QUIETEST)) ** 2)
    return np.asarray(np.minimum(np.maximum(both, 0.0), quiet))


def _freedom(blocks: np.ndarray) -> np.ndarray:
    return np.array([freedom(int(count), placed=count >= FEWEST) for count in blocks])


def _power_of_t(distance: float, noise: float, blocks: np.ndarray, one_sided: float) -> np.ndarray:
    """Power of the one-sided test against a bound that the truth exceeds by ``distance``."""
    from scipy.special import nctdtr, stdtrit

    error = max(noise, _QUIETEST) * np.sqrt(2 / blocks) * [_wider(count) for count in blocks]
    shift = np.clip(distance / error, -_FARTHEST, _FARTHEST)
    # The error itself varies as one of all values, which trimming does not change much.
    return np.asarray(1 - nctdtr(blocks - 1, shift, stdtrit(_freedom(blocks), 1 - one_sided)))


def _reach(noise: float, blocks: int, level: float) -> float:
    """Distance, as a log-ratio, at which the two-sided test at ``level`` has power ``POWER``."""
    from scipy.optimize import brentq
    from scipy.special import nctdtr, stdtrit

    needed = stdtrit(freedom(blocks, placed=blocks >= FEWEST), 1 - level / 2)
    shift = brentq(lambda x: 1 - nctdtr(blocks - 1, x, needed) - POWER, 0.0, _FARTHEST)
    return float(shift) * max(noise, _QUIETEST) * math.sqrt(2 / blocks) * _wider(blocks)


def _wider(blocks: int) -> float:
    return hidden(int(blocks)) if blocks >= FEWEST else 1.0
