"""The samples of a session: the newest one by one, older ones as means of ten seconds; and the
period of it that is shown, with its axis.

Both are read only when needed, so that a session of a million samples opens at once.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice, pairwise
from math import nan
from operator import mul

from gpuwatch.analysis.samples.channels import mean_between, value_at
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.units import NS, duration
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.schema import BUCKET_SECONDS

_DURATIONS = (
    *(1, 2, 5, 10, 20, 30),
    *(60, 120, 300, 600, 1200, 1800),
    *(3600, 7200, 18000, 36000, 43200),
    *(86400, 2 * 86400, 5 * 86400, 10 * 86400, 20 * 86400, 50 * 86400, 100 * 86400),
)
"""Round lengths of a time axis in seconds."""


@dataclass(frozen=True)
class Window:
    """A period of session time in nanoseconds, divided into equal columns."""

    start: int
    end: int
    columns: int

    @property
    def column_ns(self) -> float:
        return max(1.0, (self.end - self.start) / max(1, self.columns))

    def edges(self) -> tuple[int, ...]:
        """The ``columns + 1`` borders in nanoseconds."""
        return _edges(self)


@lru_cache(maxsize=16)
def _edges(view: Window) -> tuple[int, ...]:
    """Cached, because all histories of a snapshot share the window."""
    step = view.column_ns
    return tuple(view.start + round(i * step) for i in range(view.columns + 1))


def window(t: int, seconds: int | None, columns: int, ended: bool = False) -> Window:
    """The window at session time ``t`` in nanoseconds; ``seconds``: its length at most, ``None``:
    all.

    A live window moves in steps of a tenth of its length, so that usually only the newest column
    of a history changes.
    """
    if seconds is None or t <= seconds * NS:
        if ended:
            return Window(0, max(t, NS), columns)
        length = readable_duration(t / NS)
        return Window(0, min(length, seconds or length) * NS, columns)
    if ended:
        return Window(t - seconds * NS, t, columns)
    jump = seconds * NS // 10
    end = -(-t // jump) * jump
    return Window(end - seconds * NS, end, columns)


def readable_duration(seconds: float) -> int:
    """The next round length of a time axis in seconds."""
    return next((length for length in _DURATIONS[3:] if seconds <= length), int(seconds) + 1)


def axis(view: Window, gap: int = 11) -> tuple[str, str]:
    """The time axis: a line with ticks, and their labels, lengths of session time."""
    step = next((s for s in _DURATIONS if s * NS / view.column_ns >= gap), _DURATIONS[-1])
    first = -(-view.start // (step * NS)) * step
    moments = range(first, view.end // NS + 1, step)
    marks = ((int((at * NS - view.start) / view.column_ns), duration(at)) for at in moments)
    return ticked(view.columns, marks)


def ticked(columns: int, marks: Iterable[tuple[int, str]]) -> tuple[str, str]:
    """A line with ticks at some columns, and those of their labels that have room below it."""
    line, labels, free = ["─"] * columns, [" "] * columns, 0
    for column, label in marks:
        if column < columns:
            line[column] = "┬"
            if column >= free and column + len(label) <= columns:
                labels[column : column + len(label)] = label
                free = column + len(label) + 1
    return "".join(line), "".join(labels)


RECENT_NS = 360 * NS
"""How far back single samples are kept: the longest zoom, and the step in which it moves."""
BUCKET_NS = BUCKET_SECONDS * NS
_APART = 1.25
"""Most intervals between two samples of a recorder that is in time."""
_LATEST = 64
"""Number of newest samples that are searched for a current value; they are always kept."""
_NEAR_NS = 21 * NS
"""How far before a period its first sample may be: two buckets."""
_PARTS, _MOST_PARTS = 20, 1000
"""Parts of a time of which most must have a value; most parts of one with older samples."""

Filled = tuple["array[float]", "array[float]"]
"""Means and sample counts by bucket."""


class History:
    """A figure over session time; this one is not recorded."""

    @property
    def seen(self) -> bool:
        """Whether any value is known."""
        return False

    def columns(self, view: Window) -> list[float | None]:
        """Mean of each column; ``None``: nothing was recorded."""
        return [None] * view.columns

    def mean(self, start: int, end: int, least: float = 0.0) -> float | None:
        """Mean from ``start`` to ``end`` in nanoseconds.

        ``None``: it is unknown, or is known of less than the share ``least`` of this time.
        """
        if end <= start:
            return None
        columns = self.columns(Window(start, end, _PARTS if least else 1))
        known = [value for value in columns if value is not None]
        return sum(known) / len(known) if known and len(known) >= least * _PARTS else None

    def samples(self, start: int) -> tuple[Sequence[int], Sequence[float]] | None:
        """Times in nanoseconds and values, NaN where unknown, from some time before ``start`` on;
        ``None``: they are not at hand one by one."""
        return None


NOTHING = History()

Histories = Mapping[tuple[str, str], History]
"""By device id and metric."""


class Derived(History):
    """A figure that follows from others at the same time."""

    def __init__(
        self, rule: Callable[[Sequence[float | None]], float | None], *of: History
    ) -> None:
        """``of``: of one session; the figure is known when the first is."""
        self.rule, self._of = rule, of

    @property
    def seen(self) -> bool:
        return any(each.seen for each in self._of)

    def columns(self, view: Window) -> list[float | None]:
        return list(map(self.rule, zip(*(each.columns(view) for each in self._of), strict=True)))

    def mean(self, start: int, end: int, least: float = 0.0) -> float | None:
        """Sample by sample, where they are at hand, else by ten-second bucket: the mean of a
        product is none of the means."""
        read = [each.samples(start) for each in self._of]
        if read[0] is None:
            parts = min(_MOST_PARTS, max(1, (end - start) // BUCKET_NS))
            known = [v for v in self.columns(Window(start, end, parts)) if v is not None]
            return sum(known) / len(known) if known and len(known) >= least * parts else None
        times, first = read[0]
        columns = [[None] * len(times) if each is None else _filled(each[1]) for each in read]
        values = [
            nan if known != known or (value := self.rule(row)) is None else value
            for known, row in zip(first, zip(*columns, strict=True), strict=True)
        ]
        found = mean_between(times, values, start, end)
        return found[0] if found is not None and found[1] >= least else None


def _filled(values: Sequence[float]) -> Sequence[float | None]:
    """``values`` with the one before in place of NaN; before the first, that one."""
    last = next((value for value in values if value == value), None)
    return [last := value if value == value else last for value in values]


class Buckets:
    """Means of ten seconds of a session, made of its samples channel by channel when needed."""

    def __init__(self, reader: SessionReader) -> None:
        self._reader = reader
        self.together: Sequence[int] = ()
        """Channels that are read in one pass, when the first is needed."""
        self.numbers: array[int] = array("q")
        """Finished buckets: their time divided by their length."""
        self.upto = -1
        """The end of the last finished bucket, in nanoseconds."""
        self._columns: dict[int, Filled] = {}

    def of(self, channel: int) -> Filled:
        """Means and sample counts of a channel."""
        if channel not in self._columns:
            self.update()
            wanted = dict.fromkeys((channel, *self.together))
            missing = [each for each in wanted if each not in self._columns]
            self._columns.update({each: (array("d"), array("d")) for each in missing})
            self.numbers = self._read(missing, -1, self.upto)
        return self._columns[channel]

    def update(self) -> None:
        """Read new buckets of the channels that were needed."""
        newest = self._reader.last_sample() or 0
        before, self.upto = self.upto, max(self.upto, newest // BUCKET_NS * BUCKET_NS - 1)
        if self._columns:
            self.numbers.extend(self._read(list(self._columns), before, self.upto))

    def _read(self, channels: Sequence[int], after: int, upto: int) -> array[int]:
        """Append the buckets between two times to those of ``channels``; returns their numbers."""
        numbers = array("q")
        for piece in self._reader.sample_pieces(channels, after, upto) if after < upto else ():
            for number, first, end in _by_bucket(piece.t):
                numbers.append(number)
                for channel, values in zip(channels, piece.values, strict=True):
                    mean, count = _mean(values[first:end])
                    self._columns[channel][0].append(mean)
                    self._columns[channel][1].append(count)
        return numbers


def _by_bucket(times: array[int], first: int = 0) -> Iterator[tuple[int, int, int]]:
    """Number, first index and index after the last of each bucket from index ``first`` on."""
    while first < len(times):
        number = times[first] // BUCKET_NS
        # Clocks of foreign files may go back.
        end = max(first + 1, bisect_left(times, (number + 1) * BUCKET_NS, first))
        yield number, first, end
        first = end


def _mean(values: array[float]) -> tuple[float, float]:
    """Mean of the values that are known, and their number; 0 without any."""
    total = sum(values)
    if total == total:
        return total / len(values), len(values)
    known = [value for value in values if value == value]
    return (sum(known) / len(known), len(known)) if known else (0.0, 0.0)


class Ticks:
    """The newest samples of a session, one by one; used in the feed's thread."""

    def __init__(self, reader: SessionReader, interval: float, buckets: Buckets) -> None:
        """``interval``: the usual seconds between two; ``buckets``: of the same session, of which
        those after the newest sample are ignored."""
        self._reader = reader
        self.interval = interval
        self.buckets = buckets
        self.times: array[int] = array("q")
        self._values: defaultdict[int, array[float]] = defaultdict(lambda: array("d"))
        """By channel, one for each of ``times``; NaN is unknown."""
        self._back_ns = max(RECENT_NS, round(_LATEST * interval * NS))

    @property
    def newest(self) -> int:
        """Session time of the newest sample; 0: there is none."""
        return self.times[-1] if self.times else 0

    def update(self, channels: Sequence[int]) -> None:
        """Read new samples, and drop those that no history needs."""
        for channel in channels:  # some come later than others
            known = self._values[channel]
            known.extend([nan] * (len(self.times) - len(known)))
        last = self._reader.last_sample()
        after = self.newest if self.times else -1
        if last is not None and last > after:
            if last > after + self._back_ns * 4 // 3:
                after = last - self._back_ns
                self._drop(len(self.times))
            read = self._reader.samples(channels, after)
            self.times.extend(read.t)
            for channel, values in zip(channels, read.values, strict=True):
                self._values[channel].extend(values)
        oldest = bisect_left(self.times, self.newest - self._back_ns)
        if oldest > len(self.times) // 4:
            self._drop(oldest)
        if self.newest > self.buckets.upto + BUCKET_NS:
            self.buckets.update()

    def _drop(self, oldest: int) -> None:
        """Forget so many of the oldest samples."""
        del self.times[:oldest]
        for values in self._values.values():
            del values[:oldest]

    def latest(self, channel: int) -> tuple[int, float] | None:
        """Time and value of the newest known sample among the last ones; ``None``: unknown."""
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
        newest = zip(reversed(self.times), reversed(self._values[channel]), strict=True)
        return ((t, value) for t, value in islice(newest, _LATEST) if value == value)

    def covers(self, start: int) -> bool:
        """Whether single samples exist from ``start`` on."""
        apart = _APART * self.interval * NS
        return bool(self.times) and self.times[0] <= max(start + apart, 2 * apart)

    def recent(self, channel: int, start: int) -> tuple[array[int], array[float]]:
        """Times and values of a channel from the sample before ``start`` on, as far as kept."""
        low = max(0, bisect_right(self.times, start) - 1)
        return self.times[low:], self._values[channel][low:]

    def around(self, channel: int, moment: int) -> Sequence[tuple[int, float]]:
        """Known samples of a channel from some time before ``moment`` to some time behind it."""
        start = moment - _NEAR_NS
        if self.covers(start):
            times, values = self.recent(channel, start)
        else:
            read = self._reader.samples([channel], start, moment + _NEAR_NS)
            times, values = read.t, read.values[0]
        return [(t, value) for t, value in zip(times, values, strict=True) if value == value]


