"""Reads many rows at once, by column, for histories and very long sessions.

Each call reads a bounded range, so that it never blocks the writer for long.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from array import array
from collections.abc import Sequence
from itertools import islice

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, number
from gpuwatch.session.reading import limits
from gpuwatch.session.reading.validation import Validated, in_order, whole
from gpuwatch.session.rows import StepRow, columns_of
from gpuwatch.session.schema import TIER_SECONDS, TIER_STATS, WARMUP

NAN = math.nan
_BUCKET_NS = TIER_SECONDS * 1_000_000_000
_PIECE = 4001
"""Rows of the tier per statement; an odd number, so that a full piece ends within a bucket."""
_PICKED = 100
"""Tick numbers per statement, so that the result fits into the processor's cache."""
_OF_ONE = 500
"""Columns per statement."""
_TIMED = ("tick", "step", "log", "event", "gpu_process", "process", "process_use", "rank_step")
"""Tables whose rows are in time order."""


@dataclass(frozen=True)
class TickColumns:
    """Ticks in order; NaN is an unknown value."""

    n: Sequence[int]
    """Shape (ticks,)."""
    t: Sequence[int]
    """Session time in nanoseconds, shape (ticks,)."""
    values: tuple[array[float], ...]
    """One array of shape (ticks,) for each requested channel, in the metric's unit."""


@dataclass(frozen=True)
class TierColumns:
    """Finished ten-second buckets in order."""

    n: Sequence[int]
    """``t`` divided by the bucket's length, rounded down; shape (buckets,)."""
    means: tuple[array[float], ...]
    """One array of shape (buckets,) for each requested channel; 0 if nothing is known."""
    counts: tuple[array[float], ...]
    """The number of known values behind each mean, in the same shape."""


