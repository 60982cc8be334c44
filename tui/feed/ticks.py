"""The samples of a session: the newest ticks one by one, everything else in ten-second buckets.

Both are read when something shows them, so that a session of a million ticks opens at once.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from gpuwatch.core.units import NS
from gpuwatch.session.reading.bulk import NAN
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.schema import TIER_SECONDS
from gpuwatch.tui.feed.series import MOST_RECENT, RECENT_NS, Series, bucket_means, means, upto
from gpuwatch.tui.widgets.graph import Window

_BUCKET_NS = TIER_SECONDS * NS
_TAIL = 64
"""Ticks that the number of now may stand in."""
_TAIL_NS = 21 * NS
"""The bucket under way, and the one before it that may not be in the tier yet."""
_CHUNK = 5000
_FEW = 4
"""New ticks that are read row by row."""

Filled = tuple["array[float]", "array[float]"]
"""Means and their counts, by bucket."""


class Buckets:
    """The tier of a session, by channel, as far as it was asked for."""

    def __init__(self, reader: SessionReader) -> None:
        self._reader = reader
        self.numbers: array[int] = array("q")
        self._filled: dict[int, Filled] = {}

    def load(self, channels: Iterable[int]) -> None:
        """Have these channels at hand: one pass over the tier for those that are not."""
        missing = [channel for channel in channels if channel not in self._filled]
        if not missing:
            return
        self.update()
        found = self._reader.tier_columns(missing)
        size = len(self.numbers) if self._filled else len(found.n)
        if not self._filled:
            self.numbers = array("q", found.n)
        for channel, *columns in zip(missing, found.means, found.counts, strict=True):
            self._filled[channel] = columns[0][:size], columns[1][:size]

    def of(self, channel: int) -> Filled:
        self.load((channel,))
        return self._filled[channel]

    def update(self) -> None:
        """Take the buckets that were finished since."""
        ids = list(self._filled)
        if not ids:
            return
        found = self._reader.tier_columns(ids, self.numbers[-1] if self.numbers else -1)
        self.numbers.extend(found.n)
        for channel, *columns in zip(ids, found.means, found.counts, strict=True):
            for kept, more in zip(self._filled[channel], columns, strict=True):
                kept.extend(more)


class Ticks:
    """What was sampled of a session. Lives in the feed's thread."""

    def __init__(self, reader: SessionReader, interval: float, buckets: Buckets) -> None:
        """``buckets``: of the same file; those that ``reader`` would not give are left out."""
        self._reader = reader
        self._interval = interval
        self.buckets = buckets
        self.times: array[int] = array("q")
        self._numbers: array[int] = array("q")
        self._values: dict[int, array[float]] = {}
        """By channel; they end with the newest tick and may begin later than ``times``."""
        self._asked: set[int] = set()
        self._tail = max(_TAIL, min(_CHUNK, int(_TAIL_NS / NS / interval) + 1))
        self._last = -1

    @property
    def newest(self) -> int:
        """Session time of the newest tick, 0 when there is none."""
        return self.times[-1] if self.times else 0

    def update(self, channels: Sequence[int]) -> None:
        """Read the ticks that came since the last call."""
        last = self._reader.last_tick()
        if last is not None and last[0] > self._last + _CHUNK:
            # So much is read only where it is shown.
            self._forget(last[0] - self._tail)
        if last is not None and last[0] > self._last:
            take = self._take_few if last[0] - self._last <= _FEW else self._take
            take(channels, last[0])
        self._trim()
        done = self.buckets.numbers[-1] if self.buckets.numbers else -1
        if self.newest // _BUCKET_NS > done + 1:
            self.buckets.update()

    def _take(self, channels: Sequence[int], upto: int) -> None:
        found = self._reader.tick_columns(channels, self._last, upto)
        self._last = upto
        self._numbers.extend(found.n)
        self.times.extend(found.t)
        for channel, values in zip(channels, found.values, strict=True):
            self._kept(channel).extend(values)

    def _take_few(self, channels: Sequence[int], upto: int) -> None:
        """The same of a few ticks: to read one by column takes ten times as long."""
        kept = [self._kept(channel) for channel in channels]
        for n, t, *row in self._reader.ticks(channels, self._last, _FEW):
            if n > upto:
                break
            self._numbers.append(n)
            self.times.append(t)
            for values, value in zip(kept, row, strict=True):
                values.append(NAN if value is None else value)
        self._last = upto

    def _kept(self, channel: int) -> array[float]:
        values = self._values.get(channel)
        if values is None:
            values = self._values[channel] = array("d")
        return values

    def _forget(self, last: int) -> None:
        """Begin anew behind the tick ``last``."""
        self._last = last
        self._values.clear()
        del self.times[:], self._numbers[:]

    def _trim(self) -> None:
        """Forget ticks that nothing shows one by one."""
        oldest = bisect_left(self.times, self.newest - RECENT_NS)
        oldest = max(oldest, len(self.times) - MOST_RECENT)
        if oldest > len(self.times) // 4:
            self._keep(len(self.times) - oldest)
        for channel, values in self._values.items():
            if channel not in self._asked and len(values) > 4 * self._tail:
                del values[: -self._tail]

    def _keep(self, size: int) -> None:
        del self.times[:-size], self._numbers[:-size]
        for values in self._values.values():
            if len(values) > size:
                del values[:-size]

    def latest(self, channel: int) -> tuple[int, float] | None:
        """Time and value of the newest known sample, among the last few ticks."""
        return next(self._known(channel), None)

    def rate(self, channel: int, seconds: float = 2.0) -> tuple[int, float] | None:
        """A counter's increase per second over about the last ``seconds``, and when it ended."""
        known = self._known(channel)
        newest = next(known, None)
        if newest is None:
            return None
        t, value = first = newest
        for first in known:
            if t - first[0] >= seconds * NS:
                break
        return (t, (value - first[1]) / ((t - first[0]) / NS)) if t > first[0] else None

    def _known(self, channel: int) -> Iterator[tuple[int, float]]:
        values = self._values.get(channel, ())
        for back in range(1, min(_TAIL, len(values)) + 1):
            value = values[-back]
            if value == value:
                yield self.times[-back], value

    def covers(self, start: int) -> bool:
        """Whether ticks are, or were read to be, kept one by one from ``start`` on."""
        latest = round(max(start + self._interval * NS, 2 * self._interval * NS))
        reach = max(start, self.newest - RECENT_NS)
        if self.times and self.times[0] > reach and self.newest - RECENT_NS <= latest:
            self._read_back(reach)
        return bool(self.times) and self.times[0] <= latest

    def recent(self, channel: int, start: int) -> tuple[array[int], array[float]]:
        """Ticks of a channel from the one before ``start`` on, as far back as they are kept."""
        self._asked.add(channel)
        low = max(0, bisect_right(self.times, start) - 1)
        values = self._values.setdefault(channel, array("d"))
        if len(self.times) - len(values) > low:
            values = self._values[channel] = self._filled(channel, low) + values
        size = len(self.times) - low
        return (self.times[low:], values[-size:]) if size else (self.times[:0], values[:0])

    def _read_back(self, t: int) -> None:
        """Have the times from the tick before ``t`` on."""
        first = self._numbers[0]
        after = max(self._reader.row_at("tick", t) - 1, self._last - MOST_RECENT, -1)
        if after < first - 1:
            found = self._reader.tick_columns((), after, first - 1)
            self._numbers = array("q", found.n) + self._numbers
            self.times = array("q", found.t) + self.times

    def _filled(self, channel: int, low: int) -> array[float]:
        """The values from the kept tick ``low`` up to those that are there."""
        high = len(self.times) - len(self._values[channel])
        after, upto = self._numbers[low] - 1, self._numbers[high - 1]
        found = self._reader.tick_columns((channel,), after, upto)
        if len(found.n) != high - low:
            return array("d", [NAN]) * (high - low)
        return found.values[0]


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
            self._seen = any(value == value for value in values) or any(self._coarse()[2])
        return self._seen

    def columns(self, view: Window, interval: float) -> list[float | None]:
        if self._ticks.covers(view.start):
            times, values = self._ticks.recent(self._channel, view.start)
            return means(times, values, view, interval)
        return upto(bucket_means(*self._coarse(), view), view, self._ticks.newest)

    def _coarse(self) -> tuple[array[int], array[float], array[float]]:
        """Numbers, means and counts of all buckets, the one under way from its ticks."""
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

    def columns(self, view: Window, interval: float) -> list[float | None]:
        if self._ticks.covers(view.start):
            times, values = self._ticks.recent(self._channel, view.start)
            longest = view.column_ns + 5 * interval * NS
        else:
            numbers, values, weight = self._coarse()
            times = array("q", (number * _BUCKET_NS + _BUCKET_NS // 2 for number in numbers))
            values = array("d", (v if w else NAN for v, w in zip(values, weight, strict=True)))
            longest = view.column_ns + 3 * _BUCKET_NS
        return [
            _increase(times, values, start, end, longest) for start, end in pairwise(view.edges())
        ]


def _increase(
    times: array[int], values: array[float], start: int, end: int, longest: float
) -> float | None:
    """Per second, between the samples around ``start`` and ``end``."""
    low = max(0, bisect_right(times, start) - 1)
    high = min(bisect_left(times, end), len(times) - 1)
    if high <= low or times[low] >= end or times[high] <= start:
        return None
    passed, more = times[high] - times[low], values[high] - values[low]
    return more / (passed / NS) if 0 < passed <= longest and more >= 0 else None
