"""The table of a question's cells: every quantity with its range, ratio and method."""

from __future__ import annotations

from itertools import groupby

from gpuwatch import units
from gpuwatch.analysis.results import Question, TableRow
from gpuwatch.metrics import Method
from gpuwatch.report.html.markup import Row, table, text
from gpuwatch.report.values import moved, ratio, shown


def figures(question: Question) -> str:
    """Medians over the judged runs, the range below them; empty where there is none."""
    if not question.table:
        return ""
    head = ["quantity", *(text(cell.label, 80) for cell in question.cells), "method"]
    groups = [
        (group, [_line(row) for row in rows])
        for group, rows in groupby(question.table, key=lambda row: row.group)
    ]
    return table(f"Medians over the judged runs of {question.label}", head, groups)


def _line(row: TableRow) -> Row:
    methods = dict.fromkeys(m.value for m in row.methods if m is not Method.UNAVAILABLE)
    cells = (_cell(row, at) for at in range(len(row.values)))
    return [text(row.name, 120), *cells, "/".join(methods)]


def _cell(row: TableRow, at: int) -> str:
    value, low, high = row.values[at], row.lows[at], row.highs[at]
    if value is None:
        return units.UNKNOWN
    told = f"under {_shown(row, value)}" if row.at_most else _shown(row, value)
    against = ratio(row.ratios[at]) if at and row.ratios[at] is not None else ""
    parts = [f"{told} <small>{against}</small>" if against else told]
    if low is not None and high is not None and _shown(row, low) != _shown(row, high):
        parts.append(f'<small class="range">{_shown(row, low)} to {_shown(row, high)}</small>')
    return " ".join(parts)


def _shown(row: TableRow, value: float) -> str:
    return text(moved(value) if row.is_traffic else shown(value, row.unit))
