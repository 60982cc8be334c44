"""The coarse tier: count, minimum, mean and maximum of each channel in buckets of ten seconds."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.session.schema import TIER_SECONDS, TIER_STATS

_BUCKET_NS = TIER_SECONDS * 1_000_000_000

Value = float | int | None


class Tier:
    """Collects ticks and gives a finished bucket's rows when the next one begins."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._bucket: int | None = None
        self._clear()

    def _clear(self) -> None:
        self._count = [0] * self._columns
        self._sum = [0.0] * self._columns
        self._min: list[Value] = [None] * self._columns
        self._max: list[Value] = [None] * self._columns

    def add(self, t: int, values: Sequence[Value]) -> list[tuple[Value, ...]]:
        """Take one tick at ``t`` ns; returns the rows ``(n, stat, c0, ...)`` now finished."""
        bucket = t // _BUCKET_NS
        done = self.flush() if self._bucket not in (None, bucket) else []
        self._bucket = bucket
        count, total, low, high = self._count, self._sum, self._min, self._max
        for index, value in enumerate(values):
            if value is None:
                continue
            count[index] += 1
            total[index] += value
            lowest, highest = low[index], high[index]
            if lowest is None or value < lowest:
                low[index] = value
            if highest is None or value > highest:
                high[index] = value
        return done

    def flush(self) -> list[tuple[Value, ...]]:
        """The rows of the bucket under way, which is then empty."""
        if self._bucket is None:
            return []
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
