"""Long sessions, read from the ten-second tiers that the recorder writes.

A day at 10 Hz has 864,000 samples per channel, but only 8,640 buckets in its tier. Counts, means
and maxima of gauges still cover every sample: whole buckets hold sums, and the samples at the two
ends of the window are read one by one. Quantiles, and all statistics of a counter except its
increase, use samples drawn evenly.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np

from gpuwatch.analysis.samples.channels import Means, Pairs, Samples, integral, middle
from gpuwatch.analysis.samples.every_sample import (
    Column,
    EverySample,
    Source,
    Sums,
    column_of,
    known,
    select_channels,
    within,
)
from gpuwatch.analysis.samples.long_window import (
    BUCKET_NS,
    LongWindow,
    ParallelRead,
    read_halved,
    read_window,
)
from gpuwatch.analysis.samples.rates import StepLine
from gpuwatch.analysis.samples.window import Window, few_tick_times
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Kind
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.rows import ChannelRow
from gpuwatch.session.schema import TIER_SECONDS
from gpuwatch.session.writing.step_tier import RESOLUTION

MOST_TICKS = 20_000
"""Ticks from which on a session is read from the tier: half an hour at 10 Hz."""
MOST_LINES = 50_000
"""Step lines from which on a session is read from the tier."""
_PARTS = 500
"""Resolution of the steady-state search: a row of the step tier may hold at most this fraction
(1/500) of the timed steps."""
_SEVERAL = 20
"""Channels from which on two processes are faster than one."""
_CONFIDENT = 1.96
"""Standard errors of a two-sided 95 % interval."""
_STEPS = (
    f"long: step times within {RESOLUTION * 100:.2g} % of each other are stored as their mean, so "
    f"the median and p95 are accurate to {RESOLUTION * 100:.2g} %; mean, shortest and longest are "
    "exact"
)


def source_of(
    reader: SessionReader, *, exact: bool = False, parallel: ParallelRead | None = None
) -> Source:
    """How to read a session: from its tiers where it is long, unless ``exact``.

    ``parallel``: reads half of the channels on another core, where there are many.
    """
    every = EverySample(reader, exact=exact)
    return every if exact or not _long(reader) else FromTiers(reader, every, parallel)


def _long(reader: SessionReader) -> bool:
    last = reader.last_tick()
    return (last is not None and last[0] >= MOST_TICKS) or reader.last_step() >= MOST_LINES


@dataclass(frozen=True)
class _WindowData:
    """The data of all channels over one window."""

    window: Window
    read: LongWindow
    places: dict[int, int]
    """Position of each channel in ``read``, by channel id."""


class FromTiers:
    """Source of a long session: step lines and samples in ten-second buckets."""

    def __init__(
        self, reader: SessionReader, every: EverySample, parallel: ParallelRead | None = None
    ) -> None:
        self._reader, self._every, self._parallel = reader, every, parallel
        self._steps: Sequence[StepLine] | None = None
        self._window_read: _WindowData | None = None
        self._notes: dict[str, None] = {}

    def steps(self) -> Sequence[StepLine]:
        if self._steps is None:
            self._steps = self._lines() if self._reader.last_step() >= MOST_LINES else None
            if self._steps is None:
                self._steps = self._every.steps()
        return self._steps

    def _lines(self) -> list[StepLine]:
        """The tier's rows, and the step lines that no row covers."""
        lines: list[StepLine] = []
        after = -1
        rows = [row for row in self._reader.step_tier() if row.times is not None]
        timed = [row.count for row in rows if not row.warmup]
        for bucket in rows if _PARTS * max(timed, default=0) <= sum(timed) else ():
            first = bucket.n - bucket.lines
            if first > max(after, 0):
                lines += self._reader.steps_folded(after, first)
            lines.append(bucket)
            after = bucket.n
            if bucket.weights is not None:
                self._notes[_STEPS] = None
        return lines + self._reader.steps_folded(after, self._reader.last_step())

    def tick_times(self, span: tuple[int, int] | None) -> Sequence[int]:
        return few_tick_times(self._reader, span)

    def edges(self, start: int, end: int) -> list[int]:
        if not self._many(start, end):
            return self._every.edges(start, end)
        self._notes[f"long: step rates are averages over {TIER_SECONDS} s; their mean is exact"] = (
            None
        )
        return list(range((start // BUCKET_NS + 1) * BUCKET_NS, end, BUCKET_NS))

    def columns(self, channels: Sequence[ChannelRow], window: Window) -> dict[int, Column]:
        data = self._of(window)
        if data is None:
            return self._every.columns(channels, window)
        return {channel.id: _column(data, channel) for channel in channels}

    def samples(
        self, metrics: Collection[str], devices: Collection[str], window: Window
    ) -> tuple[Samples, ...]:
        data = self._of(window)
        if data is None:
            return self._every.samples(metrics, devices, window)
        channels = select_channels(self._reader, metrics, devices)
        return tuple(Samples(channel, _pairs(data, channel)) for channel in channels)

    def notes(self) -> tuple[str, ...]:
        if not self._notes:
            return ()
        return (*self._notes, "`--exact` of show and compare reads every sample and every step")

    def _many(self, start: int, end: int) -> bool:
        first, last = within(self._reader, start, end)
        return last - first > MOST_TICKS and end // BUCKET_NS - start // BUCKET_NS > 1

    def _of(self, window: Window) -> _WindowData | None:
        """All channels from the tier; ``None``: the window is short enough without it."""
        if self._window_read is None or self._window_read.window != window:
            if not self._many(window.start, window.end):
                return None
            self._window_read = self._read(window)
        return self._window_read

    def _read(self, window: Window) -> _WindowData:
        ids = [channel.id for channel in self._reader.channels()]
        if self._parallel is None or len(ids) < _SEVERAL:
            read = read_window(self._reader, ids, window)
        else:
            read = read_halved(self._reader, ids, window, self._parallel)
        counted = max((counts.sum() for counts in read.counts), default=0)
        counted += sum(
            np.count_nonzero((t >= window.start) & (t <= window.end)) for t, _ in read.ends
        )
        self._notes[_note(int(counted), len(read.drawn[0]))] = None
        return _WindowData(window, read, {channel: place for place, channel in enumerate(ids)})


def _note(samples: int, drawn: int) -> str:
    half, high = (
        100 * _CONFIDENT * math.sqrt(share * (1 - share) / max(1, drawn)) for share in (0.5, 0.95)
    )
    return (
        f"long: means and maxima of gauges use all {samples:,} samples; p50 and p95, and means "
        f"of counters, use {drawn:,} drawn evenly, within {half:.2g} and {high:.2g} "
        "percentage points of rank (95 %)"
    )


def _column(data: _WindowData, channel: ChannelRow) -> Column:
    place, window = data.places[channel.id], data.window
    (early, before), (late, behind) = ((t, values[place]) for t, values in data.read.ends)
    t, drawn = data.read.drawn[0], data.read.drawn[1][place]
    if channel.kind == Kind.COUNTER.value:
        times = np.concatenate([early, t, late])
        values = np.concatenate([before, drawn, behind])
        _, order = np.unique(times, return_index=True)
        return column_of(channel, times[order], values[order], window)
    counts = data.read.counts[place]
    outer = np.concatenate(
        [
            values[(times >= window.start) & (times <= window.end)]
            for times, values in ((early, before), (late, behind))
        ]
    )
    outer = outer[~np.isnan(outer)]
    highest = [data.read.highest[place], *outer.tolist()]
    sums = Sums(
        count=int(counts.sum()) + outer.size,
        max=max((value for value in highest if not math.isnan(value)), default=math.nan),
    )
    return Column(drawn, integral(_gauge(data, place), window), sums)


def _pairs(data: _WindowData, channel: ChannelRow) -> Pairs:
    place = data.places[channel.id]
    if channel.kind != Kind.COUNTER.value:
        return _gauge(data, place)
    times = np.concatenate([data.read.ends[0][0], data.read.drawn[0], data.read.ends[1][0]])
    values = np.concatenate(
        [data.read.ends[0][1][place], data.read.drawn[1][place], data.read.ends[1][1][place]]
    )
    _, order = np.unique(times, return_index=True)
    return known(times[order], values[order])


def _gauge(data: _WindowData, place: int) -> Means:
    """One mean per bucket, dated by its last sample, and one for each end of the window.

    A mean of n samples reaches n + 1 usual sample distances back: one missing sample is not a gap.
    """
    counts, means = data.read.counts[place], data.read.means[place]
    full = counts > 0
    gap = BUCKET_NS / middle(counts[full]) if full.any() else 0.0
    begin, behind = (bucket * BUCKET_NS for bucket in data.read.whole)
    ends = (data.read.numbers[full] + 1) * BUCKET_NS - int(gap)
    outer, sizes = [], []
    for (t, values), low, high in (
        ((data.read.ends[0][0], data.read.ends[0][1][place]), data.window.start, begin),
        ((data.read.ends[1][0], data.read.ends[1][1][place]), behind, data.window.end),
    ):
        inside = values[(t >= low) & (t <= high) & ~np.isnan(values)]
        outer.append(float(inside.mean()) if inside.size else math.nan)
        sizes.append(inside.size)
    first = means[full][0] if full.any() else outer[0]  # only opens the span of the next mean
    before = max(data.window.start, begin - int(gap))
    t = np.concatenate([[data.window.start, before], ends, [data.window.end]])
    values = np.concatenate([[first, outer[0]], means[full], outer[1:]])
    reach = gap * (1 + np.concatenate([[0, sizes[0]], counts[full], sizes[1:]]))
    whole = np.zeros(t.size, dtype=bool)
    whole[2:-1] = True
    _, order = np.unique(t, return_index=True)
    order = order[~np.isnan(values[order])]
    return Means(t[order], values[order], reach[order], whole[order])
