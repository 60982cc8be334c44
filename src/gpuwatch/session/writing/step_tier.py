"""The step tier: combines the step lines of ten seconds into one row, however many there are.

Up to 256 step times per bucket are kept one by one, in order. Beyond that, times within one part in
2,048 of each other are kept as a mean and a count, so that quantiles are off by less than that; the
shortest and the longest time stay exact.
"""

from __future__ import annotations

import math
import sys
from array import array
from dataclasses import field

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.session.rows import StepRow, with_phases
from gpuwatch.session.schema import TIER_SECONDS
from gpuwatch.session.writing.statements import phases_text

MOST_SINGLE = 256
"""Most times of a bucket that are kept one by one."""
RESOLUTION = 1 / 2048
"""Relative width within which times are merged, and the largest error of a quantile."""

_BUCKET_NS = TIER_SECONDS * 1_000_000_000
_PER_LOG = 1 / math.log1p(RESOLUTION)

SQL = (
    "INSERT INTO step_tier (n, lines, t, start, step, count, warmup, partial, samples, taken, "
    "times, weights, loss, phases, flop, bytes) VALUES "
    "((SELECT max(n) FROM step), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
"""Written before the first line of the next bucket, so that it covers the file's newest lines."""


@dataclass
class _Bucket:
    first: StepRow
    last: StepRow
    start: int
    first_loss: float | None = None
    last_loss: float | None = None
    lines: int = 0
    count: int = 0
    partial: set[int] = field(default_factory=set)
    samples: float | None = 0.0
    flop: float | None = 0.0
    bytes: float | None = 0.0
    taken: float = 0.0
    timed: bool = True
    """Whether every line so far has valid times."""
    times: array[float] = field(default_factory=lambda: array("d"))
    merged: dict[int, list[float]] | None = None
    """``[sum, count]`` of times by the rounded logarithm of the time."""
    shortest: float = math.inf
    longest: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)
    sampled: float = 0
    """Steps with phases."""

    def add(self, line: StepRow) -> None:
        self.last = line
        self.lines += 1
        self.count += line.count
        self.sampled += with_phases([line])
        self.partial.update(line.partial)
        self.samples = _plus(self.samples, line.samples)
        self.flop = _plus(self.flop, line.flop)
        self.bytes = _plus(self.bytes, line.bytes)
        for name, seconds in line.phases.items():
            self.phases[name] = self.phases.get(name, 0.0) + seconds
        if line.loss:
            if self.first_loss is None:
                self.first_loss = line.loss[0]
            self.last_loss = line.loss[-1]
        self._take(line)

    def _take(self, line: StepRow) -> None:
        seconds = line.seconds
        if not seconds or not all(0 < time < math.inf for time in seconds):
            self.timed = False
        if not self.timed or seconds is None:
            return
        self.taken += sum(seconds)
        if line.partial:
            first, partial = line.step - len(seconds) + 1, set(line.partial)
            full = [time for at, time in enumerate(seconds, first) if at not in partial]
        else:
            full = list(seconds)
        if full:
            self.shortest = min(self.shortest, *full)
            self.longest = max(self.longest, *full)
        if self.merged is None:
            self.times.extend(full)
            if len(self.times) <= MOST_SINGLE:
                return
            full, self.merged = self.times.tolist(), {}
        for time in full:
            pair = self.merged.setdefault(_key(time), [0.0, 0.0])
            pair[0] += time
            pair[1] += 1

    def _pairs(self, merged: dict[int, list[float]]) -> list[tuple[float, float]]:
        """``(sum, count)`` by rising time, with the shortest and the longest time on their own."""
        inner = {key: list(pair) for key, pair in merged.items()}
        for extreme in (self.shortest, self.longest):
            pair = inner[_key(extreme)]
            pair[0] -= extreme
            pair[1] -= 1
        middle = [(total, count) for _, (total, count) in sorted(inner.items()) if count > 0]
        return [(self.shortest, 1), *middle, (self.longest, 1)]

    def row(self) -> tuple[object, ...]:
        times: bytes | None = None
        weights: bytes | None = None
        if self.timed and self.merged is None:
            times = _bytes(self.times)
        elif self.timed and self.merged is not None:
            pairs = self._pairs(self.merged)
            times = _bytes(array("d", [total / count for total, count in pairs]))
            weights = _bytes(array("I", [int(count) for _, count in pairs]))
        loss = self.first_loss, self.last_loss
        losses = [value for value in loss if value is not None]
        return (
            self.lines,
            self.last.t,
            self.start,
            self.last.step,
            self.count,
            int(self.first.warmup),
            len(self.partial),
            self.samples,
            self.taken,
            times,
            weights,
            _bytes(array("d", losses)) if losses else None,
            phases_text(self.phases, self.count, self.sampled),
            self.flop,
            self.bytes,
        )


class StepTier:
    """Collects step lines and returns the row of a bucket when the next one begins.

    A bucket holds consecutive lines of ten seconds, all in the warm-up or all after it.
    """

    def __init__(self) -> None:
        self._bucket: _Bucket | None = None
        self._before: int | None = None

    def add(self, line: StepRow) -> list[tuple[str, tuple[object, ...]]]:
        """Add a line; returns the rows now finished, to be written before this line."""
        done, bucket = [], self._bucket
        if bucket is None or not (
            bucket.first.t // _BUCKET_NS == line.t // _BUCKET_NS
            and bucket.first.warmup is line.warmup
        ):
            done = self.flush()
            bucket = self._bucket = _Bucket(line, line, _start(line, self._before))
        bucket.add(line)
        self._before = line.t
        return done

    def flush(self) -> list[tuple[str, tuple[object, ...]]]:
        """The row of the current bucket; starts an empty one."""
        bucket, self._bucket = self._bucket, None
        return [] if bucket is None else [(SQL, bucket.row())]


def _key(seconds: float) -> int:
    return math.floor(math.log(seconds) * _PER_LOG)


def _start(line: StepRow, before: int | None) -> int:
    """When the first step of a line began, nanoseconds; not before the previous line."""
    taken = sum(line.seconds) if line.seconds else 0.0
    start = line.t - int(taken * 1e9) if math.isfinite(taken) else line.t
    return min(line.t, start if before is None else max(start, before))


def _plus(total: float | None, value: float | None) -> float | None:
    return None if total is None or value is None else total + value


def _bytes(values: array[float] | array[int]) -> bytes:
    if sys.byteorder == "big":
        values.byteswap()
    return values.tobytes()
