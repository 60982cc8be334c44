"""What waits in memory while a session file cannot be written, kept within bounds."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache

from gpuwatch.session.writing.statements import Row

MOST_SAMPLES = 200_000
"""Ticks and rows of processes."""
MOST_LINES, MOST_LINE_BYTES = 200_000, 64 << 20
"""Lines of the log, and the memory of their texts."""

_KINDS = {
    "meta": ("INSERT OR REPLACE INTO meta ",),
    "line": ("INSERT INTO log ",),
    "sample": (
        "INSERT OR REPLACE INTO tick ",
        "INSERT INTO process ",
        "INSERT INTO process_use ",
        "INSERT INTO gpu_process ",
    ),
}


def thinned(rows: Sequence[Row]) -> tuple[list[Row], int]:
    """What is kept of ``rows``, in their order, and how many that nothing replaces are lost.

    Of a key of ``meta`` the newest row is kept, of log lines and samples the newest within their
    limits. All else is: without its steps and events a run is another one.
    """
    samples, lines, bytes_ = MOST_SAMPLES, MOST_LINES, MOST_LINE_BYTES
    keys: set[object] = set()
    kept: list[Row] = []
    lost = 0
    for row in reversed(rows):
        sql, values = row
        kind = _kind(sql)
        if kind == "meta":
            if values[0] in keys:
                continue
            keys.add(values[0])
        elif kind == "line":
            lines, bytes_ = lines - 1, bytes_ - sys.getsizeof(values[-1])
            if lines < 0 or bytes_ < 0:
                lost += 1
                continue
        elif kind == "sample":
            samples -= 1
            if samples < 0:
                lost += 1
                continue
        kept.append(row)
    kept.reverse()
    return kept, lost


@cache
def _kind(sql: str) -> str | None:
    return next((kind for kind, starts in _KINDS.items() if sql.startswith(starts)), None)
