"""Lines of a log by pages, so that hundreds of thousands are never in memory together."""

from __future__ import annotations

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.session.reading.validation import whole
from gpuwatch.session.rows import Query

LONGEST = 64 * 1024
"""Characters of a line that are read; a file of someone else's may hold longer ones."""
END = 2**62
"""Behind every line."""


@dataclass(frozen=True)
class LogLine:
    n: int
    t: int
    """Session time in nanoseconds."""
    stream: str
    """``stdout`` or ``stderr``."""
    text: str
    length: int
    """Characters of the whole line: more than ``text`` has where it was cut."""


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
    """At most ``limit`` lines from number ``at`` on, in order; ``back``: those before it.

    ``stream``: of one stream alone; ``least`` and ``upto``: the numbers of the first and of the
    last line that is looked at.
    """
    which = "n >= ? AND n < min(?, ? + 1) " if back else "n >= max(?, ?) AND n <= ? "
    values: list[object] = [least, at, min(upto, END)]
    if stream is not None:
        which += "AND stream = ? "
        values.append(stream)
    rows = query(
        f"SELECT n, t, stream, substr(text, 1, {LONGEST}), length(text) FROM log "  # noqa: S608
        f"WHERE {which}ORDER BY n {'DESC' if back else ''} LIMIT ?",
        (*values, limit),
    )
    found = [
        LogLine(whole(n), whole(t), str(of), str(text), int(length))
        for n, t, of, text, length in rows
    ]
    return found[::-1] if back else found
