"""Long sessions read from the tiers that were written while recording.

A day at 10 Hz has 864,000 samples of each channel, and its tier 8,640 buckets. Counts, means and
highest values of gauges are of every sample all the same: whole buckets have their sums, and at the
two ends of the window the samples themselves are read. Quantiles are of samples that are drawn
evenly, as all of a counter is but what it added.
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
    of_these,
    within,
)
from gpuwatch.analysis.samples.long_window import (
    BUCKET_NS,
    Aside,
    LongWindow,
    read_halved,
    read_window,
)
from gpuwatch.analysis.samples.rates import StepLine
from gpuwatch.analysis.samples.window import Window
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Kind
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.rows import ChannelRow
from gpuwatch.session.schema import TIER_SECONDS
from gpuwatch.session.writing.step_tier import RESOLUTION

MOST_TICKS = 20_000
"""A session of more samples is read from the tier: half an hour at 10 Hz."""
MOST_LINES = 50_000
"""Step lines that are read one by one."""
_PARTS = 500
"""A row of the tier stands for no more than one in so many of the timed steps: where a run is
steady is looked for in as many parts of it."""
_SEVERAL = 20
"""Channels from which on two processes read them sooner than one."""
_CONFIDENT = 1.96
_STEPS = (
    f"long: step times within {RESOLUTION * 100:.2g} % of each other are told as their mean, so "
    f"that the median and p95 are right to {RESOLUTION * 100:.2g} %; mean, shortest and longest "
    "are exact"
)


def source_of(reader: SessionReader, *, exact: bool = False, aside: Aside | None = None) -> Source:
    """How to read a session: from its tiers where it is long, unless it is to be ``exact``.

    ``aside``: reads half of many channels.
    """
    every = EverySample(reader, exact=exact)
    return every if exact or not _long(reader) else FromTiers(reader, every, aside)


def _long(reader: SessionReader) -> bool:
    last = reader.last_tick()
    return (last is not None and last[0] >= MOST_TICKS) or reader.last_step() >= MOST_LINES


@dataclass(frozen=True)
class _Told:
    """What was read of all channels over one window."""

    window: Window
    read: LongWindow
    places: dict[int, int]
    """Of each channel, by its id."""


class FromTiers:
    """A long session: the lines of steps by ten seconds, and samples by ten seconds."""

    def __init__(
        self, reader: SessionReader, every: EverySample, aside: Aside | None = None
    ) -> None:
        self._reader, self._every, self._aside = reader, every, aside
        self._steps: Sequence[StepLine] | None = None
        self._told: _Told | None = None
        self._notes: dict[str, None] = {}

    def steps(self) -> Sequence[StepLine]:
        if self._steps is None:
            self._steps = self._lines() if self._reader.last_step() >= MOST_LINES else None
            if self._steps is None:
                self._steps = self._every.steps()
        return self._steps

    def _lines(self) -> list[StepLine]:
        """The tier's rows, and every line that none of them stands for."""
        found: list[StepLine] = []
        after = -1
        rows = [row for row in self._reader.step_tier() if row.times is not None]
        timed = [row.count for row in rows if not row.warmup]
        for bucket in rows if _PARTS * max(timed, default=0) <= sum(timed) else ():
            first = bucket.n - bucket.lines
            if first > max(after, 0):
                found += self._reader.steps_folded(after, first)
            found.append(bucket)
            after = bucket.n
            if bucket.weights is not None:
                self._notes[_STEPS] = None
        return found + self._reader.steps_folded(after, self._reader.last_step())

    def tick_times(self, span: tuple[int, int] | None) -> Sequence[int]:
        last = self._reader.last_tick()
        if last is None:
            return ()
        times = []
        if span is not None:
            rows = self._reader.ticks((), self._reader.row_at("tick", span[0] - 1), 2)
            times = [t for _, t in rows if t < last[1]]
        return [*times, last[1]]

    def edges(self, start: int, end: int) -> list[int]:
        if not self._many(start, end):
            return self._every.edges(start, end)
        self._notes[f"long: rates of steps are over {TIER_SECONDS} s each; their mean is exact"] = (
            None
        )
        return list(range((start // BUCKET_NS + 1) * BUCKET_NS, end, BUCKET_NS))

    def columns(self, channels: Sequence[ChannelRow], window: Window) -> dict[int, Column]:
        told = self._of(window)
        if told is None:
            return self._every.columns(channels, window)
        return {channel.id: _column(told, channel) for channel in channels}

    def samples(
        self, metrics: Collection[str], devices: Collection[str], window: Window
    ) -> tuple[Samples, ...]:
        told = self._of(window)
        if told is None:
            return self._every.samples(metrics, devices, window)
        channels = of_these(self._reader, metrics, devices)
        return tuple(Samples(channel, _pairs(told, channel)) for channel in channels)

    def notes(self) -> tuple[str, ...]:
        if not self._notes:
            return ()
        return (*self._notes, "`--exact` of show and compare reads every sample and every step")

    def _many(self, start: int, end: int) -> bool:
        first, last = within(self._reader, start, end)
        return last - first > MOST_TICKS and end // BUCKET_NS - start // BUCKET_NS > 1

    def _of(self, window: Window) -> _Told | None:
        """What the tier says of all channels; ``None``: the window is short enough without it."""
        if self._told is None or self._told.window != window:
            if not self._many(window.start, window.end):
                return None
            self._told = self._read(window)
        return self._told

    def _read(self, window: Window) -> _Told:
        ids = [channel.id for channel in self._reader.channels()]
        if self._aside is None or len(ids) < _SEVERAL:
            found = read_window(self._reader, ids, window)
        else:
            found = read_halved(self._reader, ids, window, self._aside)
        counted = max((each.sum() for each in found.counts), default=0)
        counted += sum(
            np.count_nonzero((t >= window.start) & (t <= window.end)) for t, _ in found.ends
        )
        self._notes[_note(int(counted), len(found.drawn[0]))] = None
        return _Told(window, found, {each: place for place, each in enumerate(ids)})


def _note(samples: int, drawn: int) -> str:
    half, high = (
        100 * _CONFIDENT * math.sqrt(share * (1 - share) / max(1, drawn)) for share in (0.5, 0.95)
    )
    return (
        f"long: means and highest values of gauges are of all {samples:,} samples; p50 and p95, "
        f"and means of counters, of {drawn:,} drawn evenly, within {half:.2g} and {high:.2g} "
        "percentage points of rank (95 %)"
    )


def _column(told: _Told, channel: ChannelRow) -> Column:
    place, window = told.places[channel.id], told.window
    (early, before), (late, behind) = ((t, values[place]) for t, values in told.read.ends)
    t, drawn = told.read.drawn[0], told.read.drawn[1][place]
    if channel.kind == Kind.COUNTER.value:
        times = np.concatenate([early, t, late])
        values = np.concatenate([before, drawn, behind])
        _, order = np.unique(times, return_index=True)
        return column_of(channel, times[order], values[order], window)
    counts, means = told.read.counts[place], told.read.means[place]
    outer = np.concatenate(
        [
            values[(times >= window.start) & (times <= window.end)]
            for times, values in ((early, before), (late, behind))
        ]
    )
    outer = outer[~np.isnan(outer)]
    highest = [told.read.highest[place], *outer.tolist()]
    sums = Sums(
        count=int(counts.sum()) + outer.size,
        total=float((counts * means).sum() + outer.sum()),
        max=max((each for each in highest if not math.isnan(each)), default=math.nan),
    )
    return Column(drawn, integral(_gauge(told, place), window).coverage, sums)


def _pairs(told: _Told, channel: ChannelRow) -> Pairs:
    place = told.places[channel.id]
    if channel.kind != Kind.COUNTER.value:
        return _gauge(told, place)
    times = np.concatenate([told.read.ends[0][0], told.read.drawn[0], told.read.ends[1][0]])
    values = np.concatenate(
        [told.read.ends[0][1][place], told.read.drawn[1][place], told.read.ends[1][1][place]]
    )
    _, order = np.unique(times, return_index=True)
    return known(times[order], values[order])


def _gauge(told: _Told, place: int) -> Means:
    """A mean for each bucket, at its last sample, and one for each end of the window.

    It covers the usual distance between samples for each of its own, and once more, as a single
    sample that is missing is no gap.
    """
    counts, means = told.read.counts[place], told.read.means[place]
    full = counts > 0
    gap = BUCKET_NS / middle(counts[full]) if full.any() else 0.0
    begin, behind = (each * BUCKET_NS for each in told.read.whole)
    ends = (told.read.numbers[full] + 1) * BUCKET_NS - int(gap)
    outer, sizes = [], []
    for (t, values), low, high in (
        ((told.read.ends[0][0], told.read.ends[0][1][place]), told.window.start, begin),
        ((told.read.ends[1][0], told.read.ends[1][1][place]), behind, told.window.end),
    ):
        inside = values[(t >= low) & (t <= high) & ~np.isnan(values)]
        outer.append(float(inside.mean()) if inside.size else math.nan)
        sizes.append(inside.size)
    first = means[full][0] if full.any() else outer[0]  # from which on the others cover
    before = max(told.window.start, begin - int(gap))
    t = np.concatenate([[told.window.start, before], ends, [told.window.end]])
    values = np.concatenate([[first, outer[0]], means[full], outer[1:]])
    reach = gap * (1 + np.concatenate([[0, sizes[0]], counts[full], sizes[1:]]))
    whole = np.zeros(t.size, dtype=bool)
    whole[2:-1] = True
    _, order = np.unique(t, return_index=True)
    order = order[~np.isnan(values[order])]
    return Means(t[order], values[order], reach[order], whole[order])
