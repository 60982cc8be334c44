"""A table with a column of values, ratios and changes for each session or cell."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len

from gpuwatch.analysis.comparison.comparison_row import ComparisonRow
from gpuwatch.analysis.comparison.quantity_table import (
    QuantityRow,
    difference_name,
    difference_texts,
    quantity_table,
)
from gpuwatch.analysis.results import Difference, TableRow
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.text import clean
from gpuwatch.tui.live.rows import rule
from gpuwatch.tui.widgets.cells import fit, pad, wrap
from gpuwatch.tui.widgets.line import Line

_METHOD = 10
"""Width of the method at the end of a row."""
_RATIO, _NARROW_RATIO = 10, 8
"""Width of a ratio with a blank on either side: alone, and before a paired change."""
_NARROW_NAME, _NARROW_VALUE = 21, 12
"""Least widths of the names and of a value, in a table with paired changes."""
_PAIRED = "paired change, %"
_NARROWEST, _WIDE = 21, 30
"""Least width of a session's column, and the most unless its name is longer."""
_NAME, _WIDEST_NAME = 27, 46
"""Widths of the names: the least, and the most."""
_SHORTER = (
    ("95th percentile", "p95"),
    ("FLOP per byte", "FLOP/B"),
    ("algorithmic bytes", "alg. bytes"),
    ("device memory traffic", "traffic"),
    ("copies from host to device", "copies to device"),
    ("data-sheet peak", "sheet peak"),
    ("measured copy", "copy"),
    ("measured product", "product"),
    ("memory bandwidth", "bandwidth"),
    ("alg. bytes", "bytes"),
)
"""Words of a name, and shorter ones; the first are taken first where a name is too long."""
_MOST_ROWS = 12
"""Most rows of one value that differs; longer ones are not settings that people compare."""
_NO_BREAK = "\ue000"
"""A blank that is not broken at; cleaned text does not contain this character."""
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=\S{1,3}(?:[\s,.;:)]|$))")
Head = Sequence[tuple[str, str]]
"""The heading of a column: text and colour role of each line."""


@dataclass(frozen=True)
class Section:
    """Rows under a heading, which stays in sight while any of them is visible."""

    heading: tuple[Line, ...]
    body: tuple[Line, ...]


@dataclass(frozen=True)
class Layout:
    """The columns of a table; widths in cells of the terminal."""

    width: int
    name: int
    """Width of the names."""
    value: int
    """Width of a value."""
    ratio: int
    """Width of a ratio."""
    change: int
    """Width of a paired change; 0: there are none."""
    method: bool
    """Whether the methods fit."""
    order: tuple[int, ...]
    """Indices of the visible sessions or cells."""
    hidden: int
    """Number of the others."""
    baseline: int | None
    """Index of the baseline of the ratios."""

    def size(self, at: int) -> int:
        """Width of session or cell ``at``: value, ratio and change."""
        if self.change and at == self.baseline:
            return self.value + 1
        return self.value + self.ratio + self.change


