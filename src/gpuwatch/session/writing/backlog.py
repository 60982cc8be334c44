"""Bounds the rows that wait in memory while a session file cannot be written."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache

from gpuwatch.session.writing.statements import Row

MOST_SAMPLES = 200_000
"""Ticks, minutes of a channel, and process rows."""
MOST_LINES, MOST_LINE_BYTES = 200_000, 64 << 20
"""Log lines, and the memory of their texts."""

_KINDS = {
    "meta": ("INSERT OR REPLACE INTO meta ",),
    "line": ("INSERT INTO log ",),
    "sample": (
        "INSERT OR REPLACE INTO tick ",
        "INSERT INTO sample ",
        "INSERT INTO process ",
        "INSERT INTO process_use ",
        "INSERT INTO gpu_process ",
    ),
}


def thinned(rows: Sequence[Row]) -> tuple[list[Row], int]:
    """Thin out ``rows``, in order; returns the rows kept and the number lost for good.

    Keeps the newest row of each key in ``meta``, the newest log lines and samples within their
    limits, and everything else: steps and events are the essence of a run.
    """
    samples_left, lines_left, bytes_left = MOST_SAMPLES, MOST_LINES, MOST_LINE_BYTES
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
            lines_left, bytes_left = lines_left - 1, bytes_left - sys.getsizeof(values[-1])
            if lines_left < 0 or bytes_left < 0:
                lost += 1
                continue
        elif kind == "sample":
            samples_left -= 1
            if samples_left < 0:
                lost += 1
                continue
        kept.append(row)
    kept.reverse()
    return kept, lost


@cache
def _kind(sql: str) -> str | None:
    return next((kind for kind, starts in _KINDS.items() if sql.startswith(starts)), None)
