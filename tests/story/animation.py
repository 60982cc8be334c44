"""A recording of a terminal as one SVG that plays it, without a script and without end.

Each row of the screen is drawn once for each of its contents and shown while it stood there: most
rows of a screen stay for long.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from tests.tui.picture import CELL, FONTS, MARGIN, ROW, SIZE, segment_parts

from .recording import BACK, Row, frames

_EVERY, _END = 0.4, 3.0
"""Seconds between two pictures, and that the last one stays."""


def animate(recording: Path) -> str:
    """The SVG of a recording."""
    shown = list(frames(recording, _EVERY))
    length = shown[-1][0] + _END
    times = [seconds for seconds, _ in shown]
    pictures = [rows for _, rows in shown]
    columns = sum(segment.cell_length for segment in pictures[0][0])
    width, height = columns * CELL + 2 * MARGIN, len(pictures[0]) * ROW + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'font-family="{FONTS}" font-size="{SIZE:g}">',
        "<title>a recording of gpuwatch in a terminal</title>",
        f'<rect width="{width:g}" height="{height:g}" rx="8" fill="{BACK}"/>',
    ]
    for y in range(len(pictures[0])):
        parts += _row(y, [rows[y] for rows in pictures], times, length)
    return "\n".join(part for part in [*parts, "</svg>"] if part) + "\n"


def _row(y: int, showed: Sequence[Row], times: Sequence[float], length: float) -> list[str]:
    """All that one row ever showed, each with the times at which it did."""
    seen: dict[Row, list[tuple[float, float]]] = {}
    at = 0
    for row, group in groupby(showed):
        start = times[at]
        at += len(list(group))
        seen.setdefault(row, []).append((start, times[at] if at < len(times) else length))
    parts = []
    for row, spans in seen.items():
        drawn = _drawn(row, y)
        if drawn:
            parts += ["<g>", _timing(spans, length), *drawn, "</g>"]
    return parts


def _drawn(row: Row, y: int) -> list[str]:
    parts: list[str] = []
    x = 0
    for segment in row:
        parts += segment_parts(segment.text, segment.style, x, y, BACK)
        x += segment.cell_length
    return parts


def _timing(spans: Sequence[tuple[float, float]], length: float) -> str:
    """When a group is shown: ``display`` switched at shares of the whole length."""
    keys, values = [0.0], ["none"]
    for start, end in spans:
        for moment, value in ((start, "inline"), (end, "none")):
            share = round(moment / length, 5)
            if share >= 1:
                continue
            if share <= keys[-1]:
                values[-1] = value
            else:
                keys.append(share)
                values.append(value)
    if values == ["inline"]:
        return ""
    return (
        f'<animate attributeName="display" dur="{length:.2f}s" repeatCount="indefinite" '
        f'calcMode="discrete" keyTimes="{";".join(f"{key:g}" for key in keys)}" '
        f'values="{";".join(values)}"/>'
    )
