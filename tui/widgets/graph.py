"""Bars and histories on a fixed scale, as text."""

from __future__ import annotations

import re
from codecs import charmap_decode
from collections.abc import Sequence
from functools import lru_cache

_BLOCKS = " ▁▂▃▄▅▆▇█"


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
