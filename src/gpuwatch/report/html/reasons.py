"""The explanation of each difference: evidence, start-up, kernels, and what differs around it."""

from __future__ import annotations

from gpuwatch.analysis.results import Contrast, Evidence, Question
from gpuwatch.core import units
from gpuwatch.report.html.markup import table, text
from gpuwatch.report.html.verdicts import name, verdict_badge
from gpuwatch.report.session.kernel_grid import kernel_grid
from gpuwatch.report.tables.grid import Grid, difference_grid


def reasons(question: Question, level: int) -> str:
    """The explanation of each comparison, under headings of ``level``."""
    return "\n".join(
        f"<h{level}>{text(name(question, each))} {verdict_badge(each.verdict)}</h{level}>\n"
        f"{_explained(question, each)}"
        for each in question.contrasts
    )


def _explained(question: Question, contrast: Contrast) -> str:
    explanation = contrast.explanation
    labels = [question.cells[at].label for at in (contrast.baseline, contrast.other)]
    parts = []
    if explanation.evidence:
        parts.append(
            '<ol class="evidence">'
            + "".join(f"<li>{_evidence(e)}</li>" for e in explanation.evidence)
            + "</ol>"
        )
    start_up = explanation.start_up
    if start_up is not None and all(each.rung != "start-up" for each in explanation.evidence):
        seconds = units.quantity(start_up.seconds, "s")
        parts.append(f"<p>Starting took {text(seconds)}; the baseline's start is not known.</p>")
    if explanation.families:
        grid = kernel_grid(labels, explanation.kernels, explanation.families)
        parts.append(_table("Kernels that differ", grid))
    if explanation.differences:
        grid = difference_grid(explanation.differences, labels)
        parts.append(_table("What differs around the runs", grid))
    return "\n".join(parts) or "<p>Nothing that was looked at differs.</p>"


def _table(caption: str, grid: Grid) -> str:
    head, *rows = ([text(cell) for cell in row] for row in (grid.head, *grid.rows))
    return table(caption, head, [("", rows)])


def _evidence(evidence: Evidence) -> str:
    how = [evidence.method.value] if evidence.method is not None else []
    how += [evidence.source] if evidence.source else []
    source_note = f" <small>({text(', '.join(how), 200)})</small>" if how else ""
    return f'<span class="rung">{text(evidence.rung)}</span> {text(evidence.text)}{source_note}'
