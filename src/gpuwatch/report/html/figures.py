"""The table of a question's cells: every quantity with its range, ratio and method."""

from __future__ import annotations

from gpuwatch.analysis.comparison.quantity_table import (
    QuantityCell,
    QuantityRow,
    quantity_table,
)
from gpuwatch.analysis.results import Question
from gpuwatch.report.html.markup import Row, table, text
from gpuwatch.report.study.tables import ratio_legend
from gpuwatch.report.tables.grid import PAIRED, paired_columns


def figures(question: Question) -> str:
    """Medians over the judged runs with their ranges; empty if there are none."""
    if not question.table:
        return ""
    groups = quantity_table(question.table, question.baseline)
    paired = paired_columns(groups)
    head = ["quantity"]
    for at, cell in enumerate(question.cells):
        label = text(cell.label, 80)
        head += [label, f"{label}: {PAIRED}"] if at in paired else [label]
    rows = [(group.name, [_row(row, paired) for row in group.rows]) for group in groups]
    legend = f"<p>{text(ratio_legend(question))}.</p>" if question.contrasts else ""
    caption = f"Medians over the judged runs of {question.label}"
    return table(caption, [*head, "method"], rows) + legend


def _row(row: QuantityRow, paired: frozenset[int]) -> Row:
    cells = [text(row.name, 120)]
    for at, cell in enumerate(row.cells):
        cells += [_cell(cell), _change(cell)] if at in paired else [_cell(cell)]
    return [*cells, row.method]


def _change(cell: QuantityCell) -> str:
    estimate, _, ends = cell.change.partition(" (")
    weight = "strong" if cell.is_changed else "span"
    span = f' <small class="range">({text(ends)}</small>' if ends else ""
    return f"<{weight}>{text(estimate)}</{weight}>{span}"


def _cell(cell: QuantityCell) -> str:
    parts = [text(cell.value)]
    parts += [f"<small>{cell.ratio}</small>"] if cell.ratio else []
    parts += [f'<small class="range">{each}</small>' for each in (cell.span, cell.runs) if each]
    return " ".join(parts)
