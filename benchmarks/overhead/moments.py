"""What a process costs a workload in the moments in which it runs: pure functions.

A process that sleeps takes nothing from anybody, and a recorder sleeps most of the time. So time is
cut into slots of some steps, and the work done in those in which the process ran is held against
that in the slots around them, in which it did not. A shared host, which changes its pace for
seconds, changes both alike. The slots are cut in time and not in steps: a step that is long for any
other reason would be likelier to meet the process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.overhead.windows import Window, in_pairs

SLOT_NS = 5_000_000
AFTER = 1
"""Slots behind one in which it ran that count with it: caches are the workload's again then."""
REACH = 20
"""How many slots to either side one is held against."""
FEWEST_AROUND = 5
"""Of those, free of the process; with fewer the pair tells nothing."""


@dataclass(frozen=True)
class Steps:
    """Of a workload; arrays of one length, in nanoseconds, rising."""

    ends: np.ndarray
    """At which each step ended, of CLOCK_MONOTONIC."""
    beside: np.ndarray
    """The processor time that the switched process had used by then."""


def beside_nobody(steps: Steps) -> Steps:
    """The same steps beside a process that is made up, and would run for 60 ms twice a second.

    Of one that never runs there are no moments; those of this one must show nothing.
    """
    runs = steps.ends % 500_000_000 < 60_000_000
    return replace(steps, beside=np.cumsum(runs))


def moments(steps: Steps, windows: Sequence[Window]) -> np.ndarray:
    """Of each pair of windows the logarithm of how much longer its steps took because the process
    ran: in the window in which it ran, less what the same moments of the other one show.

    Nothing but chance is in the other one. Left out are pairs without enough slots around the
    moments, such as all of a process that hardly rests; one that never ran has none.

    Raises:
        ValueError: two neighbours are of one kind.
    """
    found = []
    ran = False
    for on, off in in_pairs(windows):
        work = [_work(steps, each) for each in (on, off)]
        count = min(each.size for each in work)
        touched = _touched(steps, on)[:count]
        ran |= bool(touched.any())
        lost = [_lost(each[:count], touched) for each in work]
        if None not in lost:
            found.append(np.log1p(-lost[1]) - np.log1p(-lost[0]))
    return np.asarray(found if ran else [], dtype=float)


def _edges(window: Window) -> np.ndarray:
    return np.arange(window.start_ns, window.end_ns + 1, SLOT_NS)


def _work(steps: Steps, window: Window) -> np.ndarray:
    """Steps done in each slot; one across an edge counts in both by its share of time."""
    return np.diff(np.interp(_edges(window), steps.ends, np.arange(steps.ends.size)))


def _touched(steps: Steps, window: Window) -> np.ndarray:
    """Whether the process ran in a slot, or in a step that reaches into it, or just before."""
    edges = _edges(window)
    last = steps.ends.size - 1
    before = np.searchsorted(steps.ends, edges[:-1], "right") - 1
    behind = np.searchsorted(steps.ends, edges[1:], "left")
    ran = steps.beside[behind.clip(0, last)] > steps.beside[before.clip(0, last)]
    touched = ran.copy()
    for slots in range(1, AFTER + 1):
        touched[slots:] |= ran[:-slots]
    return touched


def _lost(work: np.ndarray, touched: np.ndarray) -> float | None:
    """The share of a window's work that is missing in the touched slots."""
    if not touched.any():
        return 0.0
    kernel = np.ones(2 * REACH + 1)
    around = np.convolve(~touched, kernel)[REACH:-REACH]
    usual = np.convolve(np.where(touched, 0.0, work), kernel)[REACH:-REACH]
    if around[touched].min() < FEWEST_AROUND or usual[touched].min() <= 0:
        return None
    missing = 1 - work[touched] * around[touched] / usual[touched]
    return float(missing.sum() / work.size)
