"""Two cells side by side: figures of their judged runs, and what each part of a step adds.

A *point* is a hundredth of the baseline's step time. The parts of a step add up to it, and their
points to the relative change that the verdict gives: the change of each block's log-ratio is shared
out by the logarithmic mean of its two step times (LMDI: Ang 2005, Energy Policy 33), so that it
does not matter which of two noisy runs is the baseline.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence

from gpuwatch.analysis.comparison.verdict import FEWEST, difference
from gpuwatch.analysis.results import Cell, Run
from gpuwatch.analysis.statistics.intervals import Interval, lower_end
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.text import clean

LEAST_POINTS = 0.003
"""Under 0.3 points a part of the step counts as unchanged."""
_LONGEST_LABEL = 40
_SHORTEST, _LONGEST = 1e-12, 1e12
"""Seconds that a step or a part of a run can have: whatever is divided stays finite."""

Value = Callable[[Run], float | None]


@dataclass(frozen=True)
class Points:
    """What a part of the step adds, as a share of the baseline's step time (0.029: 2.9 points)."""

    estimate: float
    interval: Interval | None
    """Of three pairs or more."""
    pairs: int
    """0: of medians, as the runs share no blocks."""

    @property
    def judged(self) -> Interval | None:
        """The interval, where there are as many pairs as a verdict needs."""
        return self.interval if self.pairs >= FEWEST else None

    @property
    def changed(self) -> bool:
        """Whether it is more than the least, and told from none where there is an interval."""
        return abs(self.estimate) >= LEAST_POINTS and not self._may_be_none

    def same(self, margin: float) -> bool:
        """Whether it is less than the least, or told to be within ``margin`` if it is anything."""
        if self.interval is None:
            return not self.changed
        widest = max(margin, LEAST_POINTS)
        inside = lower_end(widest) <= self.interval.low and self.interval.high <= widest
        return not self.changed and inside

    @property
    def _may_be_none(self) -> bool:
        return self.interval is not None and self.interval.low <= 0 <= self.interval.high

    def __str__(self) -> str:
        """``+2.9 points (+2.4 to +3.4)``; with few pairs, how many."""
        between = self.interval
        told = [] if between is None else [f"{signed(between.low)} to {signed(between.high)}"]
        if not self.pairs:
            told.append("of medians: described")
        elif self.pairs < FEWEST:
            told.append(f"{self.pairs} block{'s' if self.pairs > 1 else ''}: described")
        return f"{signed(self.estimate)} points ({'; '.join(told)})"


@dataclass(frozen=True)
class Part:
    """One part of the step in both cells."""

    name: str
    seconds: tuple[float, float]
    """Medians of baseline and other."""
    points: Points


@dataclass(frozen=True)
class Split:
    """The step's parts, and what of its change is in none of them."""

    parts: tuple[Part, ...]
    remainder: Points


@dataclass(frozen=True)
class Sides:
    """A baseline and what is compared with it."""

    baseline: Cell
    other: Cell
    margin: float
    """Relative change that does not matter."""

    @property
    def cells(self) -> tuple[Cell, Cell]:
        return self.baseline, self.other

    @property
    def names(self) -> tuple[str, str]:
        """The cells' labels, fit for a sentence."""
        return clean(self.baseline.label, _LONGEST_LABEL), clean(self.other.label, _LONGEST_LABEL)

    @property
    def sessions(self) -> tuple[tuple[Summary, ...], tuple[Summary, ...]]:
        """Of the judged runs."""
        return _sessions(self.baseline), _sessions(self.other)

    def medians(
        self, value: Callable[[Summary], float | None]
    ) -> tuple[float | None, float | None]:
        """Of each cell over the judged runs where it is known."""
        first, second = (
            [known for session in of if (known := value(session)) is not None]
            for of in self.sessions
        )
        return median(first), median(second)

    def both(self, first: str, second: str) -> str:
        """``5.12 ms in bare, 5.27 ms in docker``."""
        one, two = self.names
        return f"{first} in {one}, {second} in {two}"

    def split(self, values: Mapping[str, Value]) -> Split | None:
        """The step time in parts; ``values`` are seconds a step of one run.

        Paired by block, over the blocks in which both runs know every part. Where the runs share no
        blocks the points are of medians, and ``remainder`` holds what these do not add up to.
        ``None``: in one of the cells no run knows them all.
        """
        wanted: tuple[Value, ...] = (step_seconds, *values.values())
        runs = [_rows(cell, wanted) for cell in self.cells]
        if not all(runs):
            return None
        of_block = [{block: row for block, row in of if block is not None} for of in runs]
        shared = sorted(of_block[0].keys() & of_block[1].keys())
        if shared:
            rows = [[of[block] for block in shared] for of in of_block]
        else:
            rows = [[row for _, row in of] for of in runs]
        middle = [[statistics.median(column) for column in zip(*of, strict=True)] for of in rows]
        if not shared:
            rows = [[each] for each in middle]
        added = [_added(first, second) for first, second in zip(*rows, strict=True)]
        columns = list(zip(*added, strict=True))
        scale = _scale(statistics.mean(columns[0]))
        rest = [each[0] - sum(each[1:]) for each in added]
        parts = tuple(
            Part(name, (middle[0][at], middle[1][at]), _points(columns[at], scale, len(shared)))
            for at, name in enumerate(values, 1)
        )
        return Split(parts, _points(rest, scale, len(shared)))


def step_seconds(run: Run) -> float | None:
    """The steady step time of a run that counts; ``None`` where the metric is another."""
    seconds = run.steady.seconds if run.value is not None else None
    return seconds if seconds is not None and _SHORTEST <= seconds <= _LONGEST else None


def plausible(seconds: float | None) -> float | None:
    """``seconds``, unless no run can have taken them: files may come from anywhere."""
    return seconds if seconds is not None and abs(seconds) <= _LONGEST else None


def median(values: Sequence[float]) -> float | None:
    """``None`` of no values."""
    return statistics.median(values) if values else None


def signed(share: float) -> str:
    """A share in points or per cent with its sign: ``+2.9``; ``0.0`` has none."""
    text = f"{share * 100:+.1f}"
    return text if float(text) else "0.0"


def _sessions(cell: Cell) -> tuple[Summary, ...]:
    return tuple(run.session for run in cell.judged)


def _rows(cell: Cell, wanted: Sequence[Value]) -> list[tuple[int | None, list[float]]]:
    """Block and values of the judged runs that know them all."""
    rows = []
    for run in cell.judged:
        found = [each for value in wanted if (each := plausible(value(run))) is not None]
        if len(found) == len(wanted):
            rows.append((run.block, found))
    return rows


def _added(first: Sequence[float], second: Sequence[float]) -> list[float]:
    """Natural logarithm of the ratio of the step times, which come first, and each part's share."""
    ratio = math.log(second[0] / first[0])
    # The logarithmic mean; of two that are equal their common value.
    mean = (second[0] - first[0]) / ratio if ratio else first[0]
    return [ratio, *((b - a) / mean for a, b in zip(first[1:], second[1:], strict=True))]


def _scale(mean_ratio: float) -> float:
    """What makes shares of a mean log-ratio add up to the relative change that it is."""
    return math.expm1(mean_ratio) / mean_ratio if mean_ratio else 1.0


def _points(added: Sequence[float], scale: float, pairs: int) -> Points:
    between = difference(added) if pairs else None
    if between is not None:
        low, high = between.low * scale, between.high * scale
        between = Interval(between.estimate * scale, low, high, between.level)
    return Points(statistics.mean(added) * scale, between, pairs)
