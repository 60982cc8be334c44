"""Reads log lines by pages, so that hundreds of thousands are never in memory at once."""

from __future__ import annotations

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.session.reading.validation import whole
from gpuwatch.session.rows import Query

LONGEST = 64 * 1024
"""Characters read of a line; a file from elsewhere may hold longer ones."""
END = 2**62
"""A line number after every line."""


@dataclass(frozen=True)
class LogLine:
    n: int
    t: int
    """Session time in nanoseconds."""
    stream: str
    """``stdout`` or ``stderr``."""
    text: str
    length: int
    """Characters of the full line; more than in ``text`` if that was cut."""


def lines(
    query: Query,
    at: int,
    limit: int,
    *,
    stream: str | None,
    upto: int,
    back: bool = False,
    least: int = -END,
) -> list[LogLine]:
    """At most ``limit`` lines from number ``at`` on, in order; ``back``: those before ``at``.

    ``stream``: only lines of this stream; ``least`` and ``upto``: the first and last line number
    to consider.
    """
    condition = "n >= ? AND n < min(?, ? + 1) " if back else "n >= max(?, ?) AND n <= ? "
    values: list[object] = [least, at, min(upto, END)]
    if stream is not None:
        condition += "AND stream = ? "
        values.append(stream)
    rows = query(
        f"SELECT n, t, stream, substr(text, 1, {LONGEST}), length(text) FROM log "  # noqa: S608
        f"WHERE {condition}ORDER BY n {'DESC' if back else ''} LIMIT ?",
        (*values, limit),
    )
    page = [
        LogLine(whole(n), whole(t), str(line_stream), str(text), int(length))
        for n, t, line_stream, text, length in rows
    ]
    return page[::-1] if back else page
