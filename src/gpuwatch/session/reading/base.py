"""What a reader stands on: rows found by their time, step lines in sums, what is left out."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from array import array
from collections.abc import Sequence

from gpuwatch.core.models import JSON, number
from gpuwatch.session.reading import limits
from gpuwatch.session.reading.validation import Validated, whole
from gpuwatch.session.rows import StepRow
from gpuwatch.session.schema import BUCKET_SECONDS, WARMUP

_BUCKET_NS = BUCKET_SECONDS * 1_000_000_000
_TIMED = ("step", "log", "event", "gpu_process", "process", "process_use", "rank_step")
"""Tables whose rows are in time order."""


class BaseReader(Validated, ABC):
    """The part of the reader that other parts of it use."""

    left_out: dict[str, None]
    """Sentences on what was too much to read."""

    def leave_out(self, sentence: str) -> None:
        self.left_out[sentence] = None

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
