"""Bars and histories on a fixed scale, as text."""

from __future__ import annotations

import re
from codecs import charmap_decode
from collections.abc import Sequence
from functools import lru_cache

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.units import NS, clock_time

_BLOCKS = " ▁▂▃▄▅▆▇█"

_DURATIONS = (
    *(1, 2, 5, 10, 20, 30),
    *(60, 120, 300, 600, 1200, 1800),
    *(3600, 7200, 18000, 36000, 43200),
    *(86400, 2 * 86400, 5 * 86400, 10 * 86400, 20 * 86400, 50 * 86400, 100 * 86400),
)
"""Lengths in seconds that people read easily on a time axis."""


def bar(fraction: float | None, width: int) -> tuple[str, str]:
    """The filled and the empty part of a bar from 0 to 1: heavy against light."""
    if fraction is None:
        return "", "┄" * width
    halves = round(min(1.0, max(0.0, fraction)) * width * 2)
    full, half = divmod(halves, 2)
    filled = "━" * full + ("╸" if half else "")
    return filled, "─" * (width - len(filled))


def area(values: Sequence[float | None], top: float, height: int) -> list[list[tuple[str, bool]]]:
    """Rows, top first, of a filled history from zero to ``top``: texts, and whether it is the edge.

    A known value draws at least the lowest eighth: zero differs from unknown, which is blank.
    ``height`` is at most 31 rows.
    """
    most = height * 8
    levels = bytes([_level(value, top, most) for value in values])
    rows = []
    for blocks, kinds in _drawings(height):
        text, kind = charmap_decode(levels, "strict", blocks)[0], levels.translate(kinds)
        rows.append(
            [
                (text[run.start() : run.end()], kind[run.start()] == _EDGE[0])
                for run in _RUNS.finditer(kind)
            ]
            or [("", False)]
        )
    return rows


def _level(value: float | None, top: float, most: int) -> int:
    if value is None:
        return 0
    if value >= top:
        return most
    return round(value / top * most) or 1 if value > 0 else 1


_BLANK, _INSIDE, _EDGE = b" ", b"i", b"e"
_RUNS = re.compile(rb"e[e ]*|[i ]+")
"""A blank takes the style of its neighbour: one style run where possible."""


@lru_cache(maxsize=64)
def _drawings(height: int) -> tuple[tuple[str, bytes], ...]:
    """For each row, top first, the block of every level in eighths of a row, and its kind."""
    found = []
    for row in range(height - 1, -1, -1):
        eighths = [level - 8 * row for level in range(8 * height + 1)]
        blocks = "".join(_BLOCKS[max(0, min(8, each))] for each in eighths)
        kinds = [_EDGE if 0 < each <= 8 else _INSIDE if each > 8 else _BLANK for each in eighths]
        found.append((blocks, b"".join(kinds).ljust(256)))
    return tuple(found)


@dataclass(frozen=True)
class Window:
    """A stretch of session time, cut into equal columns."""

    start: int
    end: int
    columns: int

    @property
    def column_ns(self) -> float:
        return max(1.0, (self.end - self.start) / max(1, self.columns))

    def edges(self) -> tuple[int, ...]:
        """The ``columns + 1`` borders in nanoseconds."""
        return _edges(self)


@lru_cache(maxsize=16)
def _edges(view: Window) -> tuple[int, ...]:
    """Several histories of one picture have the same."""
    step = view.column_ns
    return tuple(view.start + round(i * step) for i in range(view.columns + 1))


def window(t: int, seconds: int | None, columns: int, ended: bool = False) -> Window:
    """The stretch to draw at session time ``t``; ``seconds`` is ``None`` for all of it.

    A running view moves in jumps of a tenth, so that between two of them only the newest column of
    the picture changes.
    """
    if seconds is None or t <= seconds * NS:
        if ended:
            return Window(0, max(t, NS), columns)
        length = seconds if seconds is not None else longer(t / NS)
        return Window(0, length * NS, columns)
    if ended:
        return Window(t - seconds * NS, t, columns)
    jump = seconds * NS // 10
    end = -(-t // jump) * jump
    return Window(end - seconds * NS, end, columns)


def longer(seconds: float) -> int:
    """The first readable length that is not shorter."""
    for length in _DURATIONS[3:]:
        if seconds <= length:
            return length
    return int(seconds) + 1


def axis(view: Window, gap: int = 11) -> tuple[str, str]:
    """The time axis: a line with ticks, and their labels as time since the session's start."""
    line, labels = ["─"] * view.columns, [" "] * view.columns
    step = next((s for s in _DURATIONS if s * NS / view.column_ns >= gap), _DURATIONS[-1])
    at = -(-view.start // (step * NS)) * step
    free = 0
    while at * NS <= view.end:
        column = int((at * NS - view.start) / view.column_ns)
        label = clock_time(at)
        if column < view.columns:
            line[column] = "┬"
            if column >= free and column + len(label) <= view.columns:
                labels[column : column + len(label)] = label
                free = column + len(label) + 1
        at += step
    return "".join(line), "".join(labels)
