"""The table of a question's cells: every quantity with its range, ratio and method."""

from __future__ import annotations

from gpuwatch.analysis.comparison.quantity_table import QuantityCell, quantity_table
from gpuwatch.analysis.results import Question
from gpuwatch.report.html.markup import table, text
from gpuwatch.report.study.tables import ratio_legend


def figures(question: Question) -> str:
    """Medians over the judged runs with their ranges; empty if there are none."""
    if not question.table:
        return ""
    head = ["quantity", *(text(cell.label, 80) for cell in question.cells), "method"]
    groups = [
        (
            group.name,
            [[text(row.name, 120), *map(_cell, row.cells), row.method] for row in group.rows],
        )
        for group in quantity_table(question.table, question.baseline)
    ]
    legend = f"<p>{text(ratio_legend(question))}.</p>" if question.contrasts else ""
    return table(f"Medians over the judged runs of {question.label}", head, groups) + legend


def _cell(cell: QuantityCell) -> str:
    parts = [text(cell.value)]
    parts += [f"<small>{cell.ratio}</small>"] if cell.ratio else []
    parts += [f'<small class="range">{each}</small>' for each in (cell.span, cell.runs) if each]
    return " ".join(parts)
