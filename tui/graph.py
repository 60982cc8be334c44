"""Bars and histories on a fixed scale, as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from gpuwatch.units import NS, clock_time

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
    """
    levels = [
        0 if value is None else max(1, round(min(1.0, max(0.0, value / top)) * height * 8))
        for value in values
    ]
    rows = []
    for cells in zip(*(_column(level, height) for level in levels), strict=True):
        spans: list[tuple[str, bool]] = []
        text, edge = "", cells[0][1]
        for block, is_edge in cells:
            # A blank takes the style of its neighbour: one style run where possible.
            if is_edge != edge and block != " ":
                spans.append((text, edge))
                text, edge = "", is_edge
            text += block
        rows.append([*spans, (text, edge)])
    return rows or [[] for _ in range(height)]


@lru_cache(maxsize=1024)
def _column(level: int, height: int) -> tuple[tuple[str, bool], ...]:
    """The cells of one column, top first, for a level in eighths of a row."""
    eighths = [level - 8 * row for row in range(height - 1, -1, -1)]
    return tuple((_BLOCKS[max(0, min(8, each))], 0 < each <= 8) for each in eighths)


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
