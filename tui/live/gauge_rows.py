"""The large gauges as rows of text: the value at the left, its history at the right."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache

from rich.cells import cell_len

from gpuwatch.core.metrics import Method
from gpuwatch.core.text import clean
from gpuwatch.core.units import UNKNOWN, percent
from gpuwatch.tui.feed.shares import fitting, over_texts, share_texts
from gpuwatch.tui.feed.snapshot import Gauge
from gpuwatch.tui.live.gauge_values import scale_end, value_parts
from gpuwatch.tui.widgets.cells import wrap
from gpuwatch.tui.widgets.graph import Window, area, axis, bar
from gpuwatch.tui.widgets.line import Line

LABEL = 6
"""Columns of the scale's labels and its line."""

DIGITS = {
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
    ".": (" ", " ", "▖"),
    "-": ("  ", "╺╸", "  "),
    "≤": ("  ", "  ", "≤ "),
    UNKNOWN: ("   ", "╺━╸", "   "),
}
"""Three rows of each character of a large number."""


EVENT = "◆"
"""The mark of an event on the time axis and beside its words."""

_SHORT = {
    "utilization": "utilization",
    "flops": "est.",
    "bandwidth": "bandwidth",
    "counted": "alg. bytes",
}
"""Titles where a gauge has two rows."""
_SHORTEST = {"utilization": "busy", "flops": "est.", "bandwidth": "memory", "counted": "bytes"}
"""Titles where a gauge has one row; ``counted``: of a counted bandwidth."""


def _short(gauge: Gauge, titles: Mapping[str, str]) -> str:
    counted = gauge.key == "bandwidth" and gauge.reading.method is Method.COUNTED
    return titles.get("counted" if counted else gauge.key, gauge.title)


def value_width(width: int) -> int:
    """Columns of the value block."""
    return 34 if width >= 120 else 28


def graph_columns(width: int) -> int:
    """Columns of the history for a screen of that width."""
    return max(10, width - value_width(width) - LABEL)


@lru_cache(maxsize=16)
def gauge_rows(gauge: Gauge, height: int, width: int) -> tuple[Line, ...]:
    """One gauge in ``height`` rows; of a gauge that did not change the same rows again."""
    left = value_width(width)
    # The last row of a high one stays empty, so that two histories never touch.
    drawn = height - 1 if height >= 7 else height
    block = _block(gauge, drawn, left - 2)
    graph = _graph(gauge, drawn, width - left)
    rows = [Line(width).add(" ").join(block[row]).to(left).join(graph[row]) for row in range(drawn)]
    return (*rows, *(Line(width) for _ in range(height - drawn)))


def axis_row(view: Window, width: int, marks: Collection[int] = ()) -> Line:
    """The time axis under the histories, labelled with the time since the session's start.

    ``marks``: columns in which an event happened; a label that would cover one is left out.
    """
    return _axis_row(view, width, frozenset(marks))


@lru_cache(maxsize=16)
def _axis_row(view: Window, width: int, marks: frozenset[int]) -> Line:
    line, labels = axis(view)
    drawn = list(line.replace("┬", "┴"))
    for found in re.finditer(r"[^ ]+", labels):
        if found.end() < len(drawn) and not any(
            found.start() < mark <= found.end() for mark in marks
        ):
            drawn[found.start() + 1 : found.end() + 1] = found.group()
    for mark in marks:
        drawn[mark] = EVENT
    row = Line(width).to(value_width(width) + LABEL - 1).add("└", "faint")
    run, role = "", "faint"
    for character in drawn:
        now = "faint" if character in "─┴" else "warn" if character == EVENT else "muted"
        if now != role:
            row.add(run, role)
            run, role = "", now
        run += character
    return row.add(run, role)


def badge(gauge: Gauge, width: int) -> str:
    """How the number was obtained, over what, and what is odd about it, in ``width`` cells."""
    plain = _badge(gauge, width)
    odd = over_texts(gauge)
    whole = [f"{plain}, {text}" for text in odd]
    return fitting([*whole, *(f"{gauge.reading.method.value}, {text}" for text in odd)], width) or (
        plain
    )


def mean_text(gauge: Gauge) -> str:
    """What a mean is of: ``timed steps, mean``, ``mean of the last 10 s``; empty: it is none."""
    if not gauge.mean:
        return ""
    if gauge.over.startswith("last"):
        return f"mean of the {gauge.over}"
    return f"{gauge.over}, mean" if gauge.over else "mean"


def _badge(gauge: Gauge, width: int) -> str:
    """How the number was obtained, and over what, in ``width`` cells if that can be."""
    whole = _parts(gauge, mean_text(gauge))
    return whole if cell_len(whole) <= width else _parts(gauge, gauge.over or mean_text(gauge))


def _parts(gauge: Gauge, mean: str) -> str:
    bound = gauge.reading.method is Method.BOUND
    parts = ["bound: at most" if bound else gauge.reading.method.value]
    if gauge.covered is not None:
        return f"{parts[0]}, {percent(gauge.covered)} of the time"
    if bound:
        return f"{parts[0]}, {mean}" if mean else parts[0]
    if gauge.reading.method is not Method.UNAVAILABLE:
        if gauge.note:
            parts.append(gauge.note)
        if mean:
            parts.append(mean)
    if gauge.reading.reason and _drawn(gauge):
        parts.append(clean(gauge.reading.reason))
    return ", ".join(parts)


