"""Two cells side by side: figures of their judged runs, and the contribution of each step part.

A *point* is a hundredth of the baseline's step time. The parts of a block add up to the step time,
and their points to its relative change: its log-ratio is split by the logarithmic mean of its two
step times (LMDI: Ang 2005, Energy Policy 33), so that the result does not depend on which of two
noisy runs is the baseline. All are estimated as the verdict is, without the effect of the place in
the block and from ten blocks on by trimmed means, which add up roughly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from gpuwatch.analysis.results import Cell, Run
from gpuwatch.analysis.statistics.intervals import FEWEST, Interval, difference, lower_end, middle
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.text import clean

LEAST_POINTS = 0.003
"""Below 0.3 points a part of the step counts as unchanged."""
_SHORTEST, _LONGEST = 1e-12, 1e12
"""Plausible seconds of a step or a part of a run, so that every division stays finite."""

Value = Callable[[Run], float | None]


@dataclass(frozen=True)
class Points:
    """Contribution of a part, as a share of the baseline's step time (0.029: 2.9 points)."""

    estimate: float
    interval: Interval | None
    """``None`` for fewer than three pairs."""
    pairs: int
    """0: the estimate is from means, as the runs share no blocks."""

    @property
    def judged(self) -> Interval | None:
        """The interval, if there are enough pairs for a verdict."""
        return self.interval if self.pairs >= FEWEST else None

    @property
    def changed(self) -> bool:
        """Whether it is at least ``LEAST_POINTS`` and its interval, if any, excludes zero."""
        within = self.interval is not None and self.interval.low <= 0 <= self.interval.high
        return abs(self.estimate) >= LEAST_POINTS and not within

    def same(self, margin: float) -> bool:
        """Whether it has not changed, and its interval, if any, lies within ``margin``."""
        if self.interval is None:
            return not self.changed
        widest = max(margin, LEAST_POINTS)
        inside = lower_end(widest) <= self.interval.low and self.interval.high <= widest
        return not self.changed and inside

    def text(self, change: float | None = None) -> str:
        """``+2.9 points (+2.4 to +3.4)``, of a whole ``change`` (a share, as ``estimate``)
        ``+2.9 of +3.1 points (+2.4 to +3.4)``; with few pairs, how many."""
        interval = self.interval
        whole = "" if change is None else f" of {signed(change)}"
        notes = [] if interval is None else [f"{signed(interval.low)} to {signed(interval.high)}"]
        if not self.pairs:
            notes.append("not paired")
        elif self.pairs < FEWEST:
            notes.append(f"{self.pairs} block{'s' if self.pairs > 1 else ''}, needs {FEWEST}")
        return f"{signed(self.estimate)}{whole} points ({'; '.join(notes)})"


@dataclass(frozen=True)
class Part:
    """One part of the step in both cells."""

    name: str
    seconds: tuple[float, float]
    """Mean seconds per step of baseline and other."""
    points: Points


@dataclass(frozen=True)
class Split:
    """The step's parts, and the rest of its change."""

    parts: tuple[Part, ...]
    remainder: Points
    change: float
    """The relative change of the step time, as a share."""
    seconds: tuple[float, float]
    """Mean step time of baseline and other."""
    known: bool
    """Whether it is established that there is this change, or none."""


