"""The changes associated with the differences of one question: evidence, bounds, kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from gpuwatch.analysis.hardware.kernels import KernelRow
from gpuwatch.analysis.results import Contrast, Question, Run
from gpuwatch.report.session.kernel_grid import kernel_grid
from gpuwatch.report.study.document import Heading, Item, LabelledSentence, Section

Number = TypeVar("Number", int, float)


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
    """Families of kernels that differ between compared cells, with kernels that ran in only one."""
    explained = [(each, each.explanation) for each in question.contrasts]
    single = _of_cells(question, [(each, why.kernels) for each, why in explained])
    families = _of_cells(question, [(each, why.families) for each, why in explained])
    grid = kernel_grid([cell.label for cell in question.cells], single, families)
    return Section("kernels", (grid,) if families else ())


def _of_cells(
    question: Question, rows: Sequence[tuple[Contrast, Sequence[KernelRow]]]
) -> list[KernelRow]:
    """Rows of the contrasts as rows of all cells, unknown in those that no row is of."""
    placed: dict[tuple[str, str, str | None], list[tuple[Contrast, KernelRow]]] = {}
    for contrast, of_contrast in rows:
        for row in of_contrast:
            placed.setdefault((row.table, row.family, row.name), []).append((contrast, row))
    cells = len(question.cells)
    return [
        KernelRow(
            table,
            family,
            name,
            kernels=_spread(cells, [(contrast, row.kernels) for contrast, row in of]),
            launches=_spread(cells, [(contrast, row.launches) for contrast, row in of]),
            flop=_spread(cells, [(contrast, row.flop) for contrast, row in of]),
            shares=_spread(cells, [(contrast, row.shares) for contrast, row in of]),
            per_step=all(row.per_step for _, row in of),
        )
        for (table, family, name), of in placed.items()
    ]


def _spread(
    cells: int, pairs: Sequence[tuple[Contrast, Sequence[Number | None]]]
) -> tuple[Number | None, ...]:
    """The values of contrasts, of baseline and other, at the places of their cells."""
    at: dict[int, Number | None] = {}
    for contrast, values in pairs:
        at[contrast.baseline], at[contrast.other] = values
    return tuple(at.get(cell) for cell in range(cells))
