"""The samples of a session, every one of them: by channel, over a window."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from typing import Protocol

import numpy as np

from gpuwatch.analysis.samples.channels import Pairs, Samples, integral
from gpuwatch.analysis.samples.rates import StepLine
from gpuwatch.analysis.samples.window import Window
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Kind
from gpuwatch.session.reading.limits import EXACT_TICKS, TICKS
from gpuwatch.session.reading.reader import CHUNK, SessionReader
from gpuwatch.session.rows import ChannelRow


@dataclass(frozen=True)
class Sums:
    """Of all samples of a gauge in a window, known ones."""

    count: int
    total: float
    max: float


@dataclass(frozen=True)
class Column:
    """A channel's samples in a window; of a counter also its values at the two ends.

    There they are interpolated linearly between the samples on both sides, so that what a counter
    added is of the window and not of the samples that happen to lie in it.
    """

    values: np.ndarray
    """In order, NaN where unknown: every sample, or with ``sums`` some drawn evenly."""
    coverage: float | None
    """Share of the window that they cover; of a gauge."""
    sums: Sums | None = None


class Source(Protocol):
    """How a session's steps and samples are read."""

    def steps(self) -> Sequence[StepLine]:
        """All of them, in order."""

    def tick_times(self, span: tuple[int, int] | None) -> Sequence[int]:
        """When ticks were taken: two or more of those within ``span`` if there are, and the
        last."""

    def columns(self, channels: Sequence[ChannelRow], window: Window) -> dict[int, Column]:
        """The samples of these channels, by their id."""

    def edges(self, start: int, end: int) -> list[int]:
        """Moments between ``start`` and ``end``: rates are told from one to the next."""

    def samples(
        self, metrics: Collection[str], devices: Collection[str], window: Window
    ) -> tuple[Samples, ...]:
        """The known samples of these metrics on these devices, of every channel that is there."""

    def notes(self) -> tuple[str, ...]:
        """What a reader of the figures must know of how they were read."""


class EverySample:
    """Every line of steps, and every sample."""

    def __init__(self, reader: SessionReader, *, exact: bool = False) -> None:
        """``exact``: of a long session, too."""
        self._reader, self._exact = reader, exact

    def steps(self) -> Sequence[StepLine]:
        return self._reader.some_steps(exact=self._exact)

    def tick_times(self, span: tuple[int, int] | None) -> Sequence[int]:
        return self._times(-1, None)

    def columns(self, channels: Sequence[ChannelRow], window: Window) -> dict[int, Column]:
        t, values = self._around(channels, window)
        found = {}
        for channel, of_channel in zip(channels, values, strict=True):
            found[channel.id] = column_of(channel, t, of_channel, window)
        return found

    def edges(self, start: int, end: int) -> list[int]:
        return self._times(*within(self._reader, start + 1, end - 1))

    def samples(
        self, metrics: Collection[str], devices: Collection[str], window: Window
    ) -> tuple[Samples, ...]:
        channels = of_these(self._reader, metrics, devices)
        t, values = self._between([channel.id for channel in channels], -1, None)
        return tuple(
            Samples(channel, known(t, each)) for channel, each in zip(channels, values, strict=True)
        )

    def notes(self) -> tuple[str, ...]:
        return ()

    def _around(
        self, channels: Sequence[ChannelRow], window: Window
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """The ticks in the window, and the one on each side."""
        first, last = within(self._reader, window.start, window.end)
        ids = [channel.id for channel in channels]
        return self._between(ids, *around(self._reader, first, last))

    def _times(self, after: int, upto: int | None) -> list[int]:
        return [int(t) for t in self._between((), after, upto)[0]]

    def _between(
        self, channels: Sequence[int], after: int, upto: int | None
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        most = EXACT_TICKS if self._exact else TICKS
        return ticks_between(self._reader, channels, after, upto, most)


def within(reader: SessionReader, start: int, end: int) -> tuple[int, int]:
    """The numbers of the last tick before ``start``, and of the last one up to ``end``."""
    return reader.row_at("tick", start - 1), reader.row_at("tick", end)


def around(reader: SessionReader, first: int, last: int) -> tuple[int, int]:
    """Behind which number to read, and up to which, so that a tick on each side is read too."""
    after = reader.ticks((), last, 1)
    return first - 1, after[0][0] if after else last


def ticks_between(
    reader: SessionReader,
    channels: Sequence[int],
    after: int,
    upto: int | None,
    most: int = TICKS,
) -> tuple[np.ndarray, list[np.ndarray]]:
    """When the ticks with ``after < n <= upto`` were taken, and the channels' values; of the first
    ``most`` of them, or some more."""
    last = reader.last_tick()
    end = -1 if last is None else last[0] if upto is None else min(last[0], upto)
    t, values = array("q"), [array("d") for _ in channels]
    while (read := reader.tick_columns(channels, after, end, CHUNK)).n:
        if len(t) >= most:
            reader.leave_out(f"of the samples {len(t):,} in a row are read")
            break
        after = read.n[-1]
        t.extend(read.t)
        for column, part in zip(values, read.values, strict=True):
            column.extend(part)
    return np.array(t, dtype=np.int64), [np.array(column) for column in values]


def of_these(
    reader: SessionReader, metrics: Collection[str], devices: Collection[str]
) -> list[ChannelRow]:
    return [c for c in reader.channels() if c.metric in metrics and c.device in devices]


def known(t: np.ndarray, values: np.ndarray) -> Pairs:
    """Those of ``values`` that are known."""
    there = ~np.isnan(values)
    return Pairs(t[there], values[there])


def column_of(channel: ChannelRow, t: np.ndarray, values: np.ndarray, window: Window) -> Column:
    """The column of samples that were taken at ``t``, in the window and next to it."""
    inside = (t >= window.start) & (t <= window.end)
    if channel.kind != Kind.COUNTER.value:
        return Column(values[inside], integral(known(t, values), window).coverage)
    ends = [
        _between(t, values, int(np.searchsorted(t, window.start, "left")), window.start),
        _between(t, values, int(np.searchsorted(t, window.end, "right")), window.end),
    ]
    return Column(np.concatenate([ends[:1], values[inside], ends[1:]]), None)


def _between(t: np.ndarray, values: np.ndarray, behind: int, moment: int) -> float:
    """The value at ``moment``, before sample ``behind``; NaN where one on a side is missing."""
    if behind == 0 or behind == t.size:
        return np.nan
    low, high = float(values[behind - 1]), float(values[behind])
    since, span = moment - int(t[behind - 1]), int(t[behind] - t[behind - 1])
    return low + (high - low) * since / span if span > 0 else np.nan
