"""Quantities side by side: a column for each session or cell, ratios against the baseline."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.cells import cell_len

from gpuwatch.analysis.compare import Difference
from gpuwatch.analysis.results import TableRow
from gpuwatch.analysis.row import Row
from gpuwatch.metrics import Method
from gpuwatch.text import clean
from gpuwatch.tui.canvas import Line
from gpuwatch.tui.cells import pad, wrap
from gpuwatch.tui.live_rows import rule
from gpuwatch.tui.numbers import shown
from gpuwatch.units import UNKNOWN, clock_time, fact, joules, milliseconds, si

_METHOD = 10
"""Columns of the method at the end of a row."""
_RATIO = 10
"""Columns of a ratio with a blank on either side."""
_NARROWEST, _WIDE = 21, 30
"""Columns of a session: at least, and at most unless its name is longer."""
_NAME, _WIDEST_NAME = 27, 46
"""Columns of the names: at least, and where there is room."""
_STUCK = "\ue000"
"""For a blank at which no line is broken; cleaned text has none of these."""
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=\S{1,3}(?:[\s,.;:)]|$))")
_WORDS = {"gpu": "GPU", "cpu": "CPU", "sm": "SM", "pcie": "PCIe"}
_LABELS = {
    "hw.memory.usage": "host memory usage",
    "step time, 95th percentile": "step time, 95th pct.",
    "gpuwatch.flop.rate": "FLOP/s",
    "gpuwatch.bytes.rate": "algorithmic bytes/s",
    "gpuwatch.throughput": "samples/s",
}

Head = Sequence[tuple[str, str]]
"""Lines over a column, each with the role of its colour."""


@dataclass(frozen=True)
class Section:
    """Rows that scroll under a heading that stays while any of them is seen."""

    heading: tuple[Line, ...]
    body: tuple[Line, ...]


@dataclass(frozen=True)
class Layout:
    """Where everything stands at one width."""

    width: int
    name: int
    """Columns of the names."""
    size: int
    """Columns of one session: its value and its ratio."""
    order: tuple[int, ...]
    """Places of the sessions that are shown."""
    hidden: int
    """How many are not."""
    baseline: int | None
    """Place of the one that ratios are against."""

    @property
    def value(self) -> int:
        """Columns of a value."""
        return self.size - _RATIO


def layout(heads: Sequence[Head], baseline: int | None, width: int, first: int) -> Layout:
    """The baseline always, of the others as many as fit from the ``first`` on, in their order."""
    name = _NAME if width < 120 else _WIDEST_NAME
    room = width - name - _METHOD
    fitting = max(1, min(len(heads), room // _NARROWEST))
    widest = max((cell_len(text) for cells in heads for text, _ in cells), default=0)
    size = max(_NARROWEST, min(max(_WIDE, widest + 2), room // fitting))
    kept = baseline or 0
    rest = [at for at in range(len(heads)) if at != kept]
    hidden = len(rest) - (fitting - 1)
    first = max(0, min(first, hidden))
    order = sorted([kept, *rest[first : first + len(rest) - hidden]])
    spare = width - name - _METHOD - size * len(order)
    wide = min(_WIDEST_NAME, name + max(0, spare))
    return Layout(width, wide, size, tuple(order), hidden, baseline)


def heading_rows(
    heads: Sequence[Head], place: Layout, names: Sequence[str] = ("", "", "")
) -> tuple[Line, ...]:
    """What stands over the columns; ``names`` say what its lines are."""
    rows = []
    for index in range(max(map(len, heads), default=0)):
        row = Line(place.width).add(f" {names[index]}", "muted").to(place.name)
        for at in place.order:
            text, role = heads[at][index]
            # Over the values where it fits; a longer one reaches over the ratios too.
            reach = place.value if cell_len(text) <= place.value else place.size - 1
            row.add(pad(pad(text, reach, ">"), place.size), role)
        rows.append(row)
    if rows:
        rows[-1].add("method", "muted")
    return tuple(rows)


def quantity_rows(rows: Sequence[Row] | Sequence[TableRow], place: Layout) -> list[Line]:
    """Quantities by group, of the columns that are shown."""
    found: list[Line] = []
    seen = [row for row in rows if any(row.values[at] is not None for at in place.order)]
    for group, of_group in groupby(seen, key=lambda row: row.group):
        found.append(rule(clean(group), place.width))
        found += [_quantity(row, place) for row in of_group]
    return found


def difference_rows(differences: Iterable[Difference], place: Layout) -> list[Line]:
    """What is not the same around the runs."""
    rows = [rule("what differs around the runs", place.width)]
    for difference in differences:
        name = f"{clean(difference.scope)}: {clean(difference.key)}"
        row = Line(place.width).add(f" {pad(name, place.name - 2)} ", "text")
        for at in place.order:
            text = clean(fact(difference.key, difference.values[at]))
            row.add(pad(text, place.size - 2, ">") + "  ", "strong")
        rows.append(row)
    if len(rows) == 1:
        rows.append(Line(place.width).add(" nothing that was recorded", "muted"))
    return rows


def told_rows(text: str, width: int, mark: str, role: str) -> list[Line]:
    """A sentence behind a mark; a number and its unit stand on one line."""
    parts = wrap(_BEFORE_UNIT.sub(_STUCK, clean(text)), width - 5, 6)
    return [
        Line(width).add("   " if index else f" {mark} ", role).add(part.replace(_STUCK, " "))
        for index, part in enumerate(parts)
    ]


def _quantity(row: Row | TableRow, place: Layout) -> Line:
    line = Line(place.width).add(f" {pad(_label(row), place.name - 2)} ", "text")
    for at in place.order:
        value, ratio = row.values[at], row.ratios[at]
        role = "muted" if value is None else "strong"
        text = si(value, "B") if row.is_traffic else _value(value, row.unit)
        if cell_len(text) > place.value:
            text = text.replace(" ", "")
        line.add(pad(text, place.value, ">"), role)
        shown_ratio = "" if at == place.baseline or ratio is None else _ratio(ratio)
        line.add(f" {pad(shown_ratio, _RATIO - 2)} ", "text")
    methods = [row.methods[at] for at in place.order]
    known = dict.fromkeys(m.value for m in methods if m is not Method.UNAVAILABLE)
    return line.add("/".join(known) or Method.UNAVAILABLE.value, "muted")


def _ratio(value: float) -> str:
    """At most eight characters between a millionth and a million."""
    if 0.0995 < value < 1000:
        return f"×{value:.3f}"
    return f"×{value:,.0f}" if 1000 <= value < 1e6 else f"×{value:.2g}"


def _label(row: Row | TableRow) -> str:
    name = clean(row.name)
    if name in _LABELS or "." not in name:
        return _LABELS.get(name, name)
    words = name.removeprefix("hw.").split(".")
    return " ".join(_WORDS.get(word, word) for word in words)


def _value(value: float | None, unit: str) -> str:
    if value is None:
        return UNKNOWN
    if unit == "s":
        return milliseconds(value) if value < 60 else clock_time(value)
    if unit == "{sample}/s":
        return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
    if unit == "{step}":
        return f"{value:,.0f}"
    if unit == "J":
        return joules(value)
    if unit == "FLOP/By":
        return f"{value:.3g} FLOP/B" if value < 1000 else f"{value:,.0f} FLOP/B"
    return shown(value, unit)
