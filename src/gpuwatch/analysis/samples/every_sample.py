"""All samples of a session: by channel, over a window."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from typing import Protocol

import numpy as np

from gpuwatch.analysis.samples.channels import Integral, Pairs, Samples, integral
from gpuwatch.analysis.samples.rates import StepLine
from gpuwatch.analysis.samples.window import Window
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Kind
from gpuwatch.session.reading.limits import EXACT_TICKS, TICKS
from gpuwatch.session.reading.reader import CHUNK, SessionReader
from gpuwatch.session.rows import ChannelRow

_NEAR_NS = 10_000_000_000
"""Before and behind a window every channel has a value within this time, also those that are read
less often than every tick."""


@dataclass(frozen=True)
class Sums:
    """Sums over all known samples of a gauge in a window."""

    count: int
    max: float


@dataclass(frozen=True)
class Column:
    """A channel's samples in a window; for a counter also its values at the two ends.

    The end values are interpolated linearly, so that a counter's increase is that of the window
    and not of the samples that happen to lie in it.
    """

    values: np.ndarray
    """Shape (n,), in order, NaN where unknown: every sample, or with ``sums`` an even draw."""
    integral: Integral | None
    """Over the window, with the sample that covers its end; ``None`` for a counter."""
    sums: Sums | None = None


class Source(Protocol):
    """How a session's steps and samples are read."""

    def steps(self) -> Sequence[StepLine]:
        """All step lines, in order."""

    def tick_times(self, span: tuple[int, int] | None) -> Sequence[int]:
        """Times of ticks in nanoseconds: at least two of those within ``span``, if there are two,
        and the last tick."""

    def columns(self, channels: Sequence[ChannelRow], window: Window) -> dict[int, Column]:
        """The samples of these channels in ``window``, by channel id."""

    def edges(self, start: int, end: int) -> list[int]:
        """Times between ``start`` and ``end`` in nanoseconds that divide a series of rates."""

    def samples(
        self, metrics: Collection[str], devices: Collection[str], window: Window
    ) -> tuple[Samples, ...]:
        """The known samples of every channel of these metrics on these devices."""

    def notes(self) -> tuple[str, ...]:
        """How the figures were read, as far as it affects their accuracy."""


class EverySample:
    """Source of every step line and every sample."""

    def __init__(self, reader: SessionReader, *, exact: bool = False) -> None:
        """``exact``: read all of a long session too."""
        self._reader, self._exact = reader, exact
        self._ticks: dict[Window, tuple[int, int]] = {}
        """By window: channels are read one after another from the same ticks."""

    def steps(self) -> Sequence[StepLine]:
        return self._reader.some_steps(exact=self._exact)

    def tick_times(self, span: tuple[int, int] | None) -> Sequence[int]:
        return self._times(-1, None)

    def columns(self, channels: Sequence[ChannelRow], window: Window) -> dict[int, Column]:
        t, values = self._around(channels, window)
        return {
            channel.id: column_of(channel, t, of_channel, window)
            for channel, of_channel in zip(channels, values, strict=True)
        }

    def edges(self, start: int, end: int) -> list[int]:
        return self._times(*within(self._reader, start + 1, end - 1))

    def samples(
        self, metrics: Collection[str], devices: Collection[str], window: Window
    ) -> tuple[Samples, ...]:
        channels = select_channels(self._reader, metrics, devices)
        t, values = self._between([channel.id for channel in channels], -1, None)
        return tuple(
            Samples(channel, known(t, each)) for channel, each in zip(channels, values, strict=True)
        )

    def notes(self) -> tuple[str, ...]:
        return ()

    def _around(
        self, channels: Sequence[ChannelRow], window: Window
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """Times and values of the ticks in the window, and of some more on each side."""
        if window not in self._ticks:
            near = within(self._reader, window.start - _NEAR_NS, window.end + _NEAR_NS)
            self._ticks[window] = near
        return self._between([channel.id for channel in channels], *self._ticks[window])

    def _times(self, after: int, upto: int | None) -> list[int]:
        return [int(t) for t in self._between((), after, upto)[0]]

    def _between(
        self, channels: Sequence[int], after: int, upto: int | None
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        most = EXACT_TICKS if self._exact else TICKS
        return ticks_between(self._reader, channels, after, upto, most)


def within(reader: SessionReader, start: int, end: int) -> tuple[int, int]:
    """Numbers of the last tick before ``start`` and of the last one up to ``end``."""
    return reader.row_at("tick", start - 1), reader.row_at("tick", end)


def around(reader: SessionReader, first: int, last: int) -> tuple[int, int]:
    """Bounds ``after < n <= upto`` that include one more tick on each side."""
    after = reader.ticks((), last, 1)
    return first - 1, after[0][0] if after else last


def ticks_between(
    reader: SessionReader,
    channels: Sequence[int],
    after: int,
    upto: int | None,
    most: int = TICKS,
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Times (n,) int64 in nanoseconds of the ticks with ``after < n <= upto``, and the values (n,)
    of each channel, NaN where unknown. Reading stops in the chunk that passes ``most`` ticks."""
    last = reader.last_tick()
    end = -1 if last is None else last[0] if upto is None else min(last[0], upto)
    t, values = array("q"), [array("d") for _ in channels]
    while (read := reader.tick_columns(channels, after, end, CHUNK)).n:
        if len(t) >= most:
            reader.leave_out(f"only {len(t):,} samples in a row are read")
            break
        after = read.n[-1]
        t.extend(read.t)
        for column, part in zip(values, read.values, strict=True):
            column.extend(part)
    return np.array(t, dtype=np.int64), [np.array(column) for column in values]


def select_channels(
    reader: SessionReader, metrics: Collection[str], devices: Collection[str]
) -> list[ChannelRow]:
    """The channels of these metrics on these devices."""
    return [c for c in reader.channels() if c.metric in metrics and c.device in devices]


def known(t: np.ndarray, values: np.ndarray) -> Pairs:
    """The ``values`` (n,) that are not NaN, with their times ``t`` (n,)."""
    is_known = ~np.isnan(values)
    return Pairs(t[is_known], values[is_known])


def column_of(channel: ChannelRow, t: np.ndarray, values: np.ndarray, window: Window) -> Column:
    """The column of ``values`` (n,) taken at ``t`` (n,), which reach beyond the window."""
    inside = (t >= window.start) & (t <= window.end)
    if channel.kind != Kind.COUNTER.value:
        return Column(values[inside], integral(known(t, values), window))
    readings = known(t, values)
    if readings:
        # Some counters are read with every other sample, or less often.
        values = np.interp(t, readings.t, readings.values, left=np.nan, right=np.nan)
    ends = [
        _between(t, values, int(np.searchsorted(t, window.start, "left")), window.start),
        _between(t, values, int(np.searchsorted(t, window.end, "right")), window.end),
    ]
    return Column(np.concatenate([ends[:1], values[inside], ends[1:]]), None)


def _between(t: np.ndarray, values: np.ndarray, index: int, moment: int) -> float:
    """The value at ``moment``, before sample ``behind``; NaN without a sample on either side."""
    if index == 0 or index == t.size:
        return np.nan
    low, high = float(values[index - 1]), float(values[index])
    since, span = moment - int(t[index - 1]), int(t[index] - t[index - 1])
    return low + (high - low) * since / span if span > 0 else np.nan