class BulkReads(Validated, ABC):
    """The part of the reader that reads by column."""

    left_out: dict[str, None]
    """Sentences on what was too much to read."""

    def leave_out(self, sentence: str) -> None:
        self.left_out[sentence] = None

    def bucket_rows(self, channels: int) -> int:
        """See :func:`gpuwatch.session.reading.limits.bucket_rows`."""
        try:
            size = self.path.stat().st_size
        except OSError:
            size = 0
        return limits.bucket_rows(channels, size)

    @abstractmethod
    def _rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[JSON, ...]]:
        """The rows of one statement."""

    def row_at(self, table: str, t: int) -> int:
        """The number ``n`` of the table's last row up to time ``t`` (session nanoseconds), or -1.

        A binary search: reads about forty single rows.
        """
        if table not in _TIMED:
            raise AssertionError(f"no table in order of time: {table}")
        low = -1
        newest = self._rows(f"SELECT n, t FROM {table} ORDER BY n DESC LIMIT 1")  # noqa: S608
        if not newest:
            return low
        if whole(newest[0][1]) <= t:
            return int(newest[0][0])
        high = int(newest[0][0])
        before = f"SELECT n, t FROM {table} WHERE n <= ? ORDER BY n DESC LIMIT 1"  # noqa: S608
        while high - low > 1:
            middle = (low + high) // 2
            row = self._rows(before, (middle,))
            if row and whole(row[0][0]) > middle:
                raise ValueError("rows that are not in order")
            if row and whole(row[0][1]) > t:
                high = int(row[0][0])
            else:
                low = middle
        row = self._rows(before, (low,))
        return int(row[0][0]) if row else -1

    def tick_columns(
        self, channels: Sequence[int], after: int, upto: int, limit: int = -1
    ) -> TickColumns:
        """The first ``limit`` ticks with ``after < n <= upto``; -1: all of them."""
        rows = self._rows(
            f"SELECT n, t{columns_of(channels)} FROM tick "  # noqa: S608
            "WHERE n > ? AND n <= ? ORDER BY n LIMIT ?",
            (after, upto, limit),
        )
        if not rows:
            return TickColumns((), (), tuple(array("d") for _ in channels))
        n, t, *values = zip(*rows, strict=True)
        in_order(n, after)
        return TickColumns(
            array("q", n), array("q", t), tuple(doubles(column) for column in values)
        )

    def ticks_at(self, channels: Sequence[int], numbers: Sequence[int]) -> TickColumns:
        """The ticks with these rising numbers; missing ticks are left out."""
        n, t, values = array("q"), array("q"), tuple(array("d") for _ in channels)
        for begin in range(0, len(numbers), _PICKED):
            batch = numbers[begin : begin + _PICKED]
            rows = self._rows(
                f"SELECT n, t{columns_of(channels)} FROM tick "  # noqa: S608
                f"WHERE n IN ({', '.join('?' for _ in batch)}) ORDER BY n",
                batch,
            )
            if rows:
                batch_n, batch_t, *batch_columns = zip(*rows, strict=True)
                n.extend(batch_n)
                t.extend(batch_t)
                for column, batch_column in zip(values, batch_columns, strict=True):
                    column.extend(doubles(batch_column))
        return TickColumns(n, t, values)

    def tier_highest(self, channels: Sequence[int], first: int, end: int) -> list[float]:
        """The highest value of each channel in the finished buckets ``first <= n < end``; NaN if
        nothing is known. Shape (channels,)."""
        highest: list[float] = []
        for begin in range(0, len(channels), _OF_ONE):
            maxima = ", ".join(
                f"max(c{int(channel)})" for channel in channels[begin : begin + _OF_ONE]
            )
            sql = f"SELECT {maxima} FROM tier WHERE stat = ? AND n >= ? AND n < ?"  # noqa: S608
            highest.extend(doubles(self._rows(sql, (TIER_STATS.index("max"), first, end))[0]))
        return highest

    def tier_columns(self, channels: Sequence[int], after: int = -1) -> TierColumns:
        """Count and mean of these channels in the finished buckets with ``n > after``."""
        n, means, counts = (
            array("q"),
            [array("d") for _ in channels],
            [array("d") for _ in channels],
        )
        begin: int | None = after
        rows = self.bucket_rows(len(channels))
        while begin is not None:
            if len(n) >= rows:
                self.leave_out(f"only the first {len(n):,} buckets of the tier are read")
                break
            numbers, pairs, more = self._buckets(channels, begin)
            in_order(numbers, begin)
            begin = more
            n.extend(numbers)
            for index, (average, weight) in enumerate(pairs):
                means[index].extend(average)
                counts[index].extend(weight)
        return TierColumns(n, tuple(means), tuple(counts))

    def _buckets(
        self, channels: Sequence[int], after: int
    ) -> tuple[list[int], list[tuple[array[float], array[float]]], int | None]:
        """A piece of the tier: numbers, means and counts by channel, and the next ``after``."""
        count, mean = TIER_STATS.index("count"), TIER_STATS.index("mean")
        rows = self._rows(
            f"SELECT n, stat{columns_of(channels)} FROM tier "  # noqa: S608
            "WHERE n > ? AND stat IN (?, ?) ORDER BY n, stat LIMIT ?",
            (after, count, mean, _PIECE),
        )
        more = len(rows) == _PIECE
        last = rows[-1][0] if more else None
        rows = [row for row in rows if row[0] != last]
        by_stat = [{row[0]: row for row in rows if row[1] == stat} for stat in (mean, count)]
        numbers = [n for n in by_stat[0] if n in by_stat[1]]
        if not numbers:
            return [], [(array("d"), array("d"))] * len(channels), None
        pairs = ((zip(*(stat[n] for n in numbers), strict=True)) for stat in by_stat)
        columns = [_weighted(*pair) for pair in islice(zip(*pairs, strict=True), 2, None)]
        return numbers, columns, numbers[-1] if more else None

    def step_groups(self, after: int, upto: int) -> list[StepRow]:
        """The step lines with ``after < n <= upto``, combined to one or a few rows per ten seconds.

        A row has the sums of steps, samples and work, if every line reports them; number, time,
        step times and loss are those of its newest line.
        """
        # With a single max(), SQLite takes the other columns from the row of the maximum.
        rows = self._rows(
            f"SELECT max(n), t, step, sum(count), {WARMUP} AS warm, sum(samples), seconds, "  # noqa: S608
            "loss, sum(flop), sum(bytes) FROM step WHERE n > ? AND n <= ? "
            "GROUP BY t / ?, warm, samples IS NULL, flop IS NULL, bytes IS NULL ORDER BY 1",
            (after, upto, _BUCKET_NS),
        )
        return [
            StepRow(
                n=whole(n),
                t=whole(t),
                step=whole(step),
                count=max(1, whole(count)),
                warmup=bool(warmup),
                samples=number(samples),
                seconds=floats(seconds),
                loss=floats(loss),
                acc1=None,
                acc5=None,
                phases={},
                partial=(),
                flop=number(flop),
                bytes=number(size),
            )
            for n, t, step, count, warmup, samples, seconds, loss, flop, size in rows
        ]

    def first_timed_step(self) -> int | None:
        """The number ``n`` of the first step line after the warm-up, or ``None``."""
        rows = self._rows(f"SELECT n FROM step WHERE NOT {WARMUP} ORDER BY n LIMIT 1")  # noqa: S608
        return int(rows[0][0]) if rows else None


def floats(blob: object) -> tuple[float, ...] | None:
    """Decode a blob of little-endian doubles; ``None`` if it is missing or invalid."""
    if not isinstance(blob, bytes) or len(blob) % 8 or len(blob) > limits.OF_A_LINE:
        return None
    values = array("d", blob)
    if sys.byteorder == "big":
        values.byteswap()
    return tuple(values)


def doubles(column: Sequence[JSON]) -> array[float]:
    """Numbers as doubles; NaN for anything else. Shape (rows,)."""
    if _finite(column):
        return array("d", column)
    return array("d", [NAN if (value := number(item)) is None else value for item in column])


def _finite(column: Sequence[JSON]) -> bool:
    """Whether all values are finite numbers, with a finite sum."""
    try:
        return math.isfinite(sum(column))
    except TypeError:
        return False


def _weighted(means: Sequence[JSON], counts: Sequence[JSON]) -> tuple[array[float], array[float]]:
    """Means and their counts as arrays of shape (buckets,); both 0 where one is unknown."""
    if _finite(means) and _finite(counts):
        return array("d", means), array("d", counts)
    averages, weights = doubles(means), doubles(counts)
    for index, (mean, count) in enumerate(zip(averages, weights, strict=True)):
        if not (math.isfinite(mean) and count > 0):
            averages[index] = weights[index] = 0.0
    return averages, weights
