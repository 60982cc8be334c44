"""What goes with the differences of one question: evidence, bounds, kernels, versions."""

from __future__ import annotations

from gpuwatch.analysis.hardware.kernels import KernelRow
from gpuwatch.analysis.results import Question, Run
from gpuwatch.report.session.efficiency import kernel_grid
from gpuwatch.report.study.document import Grid, Heading, Item, LabelledSentence, Section
from gpuwatch.report.study.tables import baseline_of


def evidence(question: Question) -> Section:
    """Down the ladder, for each contrast; then what bounds a run of each cell."""
    items: list[Item] = []
    base = question.cells[baseline_of(question)].label
    for contrast in question.contrasts:
        if of := contrast.explanation.evidence:
            items.append(Heading(f"{question.cells[contrast.other].label} against {base}"))
            items += [LabelledSentence(each.rung, each.text) for each in of]
    bound = _bounds(question)
    items += [Heading("what bounds a run in the middle of each cell"), *bound] if bound else []
    return Section("what goes with it", tuple(items))


def _bounds(question: Question) -> list[Item]:
    labels: dict[str, list[str]] = {}
    for cell, run in zip(question.cells, middle_runs(question), strict=True):
        if run is not None and run.session.workload.get("kind") not in ("machine", "import"):
            text = run.session.efficiency.roofline.verdict.text
            labels.setdefault(text, []).append(cell.label)
    return [LabelledSentence(", ".join(of), text) for text, of in labels.items()]


def middle_runs(question: Question) -> list[Run | None]:
    """Of each cell the run that is nearest to its median; where none has a value, the last."""
    found: list[Run | None] = []
    for cell in question.cells:
        median = cell.median
        known = [run for run in cell.judged if run.value is not None]
        found.append(
            min(known, key=lambda run: abs((run.value or 0.0) - (median or 0.0)))
            if known and median is not None
            else (cell.runs[-1] if cell.runs else None)
        )
    return found


def kernels(question: Question) -> Section:
    """Kernels that ran in one of two compared cells and not in the other, with their shares."""
    found: dict[tuple[str, str], dict[int, float | None]] = {}
    for contrast in question.contrasts:
        for row in contrast.explanation.kernels:
            shares = found.setdefault((row.table, row.name), {})
            shares[contrast.baseline], shares[contrast.other] = row.shares
    cells = range(len(question.cells))
    rows = [
        KernelRow(table, name, tuple(shares.get(at) for at in cells))
        for (table, name), shares in found.items()
    ]
    head, lines = kernel_grid([cell.label for cell in question.cells], rows, str)
    grid = Grid(tuple(head), tuple(map(tuple, lines)))
    return Section("kernels", (grid,) if rows else ())
