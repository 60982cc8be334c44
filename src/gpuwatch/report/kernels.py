"""The tables of a profile as text, Markdown, CSV and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpuwatch.analysis.hardware.kernels import short_name, short_names
from gpuwatch.analysis.hardware.profile import (
    Cell,
    Counters,
    Profile,
    Table,
    source,
    title,
    tool_name,
)
from gpuwatch.core import units
from gpuwatch.core.json_schema import JSON_SCHEMA
from gpuwatch.core.text import clean, markdown, spreadsheet
from gpuwatch.report import json
from gpuwatch.report.export.table import csv_text
from gpuwatch.report.tables import markdown_table, table

_SHORTEST_NAME, _LONGEST_NAME = 24, 100
_SPREAD = ("Med", "Min", "Max", "StdDev")
"""Columns that a narrow terminal goes without."""
_DIFFERENCE = (
    "less than counted: convolutions by Winograd or FFT; more: padding to whole tiles, work done "
    "twice, operators that the count leaves out"
)


def heading(profile: Profile | None, counters: Counters | None, flop: float | None) -> list[str]:
    """Lines that describe the source of the tables; ``flop`` is the model's count per step."""
    lines = []
    if profile is not None:
        notes = (*profile.notes, *filter(None, [profile.reason]))
        lines = [clean(source(profile)), *(f"note: {clean(note)}" for note in notes)]
    return lines if counters is None else lines + _counted(counters, flop)


def as_text(shown: Table, limit: int | None, width: int) -> str:
    """A table for a terminal of ``width`` columns: numbers rounded and with their units, names
    shortened; ``limit`` rows, ``None``: all."""
    head = [clean(column).removesuffix(" (ns)") for column in shown.columns]
    rows = [
        [_read(cell, column) for cell, column in zip(row, shown.columns, strict=True)]
        for row in shown.rows[:limit]
    ]

    def numbers() -> int:
        """The width of all columns but the last, which has the names."""
        return sum(2 + max(map(len, column)) for column in list(zip(head, *rows, strict=True))[:-1])

    if numbers() + _LONGEST_NAME // 2 > width:
        kept = [at for at, name in enumerate(head) if not name.startswith(_SPREAD)]
        head, rows = [head[at] for at in kept], [[row[at] for at in kept] for row in rows]
    most = max(_SHORTEST_NAME, width - numbers())
    names = short_names([clean(str(row[-1] or units.UNKNOWN)) for row in shown.rows[:limit]], most)
    rows = [[*row[:-1], name] for row, name in zip(rows, names, strict=True)]
    lines = [clean(title(shown)), table(head, rows, left=0, last_left=True)]
    if hidden := len(shown.rows) - len(rows):
        lines.append(f"{units.counted(hidden, 'more row')}: --limit 0 shows all")
    if shown.rows_left_out:
        lines.append(f"{shown.rows_left_out} more were not recorded")
    return "\n".join(lines) + "\n"


def as_markdown(shown: Table, limit: int | None) -> str:
    """A Markdown table with full names."""
    rows = [
        [
            markdown(cell) if isinstance(cell, str) else _shown(cell, column)
            for cell, column in zip(row, shown.columns, strict=True)
        ]
        for row in shown.rows[:limit]
    ]
    return f"{markdown_table(list(map(markdown, shown.columns)), rows, left=0)}\n"


def as_csv(shown: Table, limit: int | None) -> str:
    """The table in the form of ``nsys stats --format csv``: full numbers, empty if unknown.

    Text that a spreadsheet would take for a formula gets a leading apostrophe.
    """
    return csv_text(
        [spreadsheet(cell) if isinstance(cell, str) else cell for cell in row]
        for row in (shown.columns, *shown.rows[:limit])
    )


def document(
    profile: Profile | None, counters: Counters | None, shown: Sequence[Table], limit: int | None
) -> dict[str, Any]:
    """The tables as JSON; null means unknown.

    ``rows_left_out`` were not recorded, ``rows_not_printed`` exceed ``limit``.
    """
    return {
        "schema": JSON_SCHEMA,
        "profile": None if profile is None else json.source(profile),
        "counters": json.counters(counters),
        "tables": {
            each.name: {
                "columns": each.columns,
                "rows": each.rows[:limit],
                "rows_left_out": each.rows_left_out,
                "rows_not_printed": len(each.rows) - len(each.rows[:limit]),
            }
            for each in shown
        },
    }


def _counted(counters: Counters, model: float | None) -> list[str]:
    tool = clean(tool_name(counters))
    if counters.reason:
        return [f"no hardware counters: {clean(counters.reason)}"]
    flop, read, write = counters.totals
    lines = []
    if (flop, read, write) != (None, None, None):
        lines = [
            f"executed, {counters.scope}, by {tool}: {units.si(flop, 'FLOP')}; "
            f"DRAM {units.si(read, 'B')} read, {units.si(write, 'B')} written"
        ]
    if flop is not None and model and counters.steps is not None:
        lines.append(
            f"the model's count is {units.si(model, 'FLOP')} per step; executed to counted "
            f"{units.ratio(flop / model)} ({_DIFFERENCE})"
        )
    return lines + [f"note: {clean(note)}" for note in counters.notes]


def _shown(cell: Cell, column: str) -> str:
    if cell is None:
        return units.UNKNOWN
    if isinstance(cell, str):
        return short_name(clean(cell), _LONGEST_NAME)
    if column.endswith("(%)"):
        return "<0.1" if 0 < cell < 0.05 else f"{cell:.1f}"
    if column.endswith("/Step"):
        return f"{cell:,.1f}".removesuffix(".0")
    return f"{cell:,.3f}" if column.endswith("(MB)") else f"{cell:,.0f}"


def _read(cell: Cell, column: str) -> str:
    if isinstance(cell, (int, float)) and column.endswith("(ns)"):
        return units.quantity(cell / 1e9, "s")
    return _shown(cell, column)