class Series(History):
    """The history of one channel."""

    def __init__(self, ticks: Ticks, channel: int) -> None:
        self._ticks = ticks
        self._channel = channel
        self._seen = False

    @property
    def seen(self) -> bool:
        if not self._seen:
            _, values = self._ticks.recent(self._channel, 0)
            self._seen = any(value == value for value in values) or any(self._buckets()[2])
        return self._seen

    def mean(self, start: int, end: int, least: float = 0.0) -> float | None:
        """As ``gpuwatch show`` does, but of times before the single samples from buckets."""
        if (known := self.samples(start)) is None:
            return super().mean(start, end, least)
        found = mean_between(*known, start, end)
        return found[0] if found is not None and found[1] >= least else None

    def samples(self, start: int) -> tuple[Sequence[int], Sequence[float]] | None:
        covered = self._ticks.covers(start)
        return self._ticks.recent(self._channel, start - _NEAR_NS) if covered else None

    def columns(self, view: Window) -> list[float | None]:
        if self._ticks.covers(view.start):
            times, values = self._ticks.recent(self._channel, view.start)
            return column_means(times, values, view, self._ticks.interval)
        numbers, averages, counts = self._buckets()
        means: list[float | None] = []
        for first, last in bucket_ranges(view):
            low, high = bisect_left(numbers, first), bisect_right(numbers, last)
            weight = sum(counts[low:high])
            total = sum(map(mul, averages[low:high], counts[low:high]))
            means.append(total / weight if weight else None)
        return clip(means, view, self._ticks.newest)

    def _buckets(self) -> tuple[array[int], array[float], array[float]]:
        """Numbers, means and counts of all buckets; the unfinished ones from their samples."""
        buckets = self._ticks.buckets
        average, weight = buckets.of(self._channel)
        end = bisect_left(buckets.numbers, self._ticks.newest // BUCKET_NS)
        numbers, average, weight = buckets.numbers[:end], average[:end], weight[:end]
        start = (numbers[-1] + 1) * BUCKET_NS if numbers else 0
        times, values = self._ticks.recent(self._channel, start)
        for number, first, last in _by_bucket(times, bisect_left(times, start)):
            mean, count = _mean(values[first:last])
            if count:
                numbers.append(number)
                average.append(mean)
                weight.append(count)
        return numbers, average, weight


class RateSeries(Series):
    """The increase per second of a counter."""

    def mean(self, start: int, end: int, least: float = 0.0) -> float | None:
        """By its values at both ends, as ``gpuwatch show`` has them, as far as it was read."""
        before, behind = (self._ticks.around(self._channel, at) for at in (start, end))
        if not before or not behind:
            return None
        first, last = max(start, before[0][0]), min(end, behind[-1][0])
        low, high = value_at(before, first), value_at(behind, last)
        if low is None or high is None or last - first <= least * (end - start):
            return None
        return (high - low) / ((last - first) / NS)

    def columns(self, view: Window) -> list[float | None]:
        if self._ticks.covers(view.start):
            times, values = self._ticks.recent(self._channel, view.start)
            longest = view.column_ns + 5 * self._ticks.interval * NS
        else:
            numbers, values, weight = self._buckets()
            times = array("q", (number * BUCKET_NS + BUCKET_NS // 2 for number in numbers))
            values = array("d", (v if w else nan for v, w in zip(values, weight, strict=True)))
            longest = view.column_ns + 3 * BUCKET_NS
        rates: list[float | None] = []
        for start, end in pairwise(view.edges()):
            # Between the samples around both ends, unless they are too far apart.
            low = max(0, bisect_right(times, start) - 1)
            high = min(bisect_left(times, end), len(times) - 1)
            rate = None
            if high > low and times[low] < end and times[high] > start:
                elapsed, increase = times[high] - times[low], values[high] - values[low]
                if 0 < elapsed <= longest and increase >= 0:
                    rate = increase / (elapsed / NS)
            rates.append(rate)
        return rates


def column_means(
    times: Sequence[int], values: Sequence[float | None], view: Window, interval: float
) -> list[float | None]:
    """Mean of each column of ``view``; ``None`` and NaN are unknown values.

    A value covers the time since the one before it, so that narrow columns have no gaps between
    two, nor where one reading is missing: GPM has none at every tick that is near its 0.1 s.
    ``interval``: the usual seconds between two.
    """
    edges = view.edges()
    means: list[float | None] = []
    low = bisect_right(times, edges[0])

    def known(at: int) -> bool:
        value = values[at]
        return value is not None and value == value

    def close(first: int, last: int) -> bool:
        in_time = 2.5 * interval * NS
        return first >= 0 and last < len(times) and times[last] - times[first] < in_time

    def at_or_after(at: int) -> float | None:
        if not known(at) and close(at - 1, at + 1) and known(at - 1):
            at += 1
        return values[at] if known(at) else None

    for end in edges[1:]:
        high = bisect_right(times, end, low)
        inside = [value for value in values[low:high] if value is not None and value == value]
        if inside:
            means.append(sum(inside) / len(inside))
        elif low + 1 == high:
            means.append(at_or_after(low))
        elif low == high < len(times):
            # The sample behind the column covers it, unless it came late.
            covers = close(high - 1, high) or times[high] - end < _APART * interval * NS
            means.append(at_or_after(high) if covers else None)
        else:
            means.append(None)
        low = high
    return means


def bucket_ranges(view: Window) -> Iterator[tuple[int, int]]:
    """First and last bucket of each column; a bucket may span several columns."""
    for start, end in pairwise(view.edges()):
        first = start // BUCKET_NS
        last = max(first, (end - 1) // BUCKET_NS)
        if last > first and end - start >= 4 * BUCKET_NS:
            first += 1
        yield first, last


def clip(columns: list[float | None], view: Window, newest: int) -> list[float | None]:
    """``columns`` without values after session time ``newest``: the last bucket ends later."""
    known = bisect_left(view.edges(), newest)
    return columns[:known] + [None] * (view.columns - known)
