"""The samples of the minute that is being recorded, and the rows that keep it once it is over."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

from gpuwatch.session.schema import MINUTE_NS, MOST_CHANNELS
from gpuwatch.session.writing.statements import Row

Value = float | int | None

_SAMPLE = "INSERT INTO sample (n, samples) VALUES (?, ?)"
_MINUTE = "INSERT INTO minute (n, last, times) VALUES (?, ?, ?)"
_PACKED = "DELETE FROM tick WHERE n <= ?"


class OpenMinute:
    """Collects ticks, which stand in ``tick`` too until the minute is over."""

    def __init__(self, columns: int) -> None:
        self._times = array("q")
        self._columns = [array("d") for _ in range(columns)]
        self._last = -1

    def add(self, n: int, t: int, values: Sequence[Value]) -> list[Row]:
        """Add tick ``n`` at ``t`` ns, one value per column; returns the rows of the minute before,
        if this one begins another."""
        over = bool(self._times) and self._times[0] // MINUTE_NS != t // MINUTE_NS
        rows = self.close() if over else []
        self._last = n
        self._times.append(t)
        for column, value in zip(self._columns, values, strict=True):
            column.append(math.nan if value is None else value)
        return rows

    def close(self) -> list[Row]:
        """The rows of this minute, which take the place of its ticks; begins an empty one."""
        if not self._times:
            return []
        minute = self._times[0] // MINUTE_NS
        rows: list[Row] = []
        for channel, column in enumerate(self._columns):
            samples = column.tobytes()
            if samples == samples[:8] * len(column):
                samples = samples[:8]
            rows.append((_SAMPLE, (minute * MOST_CHANNELS + channel, samples)))
            del column[:]
        rows.append((_MINUTE, (minute, self._last, self._times.tobytes())))
        rows.append((_PACKED, (self._last,)))
        del self._times[:]
        return rows
