"""Many rows at once, by column: what histories and very long sessions are read with.

Every call reads a bounded stretch, so that it never holds the writer up for long.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Sequence
from itertools import islice

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, number
from gpuwatch.session.reading import limits
from gpuwatch.session.reading.validation import Validated, in_order, whole
from gpuwatch.session.rows import StepRow, columns_of
from gpuwatch.session.schema import TIER_SECONDS, TIER_STATS

NAN = math.nan
_BUCKET_NS = TIER_SECONDS * 1_000_000_000
_PIECE = 4001
"""Rows of the tier that are read at once: an odd number ends within a bucket."""
_PICKED = 100
"""Numbers of ticks of one statement: what it gives stays in the processor's memory."""
_OF_ONE = 500
"""Columns of one statement."""
_TIMED = ("tick", "step", "log", "event", "gpu_process", "process", "process_use")
"""Tables whose rows are in order of time."""


@dataclass(frozen=True)
class TickColumns:
    """Ticks in order; a NaN is a value that is not known."""

    n: Sequence[int]
    t: Sequence[int]
    values: tuple[array[float], ...]
    """One for each channel that was asked for."""


@dataclass(frozen=True)
class TierColumns:
    """Finished buckets of ten seconds in order."""

    n: Sequence[int]
    """``t`` over the bucket's length, rounded down."""
    means: tuple[array[float], ...]
    """One for each channel that was asked for; 0 where nothing is known."""
    counts: tuple[array[float], ...]
    """Of known values, so many each mean is of."""


class BulkReads(Validated):
    """The part of the reader that reads by column."""

    left_out: dict[str, None]
    """What was too much to be read, in sentences."""

    def leave_out(self, sentence: str) -> None:
        self.left_out[sentence] = None

    def bucket_rows(self, channels: int) -> int:
        """See :func:`gpuwatch.session.reading.limits.bucket_rows`."""
        try:
            size = self.path.stat().st_size
        except OSError:
            size = 0
        return limits.bucket_rows(channels, size)

    def _rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[JSON, ...]]:
        raise NotImplementedError

    def row_at(self, table: str, t: int) -> int:
        """The number ``n`` of the table's last row up to the time ``t``, else -1.

        Found by halving: about forty single rows are read.
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
            found = self._rows(before, (middle,))
            if found and whole(found[0][0]) > middle:
                raise ValueError("rows that are not in order")
            if found and whole(found[0][1]) > t:
                high = int(found[0][0])
            else:
                low = middle
        found = self._rows(before, (low,))
        return int(found[0][0]) if found else -1

    def tick_columns(
        self, channels: Sequence[int], after: int, upto: int, limit: int = -1
    ) -> TickColumns:
        """The ticks with ``after < n <= upto``, the first ``limit`` of them; -1: all."""
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
        """The ticks of these numbers, which rise; those that were left out are left out."""
        n, t, values = array("q"), array("q"), tuple(array("d") for _ in channels)
        for begin in range(0, len(numbers), _PICKED):
            asked = numbers[begin : begin + _PICKED]
            rows = self._rows(
                f"SELECT n, t{columns_of(channels)} FROM tick "  # noqa: S608
                f"WHERE n IN ({', '.join('?' for _ in asked)}) ORDER BY n",
                asked,
            )
            if rows:
                some_n, some_t, *columns = zip(*rows, strict=True)
                n.extend(some_n)
                t.extend(some_t)
                for whole_, part in zip(values, columns, strict=True):
                    whole_.extend(doubles(part))
        return TickColumns(n, t, values)

    def tier_highest(self, channels: Sequence[int], first: int, end: int) -> list[float]:
        """The highest value of each channel in the finished buckets from ``first`` up to ``end``,
        which does not count; NaN where nothing is known."""
        found: list[float] = []
        for begin in range(0, len(channels), _OF_ONE):
            of = ", ".join(f"max(c{int(each)})" for each in channels[begin : begin + _OF_ONE])
            sql = f"SELECT {of} FROM tier WHERE stat = ? AND n >= ? AND n < ?"  # noqa: S608
            found.extend(doubles(self._rows(sql, (TIER_STATS.index("max"), first, end))[0]))
        return found

    def tier_columns(self, channels: Sequence[int], after: int = -1) -> TierColumns:
        """The finished buckets behind ``after``: count and mean of these channels."""
        n, means, counts = (
            array("q"),
            [array("d") for _ in channels],
            [array("d") for _ in channels],
        )
        begin: int | None = after
        rows = self.bucket_rows(len(channels))
        while begin is not None:
            if len(n) >= rows:
                self.leave_out(f"of the tier the first {len(n):,} buckets are read")
                break
            numbers, found, more = self._buckets(channels, begin)
            in_order(numbers, begin)
            begin = more
            n.extend(numbers)
            for index, (average, weight) in enumerate(found):
                means[index].extend(average)
                counts[index].extend(weight)
        return TierColumns(n, tuple(means), tuple(counts))

    def _buckets(
        self, channels: Sequence[int], after: int
    ) -> tuple[list[int], list[tuple[array[float], array[float]]], int | None]:
        """A piece of the tier: numbers, means and counts, and where the next one begins."""
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
        found = [_weighted(*pair) for pair in islice(zip(*pairs, strict=True), 2, None)]
        return numbers, found, numbers[-1] if more else None

    def step_groups(self, after: int, upto: int) -> list[StepRow]:
        """The step lines with ``after < n <= upto``, those of ten seconds in one row or a few.

        Such a row has the sums of their steps, samples and work, as far as these are known of each;
        number, time, step times and loss are those of its newest line.
        """
        # With one maximum SQLite takes the other columns from its row.
        rows = self._rows(
            "SELECT max(n), t, step, sum(count), warmup, sum(samples), seconds, loss, sum(flop), "
            "sum(bytes) FROM step WHERE n > ? AND n <= ? "
            "GROUP BY t / ?, warmup, samples IS NULL, flop IS NULL, bytes IS NULL ORDER BY 1",
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
        """The number ``n`` of the first step line behind the warm-up, ``None``: there is none."""
        rows = self._rows("SELECT n FROM step WHERE warmup = 0 ORDER BY n LIMIT 1")
        return int(rows[0][0]) if rows else None


def floats(blob: object) -> tuple[float, ...] | None:
    """A blob of little-endian doubles; ``None`` when there is none, or no recorder writes it."""
    if not isinstance(blob, bytes) or len(blob) % 8 or len(blob) > limits.OF_A_LINE:
        return None
    values = array("d", blob)
    if sys.byteorder == "big":
        values.byteswap()
    return tuple(values)


def doubles(column: Sequence[JSON]) -> array[float]:
    """Numbers as doubles; NaN for what is none."""
    if _finite(column):
        return array("d", column)
    return array("d", [NAN if (value := number(each)) is None else value for each in column])


def _finite(column: Sequence[JSON]) -> bool:
    """Whether they are numbers, all of them finite, and so is their sum."""
    try:
        return math.isfinite(sum(column))
    except TypeError:
        return False


def _weighted(means: Sequence[JSON], counts: Sequence[JSON]) -> tuple[array[float], array[float]]:
    """Means and their counts; both 0 where one is not known."""
    if _finite(means) and _finite(counts):
        return array("d", means), array("d", counts)
    averages, weights = doubles(means), doubles(counts)
    for index, (mean, count) in enumerate(zip(averages, weights, strict=True)):
        if not (math.isfinite(mean) and count > 0):
            averages[index] = weights[index] = 0.0
    return averages, weights
