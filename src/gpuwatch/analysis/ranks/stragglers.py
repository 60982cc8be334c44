"""Which ranks are slower than the others, beyond noise.

A rank's *excess* is its own time per step less that of the median of the other ranks, taken in the
same blocks of time, so that whatever slows all ranks alike cancels. The median rank is the one
whose own time over the run is the median: with two ranks it is the other one. A rank is a straggler
if the interval of its excess lies above a margin, by Holm's procedure over all ranks, or if its
excess rose by more than the margin at some moment of the run. Blocks are as long as the run allows,
and the standard error allows for correlation from block to block.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gpuwatch.analysis.ranks.own_time import Cells
from gpuwatch.analysis.statistics.changepoints import without_spikes
from gpuwatch.analysis.statistics.intervals import ALPHA, Mean, holm_levels, mean_of, welch
from gpuwatch.core.lazy_dataclass import dataclass

MARGIN = 0.01
"""Share of the step time that a straggler's excess exceeds."""
FEWEST_BLOCKS = 8
_MOST_BLOCKS = 20
_CELLS = 4
"""Cells in a block, if the run is long enough for :data:`FEWEST_BLOCKS` of them."""
_LEAST_SIDE = 4
"""Fewest blocks before and after a rank became slower."""
_LEAST_CORRELATED, _MOST_CORRELATED = 0.25, 0.8
"""Correlation of neighbouring blocks that is assumed where the estimate is lower or higher: a few
blocks hide it."""
_LEAST_AT_A_CHANGE = 0.5
"""The same where the moment of a change is searched: correlated noise looks like one."""
_CLOCK = 1e-9
"""Floor of a standard error, as a share of the step time: exactly equal values have none."""


@dataclass(frozen=True)
class Excess:
    """Own seconds of a step beyond the median of the other ranks."""

    rank: int
    seconds: float
    low: float
    high: float
    level: float
    """Confidence of ``low`` to ``high``, adjusted for the number of ranks."""
    median: float
    """Own seconds of a step of the median of the other ranks."""
    since: int | None = None
    """Session nanoseconds from which on the rank is slower than before, and the figures hold;
    ``None``: over all blocks."""
    before: float | None = None
    """Excess before that."""

    @property
    def relative(self) -> float:
        """Excess over the median's own time: 0.12 is 12 % longer."""
        return self.seconds / self.median if self.median > 0 else math.inf


@dataclass(frozen=True)
class Judged:
    """Every rank against the others."""

    excesses: tuple[Excess, ...]
    """By rank, over all blocks; empty if there are too few."""
    stragglers: tuple[Excess, ...]
    """The slowest first."""
    blocks: int


def judge(cells: Cells, step_seconds: float) -> Judged:
    """Compare the ranks; ``step_seconds`` is the mean time of a step."""
    parts = _blocks(cells.edges.shape[0])
    if len(parts) < FEWEST_BLOCKS:
        return Judged((), (), len(parts))
    margin = MARGIN * step_seconds
    series = [
        _against_others(cells.per_step, index, parts, step_seconds)
        for index in range(len(cells.ranks))
    ]
    means = [_mean(values, step_seconds) for values, _ in series]
    levels = holm_levels([min(1.0, 2 * mean.p_above(margin)) for mean in means])
    excesses = tuple(
        Excess(rank, mean.value, *mean.bounds(1 - level), 1 - level, median)
        for rank, mean, level, (_, median) in zip(cells.ranks, means, levels, series, strict=True)
    )
    named = []
    for excess, (values, median) in zip(excesses, series, strict=True):
        later = _became_slower(values, len(cells.ranks), step_seconds)
        if later is not None:
            split, mean = later
            low, high = mean.bounds(excess.level)
            before = float(values[:split].mean())
            since = int(cells.edges[parts[split][0], 0])
            seconds = mean.value
            named.append(
                Excess(excess.rank, seconds, low, high, excess.level, median, since, before)
            )
        elif excess.low > margin:
            named.append(excess)
    return Judged(excesses, tuple(sorted(named, key=lambda each: -each.seconds)), len(parts))


def _blocks(cells: int) -> list[np.ndarray]:
    """Indices of the neighbouring cells of each block."""
    count = max(FEWEST_BLOCKS, min(_MOST_BLOCKS, cells // _CELLS))
    return np.array_split(np.arange(cells), min(cells, count))


def _against_others(
    per_step: np.ndarray, index: int, blocks: Sequence[np.ndarray], step_seconds: float
) -> tuple[np.ndarray, float]:
    """Excess of a rank in each block (blocks,), and the own time of the median of the others.

    Single cells far from their neighbours, such as a checkpoint, are replaced first.
    """
    others = np.delete(per_step, index, axis=0)
    order = np.argsort(np.median(others, axis=1), kind="stable")
    middle = order[(len(order) - 1) // 2 : len(order) // 2 + 1]
    median = others[middle].mean(axis=0)
    excess = without_spikes((per_step[index] - median) / step_seconds) * step_seconds
    return np.array([excess[part].mean() for part in blocks]), float(np.median(median))


def _mean(values: np.ndarray, step_seconds: float) -> Mean:
    mean = mean_of(values)
    assert mean is not None
    return _wider(mean, [values], step_seconds)


def _wider(
    mean: Mean,
    parts: Sequence[np.ndarray],
    step_seconds: float,
    least: float = _LEAST_CORRELATED,
) -> Mean:
    """``mean`` with a standard error that allows for correlation within ``parts``."""
    rest = [part - part.mean() for part in parts]
    square = sum(float(part @ part) for part in rest)
    product = sum(float(part[1:] @ part[:-1]) for part in rest)
    count = sum(part.size for part in parts)
    measured = product / square if square > 0 else 0.0
    # The estimate from a few values is too low by about this much (Marriott and Pope 1954).
    correlation = measured + (1 + 3 * measured) * len(parts) / count
    correlation = min(max(correlation, least), _MOST_CORRELATED)
    factor = math.sqrt((1 + correlation) / (1 - correlation))
    return replace(mean, error=max(mean.error * factor, _CLOCK * step_seconds))


def _became_slower(values: np.ndarray, ranks: int, step_seconds: float) -> tuple[int, Mean] | None:
    """The block from which on a rank's excess (blocks,) is higher by more than the margin, and its
    mean from there on; ``None`` if no moment stands out among all moments and ranks."""
    margin = MARGIN * step_seconds
    splits = range(_LEAST_SIDE, values.size - _LEAST_SIDE + 1)
    found: tuple[float, int] | None = None
    for split in splits:
        sides = values[:split], values[split:]
        rise = welch(*sides)
        assert rise is not None
        p = _wider(rise, sides, step_seconds, _LEAST_AT_A_CHANGE).p_above(margin)
        if found is None or p < found[0]:
            found = p, split
    if found is None or found[0] * 2 * len(splits) * ranks > ALPHA:
        return None
    mean = _mean(values[found[1] :], step_seconds)
    return (found[1], mean) if mean.value > margin else None
