"""The changes associated with the differences of one question: evidence, bounds, kernels."""

from __future__ import annotations

from gpuwatch.analysis.hardware.kernels import KernelRow
from gpuwatch.analysis.results import Question, Run
from gpuwatch.report.session.efficiency import kernel_grid
from gpuwatch.report.study.document import Heading, Item, LabelledSentence, Section


def evidence(question: Question) -> Section:
    """The evidence for each contrast, rung by rung; then what bounds a run of each cell."""
    items: list[Item] = []
    base = question.cells[question.baseline].label
    for contrast in question.contrasts:
        if rungs := contrast.explanation.evidence:
            items.append(Heading(f"{question.cells[contrast.other].label} against {base}"))
            items += [LabelledSentence(each.rung, each.text) for each in rungs]
    bound = _bounds(question)
    items += [Heading("what bounds a run in the middle of each cell"), *bound] if bound else []
    return Section("associated changes", tuple(items))


def _bounds(question: Question) -> list[Item]:
    labels: dict[str, list[str]] = {}
    for cell, run in zip(question.cells, middle_runs(question), strict=True):
        if run is not None and run.session.workload.get("kind") not in ("machine", "import"):
            text = run.session.efficiency.roofline.verdict.text
            labels.setdefault(text, []).append(cell.label)
    return [LabelledSentence(", ".join(names), text) for text, names in labels.items()]


def middle_runs(question: Question) -> list[Run | None]:
    """The run of each cell nearest to its median; the last run if none has a value."""
    runs: list[Run | None] = []
    for cell in question.cells:
        median = cell.median
        known = [run for run in cell.judged if run.value is not None]
        runs.append(
            min(known, key=lambda run: abs((run.value or 0.0) - (median or 0.0)))
            if known and median is not None
            else (cell.runs[-1] if cell.runs else None)
        )
    return runs


def kernels(question: Question) -> Section:
    """Kernels that ran in only one of two compared cells, with their shares of kernel time."""
    shares_of: dict[tuple[str, str], dict[int, float | None]] = {}
    for contrast in question.contrasts:
        for row in contrast.explanation.kernels:
            shares = shares_of.setdefault((row.table, row.name), {})
            shares[contrast.baseline], shares[contrast.other] = row.shares
    cells = range(len(question.cells))
    rows = [
        KernelRow(table, name, tuple(shares.get(at) for at in cells))
        for (table, name), shares in shares_of.items()
    ]
    grid = kernel_grid([cell.label for cell in question.cells], rows)
    return Section("kernels", (grid,) if rows else ())