def _drawn(gauge: Gauge) -> bool:
    """A history is drawn, so that a reason has no place there."""
    return any(value is not None for value in gauge.history)


def _silent(gauge: Gauge) -> bool:
    """The value went away during the run: the reason stands under its title."""
    unavailable = gauge.reading.method is Method.UNAVAILABLE
    return unavailable and bool(gauge.reading.reason) and _drawn(gauge)


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
    if height > 2 and _silent(gauge):
        rows[0].add(gauge.title, "text").end(UNKNOWN, "strong")
        _say(rows[1:], wrap(_badge(gauge, width), width, height - 1), "warn")
        return rows
    if height < 6:
        rows[0].add(gauge.title, "text")
        if height == 2:
            rows[0] = Line(width).add(_short(gauge, _SHORT), "text")
            rows[0].end(f"{number} {unit}".strip(), "strong")
            told = fitting(share_texts(gauge), width - len(gauge.reading.method.value) - 1)
            rows[1].add(badge(gauge, width - len(told) - bool(told)), _badge_role(gauge))
            if told:
                rows[1] = Line(width).add(gauge.reading.method.value, _badge_role(gauge))
                rows[1].end(told, "text")
            return rows
        rows[1].add(f"{number} {unit}".strip(), "strong")
        below = _told(gauge, width, height - 3)
        if gauge.against is None:
            _share(gauge, rows[1].to(10), width)
        else:
            told = "" if below else fitting(share_texts(gauge), rows[1].left - 1)
            rows[1].end(told, "text")
            if not told and height == 3:
                told = fitting(share_texts(gauge), width - len(f"{gauge.reading.method.value}, "))
                beside = f"{gauge.reading.method.value}, {told}" if told else badge(gauge, width)
                rows[2].add(beside, _badge_role(gauge))
                return rows
        rows[2].add(badge(gauge, width), _badge_role(gauge))
        _say(rows[3:], below)
        return rows
    rows[0].add(gauge.title, "text")
    for row in range(3):
        for character in number:
            rows[1 + row].add(DIGITS.get(character, ("", "", character))[row], gauge.key)
    rows[3].add(f" {unit}", "strong")
    _share(gauge, rows[4], width)
    rows[5].add(badge(gauge, width), _badge_role(gauge))
    odd = _below(gauge, width) if height > 6 else ""
    if odd:
        rows[5] = Line(width).add(_badge(gauge, width), _badge_role(gauge))
    below = _told(gauge, width, height - 6 - bool(odd))
    if not below and gauge.against is not None:
        # No room below: the words stand in place of the bar.
        rows[4] = Line(width).add(fitting(share_texts(gauge), width), "text")
    _say(rows[6:], [*below, odd] if odd else below)
    return rows


def _below(gauge: Gauge, width: int) -> str:
    """What is odd, where it is said whole only in a row of its own."""
    odd = over_texts(gauge)
    beside = f"{_badge(gauge, width)}, {odd[0]}" if odd else ""
    return fitting(odd, width) if odd and len(beside) > width else ""


def _say(rows: list[Line], texts: list[str], role: str = "text") -> None:
    for row, text in zip(rows, texts, strict=False):
        row.add(text, role)


def _told(gauge: Gauge, width: int, lines: int) -> list[str]:
    """The share in words in ``lines`` lines, the longest way that fits as a whole."""
    for text in share_texts(gauge) if lines > 0 else ():
        rows = wrap(text, width, lines + 1)
        if len(rows) <= lines:
            return rows
    return []


def _share(gauge: Gauge, row: Line, width: int) -> None:
    """The share of the ceiling as a bar, where there is a ceiling."""
    if gauge.ceiling is None:
        return
    filled, empty = bar(gauge.share, max(4, width - row.used - 1))
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
    top_label = scale_end(gauge.scale, gauge.unit, LABEL)
    mark = _ceiling_row(gauge, height)
    for index, row in enumerate(rows):
        label = top_label if index == 0 else "0" if index == height - 1 else ""
        if height == 1:
            label = top_label
        elif index == mark:
            label = scale_end(gauge.ceiling or 0.0, gauge.unit, LABEL)
        tick = "╪" if index == mark else "┤" if label else "│"
        row.add(f"{label:>{LABEL - 1}}", "muted").add(tick, "key" if index == mark else "faint")
        for text, edge in drawn[index]:
            row.add(text, gauge.key if edge else f"{gauge.key}-fill")
    return rows


def _ceiling_row(gauge: Gauge, height: int) -> int | None:
    """The row of the ceiling on the scale; ``None`` where it lies beyond, or there is no room."""
    if gauge.against is None or height < 2 or gauge.against.value > gauge.scale:
        return None
    return min(height - 2, height - 1 - int(gauge.against.value / gauge.scale * height * 0.999))
