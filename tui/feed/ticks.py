"""The samples of a session: the newest one by one, older ones as means of ten seconds.

Both are read only when needed, so that a session of a million samples opens at once.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from math import nan

from gpuwatch.analysis.samples.channels import mean_between
from gpuwatch.core.units import NS
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.schema import BUCKET_SECONDS
from gpuwatch.tui.feed.series import (
    APART,
    MOST_RECENT,
    RECENT_NS,
    Series,
    bucket_means,
    clip,
    column_means,
)
from gpuwatch.tui.widgets.graph import Window

_BUCKET_NS = BUCKET_SECONDS * NS
_MIN_TAIL = 64
"""Number of newest samples that are searched for a current value."""
_TAIL_NS = 21 * NS
"""How far back samples are read when a long session is opened: two buckets."""
_CHUNK_NS = 600 * NS
"""How much is read at once; of more, older samples are read when a history needs them."""

Filled = tuple["array[float]", "array[float]"]
"""Means and sample counts by bucket."""


class Buckets:
    """Means of ten seconds of a session, made of its samples channel by channel when needed."""

    def __init__(self, reader: SessionReader) -> None:
        self._reader = reader
        self.numbers: array[int] = array("q")
        """Finished buckets: their time divided by their length."""
        self._columns: dict[int, Filled] = {}
        self._upto = -1
        """The end of the last finished bucket, in nanoseconds."""

    def load(self, channels: Iterable[int]) -> None:
        """Read the buckets of these channels in one pass, except those read before."""
        self.update()
        missing = [channel for channel in channels if channel not in self._columns]
        if missing:
            self._columns.update({channel: (array("d"), array("d")) for channel in missing})
            self.numbers = self._read(missing, -1, self._upto)

    def of(self, channel: int) -> Filled:
        """Means and sample counts of a channel."""
        if channel not in self._columns:
            self.load((channel,))
        return self._columns[channel]

    def update(self) -> None:
        """Read new buckets of the loaded channels."""
        newest = self._reader.last_sample() or 0
        before, self._upto = self._upto, max(self._upto, newest // _BUCKET_NS * _BUCKET_NS - 1)
        self.numbers.extend(self._read(list(self._columns), before, self._upto))

    def _read(self, channels: Sequence[int], after: int, upto: int) -> array[int]:
        """Append the buckets between two times to those of ``channels``; returns their numbers."""
        numbers = array("q")
        for piece in self._reader.sample_pieces(channels, after, upto) if after < upto else ():
            first = 0
            while first < len(piece.t):
                number = piece.t[first] // _BUCKET_NS
                end = bisect_left(piece.t, (number + 1) * _BUCKET_NS, first)
                numbers.append(number)
                for channel, values in zip(channels, piece.values, strict=True):
                    mean, count = _mean(values[first:end])
                    self._columns[channel][0].append(mean)
                    self._columns[channel][1].append(count)
                first = end
        return numbers


def _mean(values: array[float]) -> tuple[float, float]:
    """Mean of the values that are known, and their number; 0 without any."""
    total = sum(values)
    if total == total:
        return total / len(values), len(values)
    known = [value for value in values if value == value]
    return (sum(known) / len(known), len(known)) if known else (0.0, 0.0)


class Ticks:
    """The samples of a session; used in the feed's thread."""

    def __init__(self, reader: SessionReader, interval: float, buckets: Buckets) -> None:
        """``buckets``: of the same session; those after the newest tick are ignored."""
        self._reader = reader
        self._interval = interval
        self.buckets = buckets
        self.times: array[int] = array("q")
        self._values: dict[int, array[float]] = {}
        """By channel; all end with the newest tick, some begin later than ``times``."""
        self._used: set[int] = set()
        self._tail = max(_MIN_TAIL, int(_TAIL_NS / NS / interval) + 1)
        self._earlier = False
        """Whether there are samples before ``times``."""

    @property
    def newest(self) -> int:
        """Session time of the newest tick; 0: there is none."""
        return self.times[-1] if self.times else 0

    def update(self, channels: Sequence[int]) -> None:
        """Read new samples."""
        last = self._reader.last_sample()
        after = self.newest if self.times else -1
        if last is not None and last > after + _CHUNK_NS:
            self._values.clear()
            del self.times[:]
            after = last - max(_TAIL_NS, round(_MIN_TAIL * self._interval * NS))
            self._earlier = True
        if last is not None and last > after:
            read = self._reader.samples(channels, after)
            self.times.extend(read.t)
            for channel, values in zip(channels, read.values, strict=True):
                self._channel_values(channel).extend(values)
        self._trim()
        done = self.buckets.numbers[-1] if self.buckets.numbers else -1
        if self.newest // _BUCKET_NS > done + 1:
            self.buckets.update()

    def _channel_values(self, channel: int) -> array[float]:
        values = self._values.get(channel)
        if values is None:
            values = self._values[channel] = array("d")
        return values

    def _trim(self) -> None:
        """Drop ticks that no history needs."""
        oldest = bisect_left(self.times, self.newest - RECENT_NS)
        oldest = max(oldest, len(self.times) - MOST_RECENT)
        if oldest > len(self.times) // 4:
            self._keep_last(len(self.times) - oldest)
        for channel, values in self._values.items():
            if channel not in self._used and len(values) > 4 * self._tail:
                del values[: -self._tail]

    def _keep_last(self, size: int) -> None:
        del self.times[:-size]
        self._earlier = True
        for values in self._values.values():
            if len(values) > size:
                del values[:-size]

    def latest(self, channel: int) -> tuple[int, float] | None:
        """Time and value of the newest known sample among the last ticks; ``None``: unknown."""
        return next(self._known_samples(channel), None)

    def rate(self, channel: int, seconds: float = 2.0) -> tuple[int, float] | None:
        """Time of a counter's newest sample, and its increase per second over about ``seconds``."""
        known = self._known_samples(channel)
        newest = next(known, None)
        if newest is None:
            return None
        t, value = first = newest
        for first in known:
            if t - first[0] >= seconds * NS:
                break
        return (t, (value - first[1]) / ((t - first[0]) / NS)) if t > first[0] else None

    def _known_samples(self, channel: int) -> Iterator[tuple[int, float]]:
        values = self._values.get(channel, ())
        for back in range(1, min(_MIN_TAIL, len(values)) + 1):
            value = values[-back]
            if value == value:
                yield self.times[-back], value

    def covers(self, start: int) -> bool:
        """Whether single ticks exist from ``start`` on; reads missing ones."""
        apart = APART * self._interval * NS
        latest = round(max(start + apart, 2 * apart))
        reach = max(start, self.newest - RECENT_NS)
        # In a session's first minutes all there is has been read.
        earlier = self._earlier and bool(self.times) and self.times[0] > reach
        if earlier and self.newest - RECENT_NS <= latest:
            self._read_back(reach)
        return bool(self.times) and self.times[0] <= latest

    def recent(self, channel: int, start: int) -> tuple[array[int], array[float]]:
        """Times and values of a channel from the tick before ``start`` on, as far as kept."""
        self._used.add(channel)
        low = max(0, bisect_right(self.times, start) - 1)
        values = self._values.setdefault(channel, array("d"))
        if len(self.times) - len(values) > low:
            values = self._values[channel] = self._missing_values(channel, low) + values
        size = len(self.times) - low
        return (self.times[low:], values[-size:]) if size else (self.times[:0], values[:0])

    def _read_back(self, t: int) -> None:
        """Read the times from the sample before ``t`` on."""
        after = t - round(2 * APART * self._interval * NS)
        self.times = self._reader.samples((), after, self.times[0] - 1).t + self.times

    def _missing_values(self, channel: int, low: int) -> array[float]:
        """The values of a channel from the sample ``low`` up to the first one read before."""
        high = len(self.times) - len(self._values[channel])
        read = self._reader.samples((channel,), self.times[low] - 1, self.times[high - 1])
        return read.values[0] if len(read.t) == high - low else array("d", [nan]) * (high - low)


