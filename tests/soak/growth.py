"""Whether a process that stays takes more and more: from samples of it, pure functions."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from statistics import median

from scipy.stats import theilslopes

MIB = 2**20
WARM_UP = 1 / 6
"""Share of the time at the start that is not judged: modules, caches and arenas fill."""
MOST_MIB = 3.0
MOST_MIB_AN_HOUR = 1.0
_POINTS = 60
"""Neighbouring samples depend on each other: the slope is that of so many medians."""


@dataclass(frozen=True)
class Sample:
    """A process at one moment: ``seconds`` since the start, ``rss`` in bytes."""

    seconds: float
    rss: int
    descriptors: int
    threads: int
    children: int


def look(pid: int, seconds: float) -> Sample | None:
    """A process now; ``None`` where it is gone."""
    place = Path("/proc", str(pid))
    with contextlib.suppress(OSError, IndexError):
        resident = int((place / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        tasks = os.listdir(place / "task")
        children = 0
        for task in tasks:
            with contextlib.suppress(OSError):  # a thread that ended just now
                children += len((place / "task" / task / "children").read_text().split())
        descriptors = len(os.listdir(place / "fd"))
        return Sample(seconds, resident, descriptors, len(tasks), children)
    return None


@dataclass(frozen=True)
class Growth:
    """From the end of the warm-up to the end; memory in MiB, slopes in MiB an hour."""

    start: Sample
    end: Sample
    slope: float
    low: float
    high: float
    descriptors: int
    threads: int
    children: int
    """More of each at any look of the last third than at any of the first."""

    @property
    def mib(self) -> float:
        return (self.end.rss - self.start.rss) / MIB

    @property
    def leaks_memory(self) -> bool:
        """It grew by more than 3 MiB, and its slope is above 1 MiB an hour for certain."""
        return self.mib > MOST_MIB and self.low > MOST_MIB_AN_HOUR

    def leaks(self) -> list[str]:
        """What it takes more of than it did, in words."""
        counted = ("descriptors", "threads", "children")
        found = [f"{getattr(self, kind)} {kind}" for kind in counted if getattr(self, kind)]
        if self.leaks_memory:
            found.append(f"{self.mib:.1f} MiB, {self.low:.1f} to {self.high:.1f} MiB/h")
        return found


_DESCRIPTORS = attrgetter("descriptors")
_THREADS = attrgetter("threads")
_CHILDREN = attrgetter("children")


def growth(samples: Sequence[Sample]) -> Growth:
    """How a process grew after its warm-up.

    Start and end are medians of the first and last tenth; the slope is Theil and Sen's, with its
    95 % interval.

    Raises:
        ValueError: fewer than 20 samples.
    """
    if len(samples) < 20:
        raise ValueError(f"{len(samples)} samples tell no growth")
    judged = samples[round(len(samples) * WARM_UP) :]
    tenth = max(3, len(judged) // 10)
    size = max(1, len(judged) // _POINTS)
    points = [_middle(judged[at : at + size]) for at in range(0, len(judged) - size + 1, size)]
    slope, _, low, high = theilslopes(
        [point.rss / MIB for point in points], [point.seconds / 3600 for point in points]
    )
    third = len(judged) // 3
    more = (
        max(0, min(map(kind, judged[-third:])) - max(map(kind, judged[:third])))
        for kind in (_DESCRIPTORS, _THREADS, _CHILDREN)
    )
    return Growth(
        _middle(judged[:tenth]), _middle(judged[-tenth:]), float(slope), float(low), float(high),
        *more,
    )  # fmt: skip


def _middle(samples: Sequence[Sample]) -> Sample:
    return Sample(
        median(each.seconds for each in samples),
        round(median(each.rss for each in samples)),
        round(median(each.descriptors for each in samples)),
        round(median(each.threads for each in samples)),
        round(median(each.children for each in samples)),
    )