def layout(heads: Sequence[Head], baseline: int | None, width: int, first: int) -> Layout:
    """The baseline, and as many of the others as fit, from the ``first`` on, in order."""
    name = _NAME if width < 120 else _WIDEST_NAME
    room = width - name - _METHOD
    fitting = max(1, min(len(heads), room // _NARROWEST))
    widest = max((cell_len(text) for cells in heads for text, _ in cells), default=0)
    size = max(_NARROWEST, min(max(_WIDE, widest + 2), room // fitting))
    order, hidden = _order(len(heads), baseline, fitting - 1, first)
    spare = width - name - _METHOD - size * len(order)
    wide = min(_WIDEST_NAME, name + max(0, spare))
    return Layout(width, wide, size - _RATIO, _RATIO, 0, True, order, hidden, baseline)


def paired_layout(
    count: int, baseline: int, width: int, first: int, changes: Iterable[str]
) -> Layout:
    """The columns of ``count`` cells; all but the baseline have room for ``changes``."""
    change = max([len(_PAIRED), *(cell_len(_in_per_cent(text)) for text in changes)]) + 1
    size = _NARROW_VALUE + _NARROW_RATIO + change
    least = _NARROW_NAME + _NARROW_VALUE + 1
    others = max(1, min(count - 1, (width - least) // size))
    order, hidden = _order(count, baseline, others, first)
    spare = max(0, width - least - size * others)
    method = spare >= _METHOD
    name = _NARROW_NAME + min(_WIDEST_NAME - _NARROW_NAME, spare - _METHOD * method)
    return Layout(
        width, name, _NARROW_VALUE, _NARROW_RATIO, change, method, order, hidden, baseline
    )


def _in_per_cent(change: str) -> str:
    """``+3.1 (+2.4 to +3.8)``, without the unit, which is in the heading."""
    return change.replace(" %", "", 1)


def _order(
    count: int, baseline: int | None, others: int, first: int
) -> tuple[tuple[int, ...], int]:
    """Indices of the baseline and of ``others`` from the ``first`` on; the number left out."""
    base = baseline or 0
    rest = [at for at in range(count) if at != base]
    hidden = len(rest) - others
    first = max(0, min(first, hidden))
    return tuple(sorted([base, *rest[first : first + others]])), hidden


def heading_rows(
    heads: Sequence[Head], place: Layout, names: Sequence[str] = ("", "", "")
) -> tuple[Line, ...]:
    """The heading over the columns; ``names`` are those of its lines."""
    rows = []
    for index in range(max(map(len, heads), default=0)):
        row = Line(place.width).add(f" {names[index]}", "muted").to(place.name)
        for at in place.order:
            text, role = heads[at][index]
            size, last = place.size(at), index == len(heads[at]) - 1
            # Right-aligned over the values; a longer text extends over the ratios too.
            reach = place.value if cell_len(text) <= place.value else size - 1
            if last and place.change and at != place.baseline:
                row.add(pad(pad(text, place.value, ">"), size - place.change), role)
                row.add(pad(_PAIRED, place.change), "muted")
            else:
                row.add(pad(pad(text, reach, ">"), size), role)
        rows.append(row)
    if rows and place.method:
        rows[-1].add("method", "muted")
    return tuple(rows)


def quantity_rows(rows: Sequence[ComparisonRow] | Sequence[TableRow], place: Layout) -> list[Line]:
    """The quantities by group, for the visible columns."""
    lines: list[Line] = []
    for group in quantity_table(rows, place.baseline, place.order):
        lines.append(rule(group.name, place.width))
        lines += [_quantity(row, place) for row in group.rows]
    return lines


def difference_rows(
    differences: Iterable[Difference], place: Layout, names: Sequence[str]
) -> list[Line]:
    """The settings that differ, in full; ``names`` are those of the columns.

    If a value does not fit into its column, all are listed below, each after its column's name.
    """
    rows = [rule("what differs around the runs", place.width)]
    for difference in differences:
        name = clean(difference_name(difference))
        values = difference_texts(difference)
        texts = [clean(values[at]) for at in place.order]
        fits = all(
            cell_len(text) <= place.size(at) - 2
            for at, text in zip(place.order, texts, strict=True)
        )
        if fits and cell_len(name) <= place.name - 2:
            row = Line(place.width).add(f" {pad(name, place.name - 2)} ", "text")
            for at, text in zip(place.order, texts, strict=True):
                row.add(pad(text, place.size(at) - 2, ">") + "  ", "strong")
            rows.append(row)
        else:
            rows += _whole(name, dict(zip(place.order, texts, strict=True)), names, place.width)
    if len(rows) == 1:
        rows.append(Line(place.width).add(" nothing that was recorded", "muted"))
    return rows


def _whole(name: str, texts: dict[int, str], names: Sequence[str], width: int) -> Iterator[Line]:
    """One difference below its name; columns with the same value share a row."""
    yield Line(width).add(f" {name}")
    by_text: dict[str, list[int]] = {}
    for at, text in texts.items():
        by_text.setdefault(text, []).append(at)
    for text, places in by_text.items():
        labels = ", ".join(clean(names[at]) for at in places)
        lead = Line(width).add(f"   {fit(labels, width // 3)}  ", "muted")
        for index, part in enumerate(wrap(text, max(1, lead.left - 1), _MOST_ROWS)):
            row = Line(width).join(lead) if index == 0 else Line(width).to(lead.used)
            yield row.add(part, "strong")


def sentence_rows(text: str, width: int, mark: str, role: str, *, head: str = "") -> list[Line]:
    """A sentence after a mark, wrapped; a number is not separated from its unit.

    ``head``: text before the sentence, in the mark's colour.
    """
    parts = wrap(_BEFORE_UNIT.sub(_NO_BREAK, f"{head}{clean(text)}"), width - 5, 6)
    rows = []
    for index, part in enumerate(parts):
        row = Line(width).add("   " if index else f" {mark} ", role)
        line = part.replace(_NO_BREAK, " ")
        if index == 0 and head:
            row.add(line[: len(head)], role)
            line = line[len(head) :]
        rows.append(row.add(line))
    return rows


def _quantity(row: QuantityRow, place: Layout) -> Line:
    values = [_value(cell.value, place.value) for cell in row.cells]
    # A name may reach into the blank before the first value.
    room = place.name + place.value - cell_len(values[0]) - 1
    line = Line(place.width).add(f" {fit(_shortened(row.name, room - 1), room - 1)}", "text")
    line.to(place.name + place.value - cell_len(values[0]))
    for index, (at, cell) in enumerate(zip(place.order, row.cells, strict=True)):
        text = pad(values[index], place.value, ">") if index else values[index]
        line.add(text, "strong" if cell.is_known else "muted")
        if place.change and at == place.baseline:
            line.add(" ")
            continue
        line.add(f" {pad(cell.ratio, place.ratio - 2)} ", "text")
        line.add(
            pad(_in_per_cent(cell.change), place.change), "key" if cell.is_changed else "muted"
        )
    return line.add(row.method if place.method else "", "muted")


def _value(text: str, width: int) -> str:
    return text if cell_len(text) <= width else fit(text.replace(" ", ""), width)


def _shortened(name: str, width: int) -> str:
    """The name, with shorter words as far as it is too long."""
    for long, short in _SHORTER:
        if cell_len(name) > width:
            name = name.replace(long, short)
    return name
