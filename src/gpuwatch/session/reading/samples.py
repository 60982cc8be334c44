"""Reads samples: whole minutes from ``sample``, the open minute from ``tick``."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, number
from gpuwatch.session.reading.validation import whole
from gpuwatch.session.rows import Query
from gpuwatch.session.schema import MINUTE_NS, MOST_CHANNELS

LATEST = (1 << 63) - 1
"""Later than any sample."""
_AT_ONCE = 100
"""Minutes per statement, so that the writer is never blocked for long."""
_DOUBLE = 8
_UNKNOWN = array("d", [math.nan]).tobytes()
_LARGEST = 1e300
_MOST_TIMES = 2 * 6_000
"""In a minute: twice as many as at the shortest interval."""


@dataclass(frozen=True)
class Samples:
    """Samples of some channels, in order of time."""

    t: array[int]
    """Session time in nanoseconds, shape (n,)."""
    values: tuple[array[float], ...]
    """One array of shape (n,) for each channel, in the metric's unit; NaN is unknown."""


Times = dict[int, "array[int]"]
"""The times of each minute that is over, in nanoseconds."""


def pieces(
    rows: Query, channels: Sequence[int], after: int, upto: int, known: Times
) -> Iterator[Samples]:
    """The samples with ``after < t <= upto`` in nanoseconds, in pieces of at most 100 minutes.

    ``known``: minutes that were read before; more are added.

    Raises:
        ValueError: no recorder writes such a minute.
    """
    # The open minute first: one that is packed meanwhile is then read twice, and cut below.
    columns = "".join(f", c{int(channel)}" for channel in channels)
    open_minute = f"SELECT t{columns} FROM tick WHERE t > ? AND t <= ? ORDER BY n LIMIT ?"  # noqa: S608
    ticks = rows(open_minute, (after, upto, _MOST_TIMES + 1))
    if len(ticks) > _MOST_TIMES:
        raise ValueError("more samples in a minute than a recorder takes")
    if [t for t, *_ in ticks] != sorted(whole(t) for t, *_ in ticks):
        raise ValueError("samples that are not in order")
    border = min(upto, whole(ticks[0][0]) - 1) if ticks else upto
    minute = max(after + 1, 0) // MINUTE_NS - 1
    while found := rows(
        "SELECT n FROM minute WHERE n > ? AND n <= ? ORDER BY n LIMIT ?",
        (minute, border // MINUTE_NS, _AT_ONCE),
    ):
        numbers = [whole(n) for (n,) in found]
        if not known.keys() >= set(numbers):
            between = "SELECT n, times FROM minute WHERE n >= ? AND n <= ?"
            for n, blob in rows(between, (numbers[0], numbers[-1])):
                known[n] = _times(n, blob)
        times = {n: known[n] for n in numbers}
        first, minute = min(times), max(times)
        packed = Samples(
            array("q"), tuple(_packed(rows, channel, first, times) for channel in channels)
        )
        for each in times.values():
            packed.t.extend(each)
        yield _cut(packed, after, border)
    if ticks:
        t, *values = zip(*ticks, strict=True)
        yield Samples(array("q", t), tuple(array("d", map(_value, column)) for column in values))


def newest(rows: Query, upto: int) -> int | None:
    """The time of the last sample up to ``upto``, both in nanoseconds."""
    ticks = rows("SELECT t FROM tick WHERE t <= ? ORDER BY n DESC LIMIT 1", (upto,))
    if ticks:
        return whole(ticks[0][0])
    last_two = "SELECT n, times FROM minute WHERE n <= ? ORDER BY n DESC LIMIT 2"
    for n, blob in rows(last_two, (upto // MINUTE_NS,)):
        times = _times(whole(n), blob)
        if times[0] <= upto:
            return times[bisect_right(times, upto) - 1]
    return None


def _times(minute: int, blob: JSON) -> array[int]:
    """The times of a minute, which rise."""
    if len(blob) > _DOUBLE * _MOST_TIMES:
        raise ValueError("more samples in a minute than a recorder takes")
    times = array("q", blob)
    if not times or times[0] // MINUTE_NS != minute or times[-1] // MINUTE_NS != minute:
        raise ValueError("samples of another minute")
    if sorted(times) != times.tolist():
        raise ValueError("samples that are not in order")
    return times


def _packed(rows: Query, channel: int, first: int, times: dict[int, array[int]]) -> array[float]:
    """The values of a channel at ``times``, by minute."""
    blobs: dict[int, bytes] = dict(
        rows(
            "SELECT minute.n, sample.samples FROM minute JOIN sample "
            "ON sample.n = minute.n * ? + ? WHERE minute.n >= ? AND minute.n <= ?",
            (MOST_CHANNELS, int(channel), first, max(times)),
        )
    )
    values = array("d")
    for minute, moments in times.items():
        blob = _sound(blobs.get(minute, _UNKNOWN))
        if len(blob) == _DOUBLE:
            blob *= len(moments)
        elif len(blob) != _DOUBLE * len(moments):
            raise ValueError("a minute with more or fewer samples than times")
        values.frombytes(blob)
    return values


def _sound(blob: bytes) -> bytes:
    """The doubles of ``blob``, NaN in place of those that are infinite or beyond every sum."""
    highest_bytes = blob[_DOUBLE - 1 :: _DOUBLE]
    if 0x7F not in highest_bytes and 0xFF not in highest_bytes:
        return blob
    values = array("d", blob)
    return array("d", [each if abs(each) < _LARGEST else math.nan for each in values]).tobytes()


def _cut(samples: Samples, after: int, upto: int) -> Samples:
    low, high = bisect_right(samples.t, after), bisect_right(samples.t, upto)
    if low == 0 and high == len(samples.t):
        return samples
    return Samples(samples.t[low:high], tuple(column[low:high] for column in samples.values))


def _value(value: JSON) -> float:
    known = number(value)
    return math.nan if known is None or abs(known) >= _LARGEST else float(known)
