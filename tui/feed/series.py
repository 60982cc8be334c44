"""Histories: recent samples one by one, older ones as means of ten-second buckets."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from operator import mul

from gpuwatch.analysis.samples.rates import StepLine, intervals, rate_series
from gpuwatch.core.units import NS
from gpuwatch.session.rows import StepRow
from gpuwatch.session.schema import BUCKET_SECONDS
from gpuwatch.tui.widgets.graph import Window

RECENT_NS = 360 * NS
"""How far back single ticks are kept: the longest zoom, and the step in which it moves."""
_BUCKET_NS = BUCKET_SECONDS * NS
APART = 1.25
"""Most intervals between two samples of a recorder that is in time."""
MOST_RECENT = 120_000
"""Most single ticks that are kept, however short the sampling interval."""
_MOST_STEP_ROWS = 5_000
_PARTS = 20
"""Parts of a time of which most must have a value."""


class Sums:
    """Totals and weights by ten-second bucket."""

    def __init__(self) -> None:
        self._buckets: dict[int, tuple[float, float]] = {}
        self._earlier: tuple[Sums, int] | None = None

    def __bool__(self) -> bool:
        return bool(self._buckets) or (self._earlier is not None and bool(self._earlier[0]))

    def add(self, bucket: int, total: float, weight: float) -> None:
        before = self._buckets.get(bucket, (0.0, 0.0))
        self._buckets[bucket] = before[0] + total, before[1] + weight

    def add_to_full(self, bucket: int, total: float, weight: float) -> None:
        """Add to the total of a bucket and set its weight."""
        self._buckets[bucket] = self._buckets.get(bucket, (0.0, 0.0))[0] + total, weight

    def use_earlier(self, other: Sums, before: int) -> None:
        """Use the buckets of ``other`` up to session time ``before``, without a copy."""
        self._earlier = other, before // _BUCKET_NS

    def columns(self, view: Window) -> list[float | None]:
        """Weighted means by column."""
        earlier, border = self._earlier or (self, -1)
        means_by_column: list[float | None] = []
        for first, last in _bucket_ranges(view):
            total = weight = 0.0
            for bucket in range(first, last + 1):
                known = (earlier if bucket <= border else self)._buckets.get(bucket)
                if known is not None:
                    total += known[0]
                    weight += known[1]
            means_by_column.append(total / weight if weight else None)
        return means_by_column


class Series:
    """The history of one gauge channel."""

    def __init__(self) -> None:
        self._times: list[int] = []
        self._values: list[float | None] = []
        self._sums = Sums()
        self._truncated = False
        """Whether the buckets reach further back than the ticks."""

    @property
    def seen(self) -> bool:
        """Whether any value is known."""
        return bool(self._sums)

    def mean(self, start: int, end: int, interval: float, least: float = 0.0) -> float | None:
        """Mean from ``start`` to ``end`` in nanoseconds.

        ``None``: it is unknown, or is known of less than the share ``least`` of this time.
        """
        known = [
            value
            for value in self.columns(Window(start, end, _PARTS if least else 1), interval)
            if value is not None
        ]
        return sum(known) / len(known) if known and len(known) >= least * _PARTS else None

    def add(self, t: int, value: float | None) -> None:
        self._times.append(t)
        self._values.append(value)
        if value is not None:
            self._sums.add(t // _BUCKET_NS, value, 1)

    def add_past(self, t: int, value: float) -> None:
        """Add a value older than all ticks, to its bucket only."""
        self._truncated = True
        self._sums.add(t // _BUCKET_NS, value, 1)

    def use_earlier(self, other: Series, before: int) -> None:
        """Use the buckets of ``other`` up to session time ``before``."""
        self._truncated = True
        self._sums.use_earlier(other._sums, before)

    def trim(self) -> None:
        """Drop ticks that are too old for every zoom."""
        if not self._times:
            return
        first = bisect_left(self._times, self._times[-1] - RECENT_NS)
        first = max(first, len(self._times) - MOST_RECENT)
        if first > len(self._times) // 4:
            del self._times[:first], self._values[:first]
            self._truncated = True

    def columns(self, view: Window, interval: float) -> list[float | None]:
        """Mean of each column; ``None``: nothing was recorded.

        A tick covers the time since the one before it, so that narrow columns have no gaps
        between two ticks. ``interval``: the usual seconds between two.
        """
        if not self._times:
            return [None] * view.columns
        if self._truncated and self._times[0] > view.start + APART * interval * NS:
            return clip(self._sums.columns(view), view, self._times[-1])
        return column_means(self._times, self._values, view, interval)


def column_means(
    times: Sequence[int], values: Sequence[float | None], view: Window, interval: float
) -> list[float | None]:
    """Mean of each column of ``view``; ``None`` and NaN are unknown values."""
    edges = view.edges()
    means_by_column: list[float | None] = []
    low = bisect_right(times, edges[0])
    for end in edges[1:]:
        high = bisect_right(times, end, low)
        known = [value for value in values[low:high] if value is not None and value == value]
        if known:
            means_by_column.append(sum(known) / len(known))
        elif low == high and _covers(times, high, end, interval):
            value = values[high]
            means_by_column.append(value if value == value else None)
        else:
            means_by_column.append(None)
        low = high
    return means_by_column


def _covers(times: Sequence[int], index: int, t: int, interval: float) -> bool:
    """Whether the tick ``index`` covers the time ``t`` before it."""
    if index >= len(times):
        return False
    late = index > 0 and times[index] - times[index - 1] < 2.5 * interval * NS
    return late or times[index] - t < APART * interval * NS


def bucket_means(
    numbers: Sequence[int], averages: Sequence[float], counts: Sequence[float], view: Window
) -> list[float | None]:
    """Weighted means of ten-second buckets by column; ``numbers`` are sorted."""
    means_by_column: list[float | None] = []
    for first, last in _bucket_ranges(view):
        low, high = bisect_left(numbers, first), bisect_right(numbers, last)
        weight = sum(counts[low:high])
        total = sum(map(mul, averages[low:high], counts[low:high]))
        means_by_column.append(total / weight if weight else None)
    return means_by_column


def _bucket_ranges(view: Window) -> Iterator[tuple[int, int]]:
    """First and last bucket of each column; a bucket may span several columns."""
    for start, end in pairwise(view.edges()):
        first = start // _BUCKET_NS
        last = max(first, (end - 1) // _BUCKET_NS)
        if last > first and end - start >= 4 * _BUCKET_NS:
            first += 1
        yield first, last


def clip(columns: list[float | None], view: Window, newest: int) -> list[float | None]:
    """``columns`` without values after session time ``newest``: the last bucket ends later."""
    known = bisect_left(view.edges(), newest)
    return columns[:known] + [None] * (view.columns - known)


class StepHistory:
    """History of counted work: recent step lines one by one, older ones in buckets."""

    def __init__(self, work: Callable[[StepLine], float | None]) -> None:
        self.work = work
        self.seen = False
        """Whether the work of any step line is known."""
        self._sums = Sums()

    def add(self, before: StepRow | None, rows: Iterable[StepRow]) -> None:
        """Add step lines that follow ``before`` to the buckets."""
        chain = [before, *rows] if before is not None else list(rows)
        for start, end, row in intervals(row for row in chain if row is not None):
            if row is before:
                continue
            amount = self.work(row)
            if amount is None or end <= start:
                continue
            self.seen = True
            self._spread(start, end, amount)

    def add_groups(self, rows: Iterable[StepRow]) -> None:
        """Add step lines summed by bucket (``SessionReader.step_groups``)."""
        for row in rows:
            amount = self.work(row)
            if amount is not None:
                self.seen = True
                self._sums.add_to_full(row.t // _BUCKET_NS, amount, BUCKET_SECONDS)

    def use_earlier(self, other: StepHistory, before: int) -> None:
        """Use the buckets of ``other`` up to session time ``before``."""
        self.seen |= other.seen
        self._sums.use_earlier(other._sums, before)

    def _spread(self, start: int, end: int, amount: float) -> None:
        first, last = start // _BUCKET_NS, (end - 1) // _BUCKET_NS
        if last - first > 1000:
            first = last - 1000
        for bucket in range(first, last + 1):
            overlap = min(end, (bucket + 1) * _BUCKET_NS) - max(start, bucket * _BUCKET_NS)
            share = overlap / (end - start)
            self._sums.add(bucket, amount * share, overlap / NS)

    def columns(self, view: Window, recent: deque[StepRow], complete: bool) -> list[float | None]:
        """Work per second of each column; ``complete``: ``recent`` has every step line."""
        if not recent:
            return [None] * view.columns
        if not complete and recent[0].t > view.start:
            return clip(self._sums.columns(view), view, recent[-1].t)
        edges = view.edges()
        rows = [row for row in recent if row.t >= view.start - 60 * NS]
        # The newest column ends at the last step line, not at its edge.
        newest = recent[-1].t
        last = bisect_left(edges, newest)
        if 0 < last < len(edges) and newest > edges[last - 1]:
            known = rate_series(rows, self.work, [*edges[:last], newest])
            return known + [None] * (view.columns - len(known))
        return rate_series(rows, self.work, edges)

    def last(self, recent: deque[StepRow], seconds: float = 2.0) -> float | None:
        """Work per second over the last ``seconds`` that end with the newest step line."""
        if not recent:
            return None
        end = recent[-1].t
        start = end - int(seconds * NS)
        rows: list[StepRow] = []
        for row in reversed(recent):
            rows.append(row)
            if row.t < start and len(rows) > 1:
                break
        rows.reverse()
        spans = intervals(rows)
        begin = max(start, spans[0][0])
        if begin >= end:
            return None
        return rate_series(rows, self.work, [begin, end])[0]


def recent_steps() -> deque[StepRow]:
    """An empty queue for the newest step lines."""
    return deque(maxlen=_MOST_STEP_ROWS)