@dataclass(frozen=True)
class Sides:
    """A baseline and the cell compared with it."""

    baseline: Cell
    other: Cell
    margin: float
    """Relative change that does not matter."""
    by_total: bool
    """Whether the change is that of all steps, not of the typical one."""
    places: Mapping[str, int]
    """The place of each run in its block, by the path of its session."""

    def step_seconds(self, run: Run) -> float | None:
        """The time of a step of a run that is explained: typical, or of all steps."""
        typical = step_seconds(run)
        return run.total if self.by_total and typical is not None else typical

    @property
    def cells(self) -> tuple[Cell, Cell]:
        return self.baseline, self.other

    @property
    def names(self) -> tuple[str, str]:
        """The cells' labels, cleaned for a sentence."""
        return clean(self.baseline.label), clean(self.other.label)

    @property
    def sessions(self) -> tuple[tuple[Summary, ...], tuple[Summary, ...]]:
        """Sessions of the judged runs of each cell."""
        first, second = (tuple(run.session for run in cell.judged) for cell in self.cells)
        return first, second

    def middles(
        self, value: Callable[[Summary], float | None]
    ) -> tuple[float | None, float | None]:
        """What ``value`` comes to over each cell's judged runs where it is known."""
        first, second = map(middle, self.known(value))
        return first, second

    def known(self, value: Callable[[Summary], float | None]) -> list[list[float]]:
        """``value`` of each cell's judged runs where it is known."""
        return [
            [known for session in sessions if (known := value(session)) is not None]
            for sessions in self.sessions
        ]

    def both(self, first: str, second: str) -> str:
        """``5.12 ms in bare, 5.27 ms in docker``."""
        one, two = self.names
        return f"{first} in {one}, {second} in {two}"

    def split(self, values: Mapping[str, Value], step: Value | None = None) -> Split | None:
        """The step time in parts; ``values`` give seconds per step of a run, by part, ``step`` the
        step time where it is another one than that which is explained.

        Paired by block, over the blocks where every part is known in both runs. Without shared
        blocks the points are from means, and ``remainder`` holds the difference of their sum.
        ``None``: no run of one cell knows all parts, or a change without an interval is within the
        margin.
        """
        wanted: tuple[Value, ...] = (step or self.step_seconds, *values.values())
        runs = [_rows(cell, wanted) for cell in self.cells]
        if not all(runs):
            return None
        of_block = [{block: row for block, row in side if block is not None} for side in runs]
        shared = sorted(of_block[0].keys() & of_block[1].keys())
        if shared:
            rows = [[side[block] for block in shared] for side in of_block]
        else:
            rows = [[row for _, row in side] for side in runs]
        means = [[middle(column) or 0.0 for column in zip(*side, strict=True)] for side in rows]
        if not shared:
            rows = [[_typical(side)] for side in rows]
        places = [
            {run.block: self.places.get(run.session.path, 0) for run in cell.judged}
            for cell in self.cells
        ]
        later = [float(places[1][block] - places[0][block]) for block in shared]
        added = [_added(first, second) for first, second in zip(*rows, strict=True)]
        columns = list(zip(*added, strict=True))
        whole = difference(columns[0], places=later) if shared else None
        ratio = _estimate(columns[0], whole)
        if whole is None and lower_end(self.margin) <= math.expm1(ratio) <= self.margin:
            return None
        # From shares of a mean log-ratio to shares of the relative change.
        scale = math.expm1(ratio) / ratio if ratio else 1.0
        rest = [each[0] - sum(each[1:]) for each in added]
        parts = tuple(
            Part(name, (means[0][at], means[1][at]), _points(columns[at], scale, later))
            for at, name in enumerate(values, 1)
        )
        total = _points(columns[0], scale, later)
        return Split(
            parts,
            _points(rest, scale, later),
            math.expm1(ratio),
            seconds=(means[0][0], means[1][0]),
            known=total.changed or total.same(self.margin),
        )


def step_seconds(run: Run) -> float | None:
    """Steady step time of a run with a value; ``None`` without one, or if it is not plausible."""
    seconds = run.steady.seconds if run.value is not None else None
    return seconds if seconds is not None and _SHORTEST <= seconds <= _LONGEST else None


def plausible(seconds: float | None) -> float | None:
    """``seconds``, or ``None`` if impossible: files may come from anywhere."""
    return seconds if seconds is not None and abs(seconds) <= _LONGEST else None


def signed(share: float) -> str:
    """A share in points or per cent with its sign: ``+2.9``; ``0.0`` has none."""
    text = f"{share * 100:+.1f}"
    return text if float(text) else "0.0"


def _rows(cell: Cell, wanted: Sequence[Value]) -> list[tuple[int | None, list[float]]]:
    """Block and values of the judged runs where all of ``wanted`` are known."""
    rows = []
    for run in cell.judged:
        found = [each for value in wanted if (each := plausible(value(run))) is not None]
        if len(found) == len(wanted):
            rows.append((run.block, found))
    return rows


def _typical(rows: Sequence[Sequence[float]]) -> list[float]:
    """The mean step time, and as much of it for each part as its mean share, so that they add up
    as those of the runs do."""
    step = middle([row[0] for row in rows]) or 0.0
    shares = zip(*([part / row[0] for part in row[1:]] for row in rows), strict=True)
    return [step, *(step * sum(each) / len(rows) for each in shares)]


def _added(first: Sequence[float], second: Sequence[float]) -> list[float]:
    """Log-ratio of the step times, which come first in each row, and each part's share of it."""
    ratio = math.log(second[0] / first[0])
    # The logarithmic mean; for equal values, the value itself.
    mean = (second[0] - first[0]) / ratio if ratio else first[0]
    return [ratio, *((b - a) / mean for a, b in zip(first[1:], second[1:], strict=True))]


def _points(added: Sequence[float], scale: float, later: Sequence[float]) -> Points:
    """``later``: by how many places the other ran after the baseline in each shared block."""
    interval = difference(added, places=later) if later else None
    estimate = _estimate(added, interval) * scale
    if interval is not None:
        # No part loses more than the whole step.
        low, high = max(-1.0, interval.low * scale), interval.high * scale
        interval = Interval(estimate, low, high, interval.level)
    return Points(estimate, interval, len(later))


def _estimate(added: Sequence[float], interval: Interval | None) -> float:
    return sum(added) / len(added) if interval is None else interval.estimate
