"""Which share of the steps takes longer than the same share of the baseline's."""

from __future__ import annotations

import math

import numpy as np

from gpuwatch.analysis.results import Cell

_MOST_IN_WORDS = 20
"""Steps of which one is slow, up to which they are counted."""
_LEAST = 4
"""Steps differ if their logarithm is beyond this part of that where most of the difference lies."""


def slow_steps(baseline: Cell, other: Cell, margin: float, *, slower: bool) -> str | None:
    """``1 step in 4 is slower (x1.5)``: the steps whose time, at the same rank among all, is more
    than ``margin`` above the baseline's; not ``slower``: below it.

    Ranks up to the median are left out, as it is judged itself. So are those a quarter as far or
    less than where most of the difference lies, as a busy machine moves them. ``None``: no run's
    steps are known.
    """
    first, second = _quantiles(baseline), _quantiles(other)
    if first is None or second is None:
        return None
    ratios = second / first if slower else first / second
    tail = ratios[ratios.size // 2 :]
    far = np.log(tail[tail > 1 + margin])
    if not far.size:
        return "long steps are rare, or the time passes between steps"
    far = far[far > np.average(far, weights=far) / _LEAST]
    share = far.size / ratios.size
    counts = round(1 / share) <= _MOST_IN_WORDS
    told = f"1 step in {round(1 / share)} is" if counts else f"{share * 100:.0f} % of the steps are"
    return f"{told} {'slower' if slower else 'faster'} (x{math.exp(np.median(far)):.2g})"


def _quantiles(cell: Cell) -> np.ndarray | None:
    """Median over the judged runs of each quantile of their step times."""
    known = [run.steady.quantiles for run in cell.judged if run.steady.quantiles]
    return np.median(np.array(known), axis=0) if known else None
