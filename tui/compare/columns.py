"""Quantities side by side: a column for each session or cell, with ratios and changes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len

from gpuwatch.analysis.comparison import difference_text
from gpuwatch.analysis.comparison.comparison_row import ComparisonRow
from gpuwatch.analysis.comparison.quantity_table import QuantityRow, quantity_table
from gpuwatch.analysis.results import Difference, TableRow
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.text import clean
from gpuwatch.tui.live.rows import rule
from gpuwatch.tui.widgets.cells import fit, pad, wrap
from gpuwatch.tui.widgets.line import Line

_METHOD = 10
"""Columns of the method at the end of a row."""
_RATIO, _NARROW_RATIO = 10, 8
"""Columns of a ratio with a blank on either side: alone, and before a paired change."""
_NARROW_NAME, _NARROW_VALUE = 21, 12
"""Columns of the names and of a value, at least, beside paired changes."""
_PAIRED = "paired change, %"
_NARROWEST, _WIDE = 21, 30
"""Columns of a session: at least, and at most unless its name is longer."""
_NAME, _WIDEST_NAME = 27, 46
"""Columns of the names: at least, and where there is room."""
_MOST_ROWS = 12
"""Of one fact that differs: more is no setting that a person compares."""
_NO_BREAK = "\ue000"
"""For a blank at which no line is broken; cleaned text has none of these."""
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=\S{1,3}(?:[\s,.;:)]|$))")
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
    value: int
    """Columns of a value."""
    ratio: int
    """Columns of a ratio."""
    change: int
    """Columns of a paired change; 0 without any."""
    method: bool
    """Whether there is room for the methods."""
    order: tuple[int, ...]
    """Places of the sessions that are shown."""
    hidden: int
    """How many are not."""
    baseline: int | None
    """Place of the one that ratios are against."""

    def size(self, at: int) -> int:
        """Columns of one session or cell: its value, ratio and change."""
        if self.change and at == self.baseline:
            return self.value + 1
        return self.value + self.ratio + self.change


def layout(heads: Sequence[Head], baseline: int | None, width: int, first: int) -> Layout:
    """The baseline always, of the others as many as fit from the ``first`` on, in their order."""
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
    """The columns of ``count`` cells; all but the baseline also have one for ``changes``."""
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
    """``+3.1 (+2.4 to +3.8)``, below a heading that has the unit."""
    return change.replace(" %", "", 1)


def _order(
    count: int, baseline: int | None, others: int, first: int
) -> tuple[tuple[int, ...], int]:
    """Places of the baseline and of ``others`` from the ``first`` on; how many are left out."""
    base = baseline or 0
    rest = [at for at in range(count) if at != base]
    hidden = len(rest) - others
    first = max(0, min(first, hidden))
    return tuple(sorted([base, *rest[first : first + others]])), hidden


def heading_rows(
    heads: Sequence[Head], place: Layout, names: Sequence[str] = ("", "", "")
) -> tuple[Line, ...]:
    """What stands over the columns; ``names`` say what its lines are."""
    rows = []
    for index in range(max(map(len, heads), default=0)):
        row = Line(place.width).add(f" {names[index]}", "muted").to(place.name)
        for at in place.order:
            text, role = heads[at][index]
            size, last = place.size(at), index == len(heads[at]) - 1
            # Over the values where it fits; a longer one reaches over the ratios too.
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
    """Quantities by group, of the columns that are shown."""
    lines: list[Line] = []
    for group in quantity_table(rows, place.baseline, place.order):
        lines.append(rule(group.name, place.width))
        lines += [_quantity(row, place) for row in group.rows]
    return lines


def difference_rows(
    differences: Iterable[Difference], place: Layout, names: Sequence[str]
) -> list[Line]:
    """What is not the same around the runs, whole; ``names`` are those of the columns.

    Where a value does not fit into its column, all of them stand below, each behind whose it is.
    """
    rows = [rule("what differs around the runs", place.width)]
    for difference in differences:
        name = clean(difference_text.name(difference))
        values = difference_text.texts(difference)
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
    """One difference below its name; those of one value stand together."""
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
    """A sentence behind a mark; a number and its unit stand on one line.

    ``head``: what stands before the sentence, in the mark's colour.
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
    line = Line(place.width).add(f" {pad(row.name, place.name - 1)}", "text")
    for at, cell in zip(place.order, row.cells, strict=True):
        text = cell.value
        if cell_len(text) > place.value:
            text = text.replace(" ", "")
        line.add(pad(text, place.value, ">"), "strong" if cell.is_known else "muted")
        if place.change and at == place.baseline:
            line.add(" ")
            continue
        line.add(f" {pad(cell.ratio, place.ratio - 2)} ", "text")
        line.add(
            pad(_in_per_cent(cell.change), place.change), "key" if cell.is_changed else "muted"
        )
    return line.add(row.method if place.method else "", "muted")
