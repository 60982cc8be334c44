"""Steps and switched windows to a slowdown with its interval: pure functions."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from gpuwatch.analysis.statistics.intervals import Interval, relative

LEVEL = 0.95
BLOCK = 5
"""Neighbouring pairs that are drawn together, so that what lasts some seconds stays whole."""
FEWEST = 2 * BLOCK
"""Pairs under which no interval is drawn."""
TRIMMED = 0.2
SAME_PACE = 0.05
"""By how much, as a logarithm, the fast steps of two neighbours may differ more than usual."""
EVEN = 0.02
"""A spread of the steps that is even enough, however even others are."""
_DRAWS = 4_000


@dataclass(frozen=True)
class Window:
    """A stretch of time in which the switched process ran (``on``) or stood still."""

    on: bool
    start_ns: int
    """CLOCK_MONOTONIC, as ``end_ns``; a guard behind a switch is left out."""
    end_ns: int
    cpu_s: float
    """Processor time of the switched process in it."""

    @property
    def seconds(self) -> float:
        return (self.end_ns - self.start_ns) / 1e9


@dataclass(frozen=True)
class Pairs:
    """Of each pair of neighbours, in the order of time; arrays of one length."""

    ratios: np.ndarray
    """The logarithm of the mean step's length on over that off."""
    fast: np.ndarray
    """The same of the 10th percentile."""
    spread_on: np.ndarray
    """The logarithm of the 90th over the 10th percentile, in the window in which it ran."""
    spread_off: np.ndarray


@dataclass(frozen=True)
class Planned:
    """A window to come."""

    on: bool
    seconds: float


def plan(seconds: float, window_s: float, dice: random.Random) -> list[Planned]:
    """Windows for about so long: in pairs, each with one of either kind, whose order is by chance.

    A window lasts ``window_s`` give or take an eighth, so that none keeps step with what happens
    at fixed intervals, such as a sample.
    """
    planned: list[Planned] = []
    for _ in range(max(1, round(seconds / (2 * window_s)))):
        first = dice.random() < 0.5
        planned += [Planned(on, window_s * dice.uniform(0.875, 1.125)) for on in (first, not first)]
    return planned


def step_lengths(step_ends: np.ndarray, window: Window) -> np.ndarray:
    """Seconds of the steps that lie wholly in the window.

    ``step_ends``: nanoseconds of CLOCK_MONOTONIC, rising.
    """
    first, beyond = np.searchsorted(step_ends, (window.start_ns, window.end_ns))
    return np.diff(step_ends[first:beyond]) / 1e9


def pairs(step_ends: np.ndarray, windows: Sequence[Window]) -> Pairs:
    """What is compared of each pair of neighbours; pairs that lack steps are left out.

    Raises:
        ValueError: two neighbours are of one kind.
    """
    found = []
    for pair in in_pairs(windows):
        on, off = (_pace(step_ends, each) for each in pair)
        if on is not None and off is not None:
            mean, fast, _ = on - off
            found.append((mean, fast, on[2], off[2]))
    return Pairs(*np.asarray(found, dtype=float).reshape(-1, 4).T)


def in_pairs(windows: Sequence[Window]) -> Iterator[tuple[Window, Window]]:
    """Neighbours, the one in which it ran first.

    Raises:
        ValueError: two neighbours are of one kind.
    """
    for first, second in zip(windows[::2], windows[1::2], strict=False):
        if first.on == second.on:
            raise ValueError("a pair has a window of either kind")
        yield (first, second) if first.on else (second, first)


def _pace(step_ends: np.ndarray, window: Window) -> np.ndarray | None:
    """Of the steps in one window the logarithms of their mean, of their 10th percentile, and of
    the 90th over that."""
    lengths = step_lengths(step_ends, window)
    if not lengths.size:
        return None
    fast, slow = np.percentile(lengths, (10, 90))
    return np.log([lengths.mean(), fast, slow / fast])


def undisturbed(found: Pairs) -> np.ndarray:
    """The log-ratios of the pairs in which the machine kept its pace, in the order of time.

    A shared host makes a core slower by half for a moment or for seconds. That shows in how far the
    fast and the slow steps of a window lie apart, and in the fast ones of two neighbours; what
    befalls under a tenth of the steps, as a recorder's samples do, is in neither. A window's spread
    is held against that of the evenest tenth of its own kind, and a pair's change against
    the usual change, so that what the switched process does in all windows leaves out nothing.
    """
    if not found.ratios.size:
        return found.ratios
    kept = np.abs(found.fast - np.median(found.fast)) <= SAME_PACE
    for spread in (found.spread_on, found.spread_off):
        kept &= spread <= max(2 * np.percentile(spread, 10), EVEN)
    return found.ratios[kept]


def trimmed_mean(ratios: np.ndarray, axis: int = -1) -> np.ndarray:
    """Without the :data:`TRIMMED` share of them at either end.

    Which window of a pair is first is by chance, so that noise is as likely up as down and the
    trimmed mean tells the same as the mean. Where others use the processor for seconds, a few
    pairs lie far out, and the mean is mostly of those (Tukey and McLaughlin, 1963).
    """
    count = ratios.shape[axis]
    out = int(TRIMMED * count)
    middle = np.sort(ratios, axis).take(range(out, count - out), axis)
    return np.asarray(middle.mean(axis))


def slowdown(
    ratios: np.ndarray, centre: Callable[..., np.ndarray] = trimmed_mean, *, seed: int = 0
) -> Interval | None:
    """The centre of the log-ratios as a relative change, with its 95 % percentile interval by a
    bootstrap of blocks of neighbouring pairs (circular: Politis and Romano, 1992); ``None`` with
    too few pairs. ``centre`` takes the ``axis`` of an array.

    Of few blocks percentiles are too narrow; so the interval is made wider by as much as that of a
    mean of as many values (Hesterberg, 2015, "What Teachers Should Know About the Bootstrap").
    """
    count = ratios.size
    if count < FEWEST:
        return None
    numbers = np.random.default_rng(seed)
    starts = numbers.integers(count, size=(_DRAWS, -(-count // BLOCK), 1))
    drawn = ratios[(starts + np.arange(BLOCK)) % count].reshape(_DRAWS, -1)
    centres = centre(drawn, axis=-1)
    middle = float(centre(ratios, axis=-1))
    ends = np.percentile(centres, ((1 - LEVEL) * 50, (1 + LEVEL) * 50))
    low, high = middle + _wider(count / BLOCK) * (ends - middle)
    return Interval(relative(middle), relative(float(low)), relative(float(high)), LEVEL)


def _wider(blocks: float) -> float:
    tail = (1 - LEVEL) / 2
    t, normal = stats.t.ppf(tail, blocks - 1), stats.norm.ppf(tail)
    return float(math.sqrt(blocks / (blocks - 1)) * t / normal)


def cpu_share(windows: Sequence[Window]) -> float:
    """Of one core, what the switched process used in the windows in which it ran."""
    on = [window for window in windows if window.on]
    return sum(window.cpu_s for window in on) / sum(window.seconds for window in on)
