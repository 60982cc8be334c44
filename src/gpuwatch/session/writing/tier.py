"""The coarse tier: count, minimum, mean and maximum of each channel in buckets of ten seconds."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.session.schema import TIER_SECONDS, TIER_STATS

_BUCKET_NS = TIER_SECONDS * 1_000_000_000

_HELD = 20
"""Ticks counted together: a column of them costs little more than one value."""

Value = float | int | None


class Tier:
    """Collects ticks and returns the rows of a bucket when the next one begins."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._bucket: int | None = None
        self._held: list[Sequence[Value]] = []
        self._clear()

    def _clear(self) -> None:
        self._count = [0] * self._columns
        self._sum = [0.0] * self._columns
        self._min: list[Value] = [None] * self._columns
        self._max: list[Value] = [None] * self._columns

    def add(self, t: int, values: Sequence[Value]) -> list[tuple[Value, ...]]:
        """Add a tick at ``t`` ns, one value per column; returns the finished rows ``(n, stat, c0,
        ...)``."""
        bucket = t // _BUCKET_NS
        done = self.flush() if self._bucket not in (None, bucket) else []
        self._bucket = bucket
        self._held.append(values)
        if len(self._held) == _HELD:
            self._take()
        return done

    def _take(self) -> None:
        """Add the held ticks to the statistics."""
        for index, column in enumerate(zip(*self._held, strict=True)):
            known = [value for value in column if value is not None] if None in column else column
            if not known:
                continue
            lowest, highest = self._min[index], self._max[index]
            self._count[index] += len(known)
            self._sum[index] += sum(known)
            self._min[index] = min(known) if lowest is None else min(lowest, *known)
            self._max[index] = max(known) if highest is None else max(highest, *known)
        self._held = []

    def flush(self) -> list[tuple[Value, ...]]:
        """The rows of the current bucket; starts an empty one."""
        if self._bucket is None:
            return []
        self._take()
        mean = [
            total / count if count else None
            for total, count in zip(self._sum, self._count, strict=True)
        ]
        by_stat = {"count": self._count, "min": self._min, "mean": mean, "max": self._max}
        rows = [
            (self._bucket, stat, *by_stat[name])  # type: ignore[misc]
            for stat, name in enumerate(TIER_STATS)
        ]
        self._bucket = None
        self._clear()
        return rows
