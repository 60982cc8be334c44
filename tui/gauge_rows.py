"""The large gauges as rows of text: the value at the left, its history at the right."""

from __future__ import annotations

from collections.abc import Mapping

from gpuwatch.metrics import Method
from gpuwatch.text import clean
from gpuwatch.tui.canvas import Line
from gpuwatch.tui.cells import wrap
from gpuwatch.tui.graph import Window, area, axis, bar
from gpuwatch.tui.snapshot import Gauge
from gpuwatch.units import UNKNOWN, percent, scale_label, si_parts

LABEL = 6
"""Columns of the scale's labels and its line."""

_DIGITS = {
    "0": ("┏━┓", "┃ ┃", "┗━┛"),
    "1": (" ┓ ", " ┃ ", " ╹ "),
    "2": ("╺━┓", "┏━┛", "┗━╸"),
    "3": ("╺━┓", " ━┫", "╺━┛"),
    "4": ("╻ ╻", "┗━┫", "  ╹"),
    "5": ("┏━╸", "┗━┓", "╺━┛"),
    "6": ("┏━╸", "┣━┓", "┗━┛"),
    "7": ("╺━┓", "  ┃", "  ╹"),
    "8": ("┏━┓", "┣━┫", "┗━┛"),
    "9": ("┏━┓", "┗━┫", "╺━┛"),
    ".": (" ", " ", "╸"),
    "-": ("  ", "╺╸", "  "),
    UNKNOWN: ("   ", "╺━╸", "   "),
}


_SHORT = {"utilization": "utilization", "flops": "est.", "bandwidth": "bandwidth"}
_SHORT_COUNTED = "alg. bytes"
"""Titles where a gauge has two rows."""
_SHORTEST = {"utilization": "busy", "bandwidth": "memory", "flops": "est."}
"""Titles where a gauge has one row."""


def _short(gauge: Gauge, titles: Mapping[str, str]) -> str:
    if gauge.key == "bandwidth" and gauge.reading.method is Method.COUNTED:
        return _SHORT_COUNTED
    return titles.get(gauge.key, gauge.title)


def value_width(width: int) -> int:
    """Columns of the value block."""
    return 34 if width >= 120 else 28


def graph_columns(width: int) -> int:
    """Columns of the history for a screen of that width."""
    return max(10, width - value_width(width) - LABEL)


def gauge_rows(gauge: Gauge, height: int, width: int) -> list[Line]:
    """One gauge in ``height`` rows."""
    left = value_width(width)
    # The last row of a high one stays empty, so that two histories never touch.
    drawn = height - 1 if height >= 7 else height
    block = _block(gauge, drawn, left - 2)
    graph = _graph(gauge, drawn, width - left)
    rows = [Line(width).add(" ").join(block[row]).to(left).join(graph[row]) for row in range(drawn)]
    return rows + [Line(width) for _ in range(height - drawn)]


def axis_row(view: Window, width: int) -> Line:
    """The time axis under the histories, labelled with the time since the session's start."""
    line, labels = axis(view)
    drawn = list(line.replace("┬", "┴"))
    for index, character in enumerate(labels):
        if character != " " and index + 1 < len(drawn):
            drawn[index + 1] = character
    row = Line(width).to(value_width(width) + LABEL - 1).add("└", "faint")
    run, role = "", "faint"
    for character in drawn:
        now = "muted" if character.isalnum() or character == ":" else "faint"
        if now != role:
            row.add(run, role)
            run, role = "", now
        run += character
    return row.add(run, role)


def value_parts(gauge: Gauge) -> tuple[str, str]:
    """The number and its unit, as shown."""
    if gauge.unit == "1":
        text = percent(gauge.reading.value)
        number, _, unit = text.partition(" ")
        return number, unit
    return si_parts(gauge.reading.value, gauge.unit)


def badge(gauge: Gauge) -> str:
    """How the number was obtained, and over what."""
    parts = [gauge.reading.method.value]
    if gauge.reading.method is not Method.UNAVAILABLE:
        if gauge.note:
            parts.append(gauge.note)
        if gauge.mean:
            parts.append("mean")
    known = any(value is not None for value in gauge.history)
    if gauge.reading.reason and known:
        parts.append(clean(gauge.reading.reason))
    return ", ".join(parts)


def _badge_role(gauge: Gauge) -> str:
    return "warn" if gauge.reading.method is Method.UNAVAILABLE else "muted"


def _block(gauge: Gauge, height: int, width: int) -> list[Line]:
    number, unit = value_parts(gauge)
    rows = [Line(width) for _ in range(height)]
    if height == 1:
        rows[0].add(f"{_short(gauge, _SHORTEST)} ", "text")
        rows[0].add(f"{number} {unit}".strip(), "strong")
        rows[0].add(f" {gauge.reading.method.value}", _badge_role(gauge))
        return rows
    if height < 6:
        rows[0].add(gauge.title, "text")
        if height == 2:
            rows[0] = Line(width).add(_short(gauge, _SHORT), "text")
            rows[0].end(f"{number} {unit}".strip(), "strong")
            rows[1].add(badge(gauge), _badge_role(gauge))
            return rows
        rows[1].add(f"{number} {unit}".strip(), "strong")
        _share(gauge, rows[1].to(10), width)
        rows[2].add(badge(gauge), _badge_role(gauge))
        return rows
    rows[0].add(gauge.title, "text")
    for row in range(3):
        for character in number:
            rows[1 + row].add(_DIGITS.get(character, ("", "", character))[row], gauge.key)
    rows[3].add(f" {unit}", "strong")
    _share(gauge, rows[4], width)
    rows[5].add(badge(gauge), _badge_role(gauge))
    return rows


def _share(gauge: Gauge, row: Line, width: int) -> None:
    """The share of the ceiling as a bar, where there is a ceiling."""
    if gauge.ceiling is None:
        return
    value = gauge.reading.value
    share = None if value is None else value / gauge.ceiling
    filled, empty = bar(share, max(4, width - row.used - 1))
    row.add(filled, gauge.key).add(empty, "faint")


def _graph(gauge: Gauge, height: int, width: int) -> list[Line]:
    columns = width - LABEL
    rows = [Line(width) for _ in range(height)]
    unavailable = gauge.reading.method is Method.UNAVAILABLE
    if unavailable and all(value is None for value in gauge.history):
        reason = clean(gauge.reading.reason or "")
        lines = wrap(reason, columns - 2, height)
        top = (height - len(lines)) // 2
        for row in rows:
            row.to(LABEL - 1).add("│", "faint")
        for index, text in enumerate(lines):
            rows[top + index].add(f" {text}", "muted")
        return rows
    drawn = area(gauge.history, gauge.scale, height)
    top_label = scale_label(gauge.scale, gauge.unit)
    for index, row in enumerate(rows):
        label = top_label if index == 0 else "0" if index == height - 1 else ""
        if height == 1:
            label = f"≤{top_label}"
        row.add(f"{label:>{LABEL - 1}}", "muted").add("┤" if label else "│", "faint")
        for text, edge in drawn[index]:
            row.add(text, gauge.key if edge else f"{gauge.key}-fill")
    return rows
