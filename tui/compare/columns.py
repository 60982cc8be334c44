"""Quantities side by side: a column for each session or cell, ratios against the baseline."""

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
_RATIO = 10
"""Columns of a ratio with a blank on either side."""
_NARROWEST, _WIDE = 21, 30
"""Columns of a session: at least, and at most unless its name is longer."""
_NAME, _WIDEST_NAME = 27, 46
"""Columns of the names: at least, and where there is room."""
_MOST_ROWS = 12
"""Of one fact that differs: more is no setting that a person compares."""
_STUCK = "\ue000"
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


def quantity_rows(rows: Sequence[ComparisonRow] | Sequence[TableRow], place: Layout) -> list[Line]:
    """Quantities by group, of the columns that are shown."""
    found: list[Line] = []
    for group in quantity_table(rows, place.baseline, place.order):
        found.append(rule(group.name, place.width))
        found += [_quantity(row, place) for row in group.rows]
    return found


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
        fits = all(cell_len(text) <= place.size - 2 for text in texts)
        if fits and cell_len(name) <= place.name - 2:
            row = Line(place.width).add(f" {pad(name, place.name - 2)} ", "text")
            for text in texts:
                row.add(pad(text, place.size - 2, ">") + "  ", "strong")
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
    for text, of in by_text.items():
        whose = ", ".join(clean(names[at]) for at in of)
        lead = Line(width).add(f"   {fit(whose, width // 3)}  ", "muted")
        for index, part in enumerate(wrap(text, max(1, lead.left - 1), _MOST_ROWS)):
            row = Line(width).join(lead) if index == 0 else Line(width).to(lead.used)
            yield row.add(part, "strong")


def told_rows(text: str, width: int, mark: str, role: str, *, head: str = "") -> list[Line]:
    """A sentence behind a mark; a number and its unit stand on one line.

    ``head``: what stands before the sentence, in the mark's colour.
    """
    parts = wrap(_BEFORE_UNIT.sub(_STUCK, f"{head}{clean(text)}"), width - 5, 6)
    rows = []
    for index, part in enumerate(parts):
        row = Line(width).add("   " if index else f" {mark} ", role)
        told = part.replace(_STUCK, " ")
        if index == 0 and head:
            row.add(told[: len(head)], role)
            told = told[len(head) :]
        rows.append(row.add(told))
    return rows


def _quantity(row: QuantityRow, place: Layout) -> Line:
    line = Line(place.width).add(f" {pad(row.name, place.name - 1)}", "text")
    for cell in row.cells:
        text = cell.value
        if cell_len(text) > place.value:
            text = text.replace(" ", "")
        line.add(pad(text, place.value, ">"), "strong" if cell.is_known else "muted")
        line.add(f" {pad(cell.ratio, _RATIO - 2)} ", "text")
    return line.add(row.method, "muted")