class TickSeries(Series):
    """The history of one channel."""

    def __init__(self, ticks: Ticks, channel: int) -> None:
        super().__init__()
        self._ticks = ticks
        self._channel = channel
        self._seen = False

    @property
    def seen(self) -> bool:
        if not self._seen:
            _, values = self._ticks.recent(self._channel, self._ticks.newest - _TAIL_NS)
            self._seen = any(value == value for value in values) or any(self._bucket_columns()[2])
        return self._seen

    def mean(self, start: int, end: int, interval: float, least: float = 0.0) -> float | None:
        """As ``gpuwatch show`` does, but of times before the single ticks from buckets."""
        if not self._ticks.covers(start):
            return super().mean(start, end, interval, least)
        found = mean_between(*self._ticks.recent(self._channel, start - _TAIL_NS), start, end)
        return found[0] if found is not None and found[1] >= least else None

    def columns(self, view: Window, interval: float) -> list[float | None]:
        if self._ticks.covers(view.start):
            times, values = self._ticks.recent(self._channel, view.start)
            return column_means(times, values, view, interval)
        return clip(bucket_means(*self._bucket_columns(), view), view, self._ticks.newest)

    def _bucket_columns(self) -> tuple[array[int], array[float], array[float]]:
        """Numbers, means and counts of all buckets; the unfinished ones from their ticks."""
        buckets = self._ticks.buckets
        average, weight = buckets.of(self._channel)
        end = bisect_left(buckets.numbers, self._ticks.newest // _BUCKET_NS)
        numbers, average, weight = buckets.numbers[:end], average[:end], weight[:end]
        start = (numbers[-1] + 1) * _BUCKET_NS if numbers else 0
        self._ticks.covers(max(start, self._ticks.newest - RECENT_NS))
        times, values = self._ticks.recent(self._channel, start)
        first = bisect_left(times, start)
        while first < len(times):
            number = times[first] // _BUCKET_NS
            last = max(first + 1, bisect_left(times, (number + 1) * _BUCKET_NS, first))
            known = [value for value in values[first:last] if value == value]
            if known:
                numbers.append(number)
                average.append(sum(known) / len(known))
                weight.append(len(known))
            first = last
        return numbers, average, weight


class RateSeries(TickSeries):
    """The increase per second of a counter."""

    def mean(self, start: int, end: int, interval: float, least: float = 0.0) -> float | None:
        return Series.mean(self, start, end, interval, least)

    def columns(self, view: Window, interval: float) -> list[float | None]:
        if self._ticks.covers(view.start):
            times, values = self._ticks.recent(self._channel, view.start)
            longest = view.column_ns + 5 * interval * NS
        else:
            numbers, values, weight = self._bucket_columns()
            times = array("q", (number * _BUCKET_NS + _BUCKET_NS // 2 for number in numbers))
            values = array("d", (v if w else nan for v, w in zip(values, weight, strict=True)))
            longest = view.column_ns + 3 * _BUCKET_NS
        return [
            _rate_between(times, values, start, end, longest)
            for start, end in pairwise(view.edges())
        ]


def _rate_between(
    times: array[int], values: array[float], start: int, end: int, longest: float
) -> float | None:
    """Increase per second between the samples around ``start`` and ``end``; ``None``: unknown,
    or the samples are more than ``longest`` nanoseconds apart."""
    low = max(0, bisect_right(times, start) - 1)
    high = min(bisect_left(times, end), len(times) - 1)
    if high <= low or times[low] >= end or times[high] <= start:
        return None
    elapsed, increase = times[high] - times[low], values[high] - values[low]
    return increase / (elapsed / NS) if 0 < elapsed <= longest and increase >= 0 else None
