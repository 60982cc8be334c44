"""The table of a question's cells: every quantity with its range, ratio and method."""

from __future__ import annotations

from itertools import groupby

from gpuwatch.analysis.results import Question, TableRow
from gpuwatch.core import units
from gpuwatch.core.metrics import Method
from gpuwatch.report.html.markup import Row, table, text
from gpuwatch.report.study.tables import baseline_of, bound_of, few_of, ratio_legend
from gpuwatch.report.values import bounded, moved, ratio, shown


def figures(question: Question) -> str:
    """Medians over the judged runs with their ranges; empty if there are none."""
    if not question.table:
        return ""
    head = ["quantity", *(text(cell.label, 80) for cell in question.cells), "method"]
    groups = [
        (group, [_line(row, baseline_of(question)) for row in rows])
        for group, rows in groupby(question.table, key=lambda row: row.group)
    ]
    legend = f"<p>{text(ratio_legend(question))}.</p>" if question.contrasts else ""
    return table(f"Medians over the judged runs of {question.label}", head, groups) + legend


def _line(row: TableRow, baseline: int) -> Row:
    methods = dict.fromkeys(m.value for m in row.methods if m is not Method.UNAVAILABLE)
    cells = (_cell(row, at, baseline) for at in range(len(row.values)))
    return [text(row.name, 120), *cells, "/".join(methods)]


def _cell(row: TableRow, at: int, baseline: int) -> str:
    value, low, high = row.values[at], row.lows[at], row.highs[at]
    if value is None:
        return units.UNKNOWN
    figure = bounded(_shown(row, value), bound_of(row, at))
    against = ratio(row.ratios[at]) if at != baseline and row.ratios[at] is not None else ""
    parts = [f"{figure} <small>{against}</small>" if against else figure]
    if low is not None and high is not None and _shown(row, low) != _shown(row, high):
        parts.append(f'<small class="range">{_shown(row, low)} to {_shown(row, high)}</small>')
    if few := few_of(row, at):
        parts.append(f'<small class="range">{few}</small>')
    return " ".join(parts)


def _shown(row: TableRow, value: float) -> str:
    return text(moved(value) if row.is_traffic else shown(value, row.unit))
