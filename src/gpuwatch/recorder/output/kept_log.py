"""Limits a run's log, so that no output fills the disk or the memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate

from gpuwatch.core.units import counted
from gpuwatch.session.writing.statements import Row, event, log_line, without_log

MOST_LOG_BYTES = 32 << 20
MOST_LOG_LINES = 200_000
HEAD_LINES, HEAD_BYTES = 2_000, 4 << 20
"""Kept from the start if the log outgrows its limits; after these, the oldest lines are dropped."""

MOST_LINES_AT_ONCE = 4_000
"""Log lines kept from one read of the output; step lines have priority."""
MOST_LINES_PER_SECOND, MOST_BYTES_PER_SECOND = 20_000, 8 << 20
"""Kept from one second of output, which waits in memory until the next commit."""
LEAST_LINES, LEAST_BYTES = 100, 32 << 10
"""Always kept from each read: its end may be the workload's last words."""

_LINE_COST = 32
"""Bytes that a log line takes besides its text."""
_SECOND_NS = 1_000_000_000

Line = tuple[int, str, str]
"""Nanoseconds since the session's start, stream, text."""


class KeptLog:
    """Numbers the lines, and drops the middle of a flood and old lines of a long log.

    After a crash another recorder continues, with number and length of every line in the file
    (``lengths``), and the ``last`` number.
    """

    def __init__(self, lengths: Iterable[tuple[int, int]] = (), last: int = -1) -> None:
        self._last = last
        self._head_lines = self._head_bytes = 0
        self._head_open = True
        self._tail = array("I")
        """The cost of each line after the head; their numbers are consecutive."""
        self._tail_bytes = 0
        for n, length in lengths:
            self._head_open = self._head_open and n == self._head_lines
            self._count(length)
        self._flooded = False
        self._second = 0
        self._lines_left, self._bytes_left = MOST_LINES_PER_SECOND, MOST_BYTES_PER_SECOND

    def take(self, lines: Sequence[Line]) -> list[Row]:
        """Rows for the lines of one read of the output; only the start and end of a flood."""
        if not lines:
            return []
        first, last = _ends(lines, *self._left(lines[-1][0]))
        dropped = len(lines) - len(first) - len(last)
        if not dropped:
            return [row for line in lines for row in self.add(*line)]
        t, stream, _ = lines[len(first)]
        marker = f"[gpuwatch: {counted(dropped, 'line')} left out here: too many at once]"
        rows = [row for line in (*first, (t, stream, marker), *last) for row in self.add(*line)]
        if not self._flooded:
            self._flooded = True
            text = "lines came too fast: some are not in the log"
            rows.append(event(t, "log-shortened", text))
        return rows

    def add(self, t: int, stream: str, text: str) -> list[Row]:
        """Rows for one line, whatever the rate."""
        self._last += 1
        self._lines_left -= 1
        size = _size(text)
        self._bytes_left -= size
        rows = [log_line(self._last, t, stream, text)]
        self._count(size)
        if self._tail_bytes > MOST_LOG_BYTES or len(self._tail) > MOST_LOG_LINES:
            rows.extend(self._shorten(t))
        return rows

    def _count(self, length: int) -> None:
        size = length + _LINE_COST
        fits = self._head_lines < HEAD_LINES and self._head_bytes + size <= HEAD_BYTES
        self._head_open = self._head_open and fits
        if self._head_open:
            self._head_lines += 1
            self._head_bytes += size
        else:
            self._tail.append(size)
            self._tail_bytes += size

    def _left(self, t: int) -> tuple[int, int]:
        """Lines and bytes that may still be kept in the second of ``t`` (ns)."""
        if t // _SECOND_NS != self._second:
            self._second = t // _SECOND_NS
            self._lines_left, self._bytes_left = MOST_LINES_PER_SECOND, MOST_BYTES_PER_SECOND
        lines = min(self._lines_left, MOST_LINES_AT_ONCE)
        return max(LEAST_LINES, lines), max(LEAST_BYTES, self._bytes_left)

    def _shorten(self, t: int) -> list[Row]:
        """Drop the oldest tenth of the tail at once, so that this is rare."""
        first = self._last - len(self._tail) + 1
        bytes_, lines = MOST_LOG_BYTES * 9 // 10, MOST_LOG_LINES * 9 // 10
        most, gone = len(self._tail), 0
        while gone < most and (self._tail_bytes > bytes_ or most - gone > lines):
            self._tail_bytes -= self._tail[gone]
            gone += 1
        del self._tail[:gone]
        rows = [without_log(first, first + gone)]
        if first == self._head_lines:
            text = "the log is long: only its start and end are kept"
            rows.append(event(t, "log-shortened", text))
        return rows


def _ends(
    lines: Sequence[Line], most_lines: int, most_bytes: int
) -> tuple[Sequence[Line], Sequence[Line]]:
    """The start and the end of ``lines`` within both limits; all of them, and none, if they fit."""
    if len(lines) <= most_lines and sum(_size(text) for _, _, text in lines) <= most_bytes:
        return lines, ()
    first = _fitting(lines, most_lines // 2, most_bytes // 2)
    rest = lines[first:]
    last = _fitting(rest[::-1], most_lines // 2, most_bytes // 2)
    return lines[:first], rest[len(rest) - last :]


def _fitting(lines: Sequence[Line], most_lines: int, most_bytes: int) -> int:
    """How many of the first ``lines`` are within both limits."""
    totals = accumulate(_size(text) for _, _, text in lines[:most_lines])
    return sum(total <= most_bytes for total in totals)


def _size(text: str) -> int:
    """Bytes in the file, as UTF-8."""
    return len(text) if text.isascii() else len(text.encode())
