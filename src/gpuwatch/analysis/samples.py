"""The samples of single channels, and what they add up to over a window."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from gpuwatch.analysis.window import Window
from gpuwatch.session.reader import SessionReader
from gpuwatch.session.rows import ChannelRow

FULL = 0.9
"""Share of a window that samples must cover for their integral to stand for all of it."""


@dataclass(frozen=True)
class Samples:
    """One channel's known values, in order: when (nanoseconds since the session's start), what."""

    channel: ChannelRow
    values: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Integral:
    total: float
    """Value times seconds, over the part of the window that is covered."""
    coverage: float
    """Share of the window that the samples cover, 0 to 1."""


def samples_of(
    reader: SessionReader, metrics: Collection[str], devices: Collection[str]
) -> tuple[Samples, ...]:
    """The samples of these metrics on these devices, of every channel that is there."""
    channels = [c for c in reader.channels() if c.metric in metrics and c.device in devices]
    columns: list[list[tuple[int, float]]] = [[] for _ in channels]
    for _, t, *values in reader.all_ticks([channel.id for channel in channels]):
        for column, value in zip(columns, values, strict=True):
            if value is not None:
                column.append((t, value))
    pairs = zip(channels, columns, strict=True)
    return tuple(Samples(channel, tuple(column)) for channel, column in pairs)


def integral(values: Sequence[tuple[int, float]], window: Window) -> Integral:
    """Integrate a rate over ``window``.

    A value is the mean since the one before it, as GPM, DCGM and RAPL give it. It covers at most
    twice the median distance between values: what lies further back is a gap, not covered.
    """
    if window.end <= window.start or len(values) < 2:
        return Integral(0.0, 0.0)
    reach = 2 * median(later[0] - earlier[0] for earlier, later in pairwise(values))
    total, covered = 0.0, 0.0
    for (before, _), (t, value) in pairwise(values):
        start = max(window.start, before, t - reach)
        end = min(window.end, t)
        if end > start:
            total += value * (end - start) / 1e9
            covered += end - start
    return Integral(total, covered / (window.end - window.start))


def added(values: Sequence[tuple[int, float]], window: Window) -> Integral:
    """What a counter added in ``window``, interpolated linearly at both ends.

    The driver renews a counter more seldom than it is read: between two renewals the samples repeat
    the old value, and only the first sample of each value tells when it was renewed. A counter that
    goes backwards was reset, and covers nothing.
    """
    renewed = [values[0]] if values else []
    for t, value in values:
        if value != renewed[-1][1]:
            renewed.append((t, value))
    if values and values[-1][0] > renewed[-1][0] and len(renewed) == 1:
        renewed.append(values[-1])  # a counter that stood still all the time
    if window.end <= window.start or any(b[1] < a[1] for a, b in pairwise(renewed)):
        return Integral(0.0, 0.0)
    total, covered = 0.0, 0.0
    for (before, low), (t, high) in pairwise(renewed):
        start, end = max(window.start, before), min(window.end, t)
        if end > start:
            total += (high - low) * (end - start) / (t - before)
            covered += end - start
    return Integral(total, covered / (window.end - window.start))
