"""Bars and histories on a fixed scale, as text."""

from __future__ import annotations

import re
from codecs import charmap_decode
from collections.abc import Sequence
from functools import lru_cache

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.units import NS, duration

_BLOCKS = " ▁▂▃▄▅▆▇█"

_DURATIONS = (
    *(1, 2, 5, 10, 20, 30),
    *(60, 120, 300, 600, 1200, 1800),
    *(3600, 7200, 18000, 36000, 43200),
    *(86400, 2 * 86400, 5 * 86400, 10 * 86400, 20 * 86400, 50 * 86400, 100 * 86400),
)
"""Round lengths of a time axis in seconds."""


def bar(fraction: float | None, width: int) -> tuple[str, str]:
    """The filled (heavy) and the empty (light) part of a bar from 0 to 1."""
    if fraction is None:
        return "", "┄" * width
    halves = round(min(1.0, max(0.0, fraction)) * width * 2)
    full, half = divmod(halves, 2)
    filled = "━" * full + ("╸" if half else "")
    return filled, "─" * (width - len(filled))


def area(values: Sequence[float | None], top: float, height: int) -> list[list[tuple[str, bool]]]:
    """An area graph from zero to ``top``, as rows from the top, of texts and whether they are edge.

    A known value has at least one eighth of a row, an unknown one is blank. ``height``: at most
    31 rows.
    """
    maximum = height * 8
    levels = bytes([_level(value, top, maximum) for value in values])
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


def _level(value: float | None, top: float, maximum: int) -> int:
    if value is None:
        return 0
    if value >= top:
        return maximum
    return round(value / top * maximum) or 1 if value > 0 else 1


_BLANK, _INSIDE, _EDGE = b" ", b"i", b"e"
_RUNS = re.compile(rb"e[e ]*|[i ]+")
"""A blank has the style of its neighbour, for few runs of style."""


@lru_cache(maxsize=64)
def _drawings(height: int) -> tuple[tuple[str, bytes], ...]:
    """For each row from the top, the block of every level in eighths of a row, and its kind."""
    drawings = []
    for row in range(height - 1, -1, -1):
        eighths = [level - 8 * row for level in range(8 * height + 1)]
        blocks = "".join(_BLOCKS[max(0, min(8, n))] for n in eighths)
        kinds = [_EDGE if 0 < n <= 8 else _INSIDE if n > 8 else _BLANK for n in eighths]
        drawings.append((blocks, b"".join(kinds).ljust(256)))
    return tuple(drawings)


@dataclass(frozen=True)
class Window:
    """A period of session time in nanoseconds, divided into equal columns."""

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
    """Cached, because all histories of a snapshot share the window."""
    step = view.column_ns
    return tuple(view.start + round(i * step) for i in range(view.columns + 1))


def window(t: int, seconds: int | None, columns: int, ended: bool = False) -> Window:
    """The window at session time ``t`` in nanoseconds; ``seconds``: its length, ``None``: all.

    A live window moves in steps of a tenth of its length, so that usually only the newest column
    of a history changes.
    """
    if seconds is None or t <= seconds * NS:
        if ended:
            return Window(0, max(t, NS), columns)
        length = seconds if seconds is not None else readable_duration(t / NS)
        return Window(0, length * NS, columns)
    if ended:
        return Window(t - seconds * NS, t, columns)
    jump = seconds * NS // 10
    end = -(-t // jump) * jump
    return Window(end - seconds * NS, end, columns)


def readable_duration(seconds: float) -> int:
    """The next round length of a time axis in seconds."""
    for length in _DURATIONS[3:]:
        if seconds <= length:
            return length
    return int(seconds) + 1


def axis(view: Window, gap: int = 11) -> tuple[str, str]:
    """The time axis: a line with ticks, and their labels, lengths of session time."""
    line, labels = ["─"] * view.columns, [" "] * view.columns
    step = next((s for s in _DURATIONS if s * NS / view.column_ns >= gap), _DURATIONS[-1])
    at = -(-view.start // (step * NS)) * step
    free = 0
    while at * NS <= view.end:
        column = int((at * NS - view.start) / view.column_ns)
        label = duration(at)
        if column < view.columns:
            line[column] = "┬"
            if column >= free and column + len(label) <= view.columns:
                labels[column : column + len(label)] = label
                free = column + len(label) + 1
        at += step
    return "".join(line), "".join(labels)
