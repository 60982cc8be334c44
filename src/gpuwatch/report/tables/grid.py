"""Tables of unescaped cells, and how they are written as text and as Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpuwatch.analysis.comparison.quantity_table import (
    QuantityCell,
    QuantityGroup,
    QuantityRow,
    difference_name,
    difference_texts,
)
from gpuwatch.analysis.results import Difference
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method
from gpuwatch.core.text import clean, markdown
from gpuwatch.report.tables.fitted import fitted
from gpuwatch.report.tables.plain import markdown_table

BADGES = {Method.COUNTED.value: "c", Method.BOUND.value: "b"}
"""Letters for methods; without one a quantity is measured."""
PAIRED = "paired change"
"""Head of the column of changes within blocks."""
_SHORTEST, _ROOM = 20, 120
"""Least characters for one value; most characters for all values of a fact together."""
_BREAKS = re.compile(r"[\n\t]|[^\n\t]+")


@dataclass(frozen=True)
class Grid:
    """A table. A row with only its first cell filled is a heading.

    A newline in a cell starts a new line; a tab does so if there is no room for a space.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    repeat_last: bool = False
    """Whether a table that is split repeats its last column."""


def quantity_grid(
    groups: Sequence[QuantityGroup], labels: Sequence[str], *, badges: bool = False
) -> Grid:
    """Quantities under the names of their groups, if these have names; their methods last.

    A cell with changes within blocks has a second column for them. With ``badges`` the methods are
    letters behind the names, which :data:`BADGES` explains.
    """
    paired = paired_columns(groups)
    heads = [
        head
        for at, label in enumerate(labels)
        for head in ((label, f"{label}: {PAIRED}") if at in paired else (label,))
    ]
    rows: list[tuple[str, ...]] = []
    for group in groups:
        if group.name:
            rows.append((f"{group.name}:", *[""] * (len(heads) + (not badges))))
        for row in group.rows:
            cells = [
                text
                for at, cell in enumerate(row.cells)
                for text in (
                    (_quantity(cell), _change(cell)) if at in paired else (_quantity(cell),)
                )
            ]
            rows.append((_badged(row), *cells) if badges else (row.name, *cells, row.method))
    head = ("", *heads) if badges else ("", *heads, "method")
    return Grid(head, tuple(rows), repeat_last=not badges)


def paired_columns(groups: Sequence[QuantityGroup]) -> frozenset[int]:
    """Indices of the cells with a change within blocks in any row."""
    return frozenset(
        at
        for group in groups
        for row in group.rows
        for at, cell in enumerate(row.cells)
        if cell.change
    )


def _change(cell: QuantityCell) -> str:
    """The estimate above its interval."""
    estimate, _, ends = cell.change.removesuffix(")").partition(" (")
    return "\n".join(filter(None, (estimate, breakable(ends))))


def _badged(row: QuantityRow) -> str:
    letters = "/".join(BADGES[each] for each in row.method.split("/") if each in BADGES)
    return f"{row.name} ({letters})" if letters else row.name


def _quantity(cell: QuantityCell) -> str:
    first = "\t".join(filter(None, (cell.value, cell.ratio)))
    return "\n".join(filter(None, (first, breakable(cell.span), cell.runs)))


def breakable(span: str) -> str:
    """A range that may be broken before its upper end."""
    return span.replace(" to ", "\tto ")


def difference_grid(differences: Sequence[Difference], labels: Sequence[str]) -> Grid:
    """One row per fact that differs; long values are cut."""
    longest = max(_SHORTEST, _ROOM // max(1, len(labels)))
    rows = ((difference_name(e), *difference_texts(e, longest)) for e in differences)
    return Grid(("fingerprint", *labels), tuple(rows))


def grid_text(grid: Grid, columns: int) -> str:
    """The table for a terminal; one that is too wide is split."""
    head = [clean(cell) for cell in grid.head]
    rows = [[_BREAKS.sub(_kept, cell) for cell in row] for row in grid.rows]
    return fitted(head, rows, columns, repeat_last=grid.repeat_last)


def _kept(match: re.Match[str]) -> str:
    """Clean the text of a cell, but keep its newlines and tabs."""
    return match[0] if match[0] in "\n\t" else clean(match[0])


def grid_markdown(grid: Grid) -> str:
    """The table as Markdown."""
    rows = [
        ["<br>".join(map(markdown, cell.replace("\t", " ").split("\n"))) for cell in row]
        for row in grid.rows
    ]
    return markdown_table([markdown(cell) for cell in grid.head], rows)
