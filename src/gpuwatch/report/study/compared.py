"""All sessions of a study side by side, with ratios only where the study compares them."""

from __future__ import annotations

from dataclasses import replace

from gpuwatch.analysis.comparison.ratios import ratio
from gpuwatch.analysis.comparison.side_by_side import Comparison, compare, headings
from gpuwatch.analysis.results import Kind, StudyResult
from gpuwatch.analysis.study.notes import notes
from gpuwatch.analysis.summary.identity import sound


def one_run_each(result: StudyResult) -> bool:
    """Whether no cell has more than one run, and none is of a block."""
    return all(
        len(cell.runs) <= 1 and all(run.block is None for run in cell.runs)
        for question in result.questions
        for cell in question.cells
    )


def compared(result: StudyResult) -> Comparison:
    """The comparison of all sessions, with the study's notes.

    Ratios are against the first sound run of the question's baseline, and only where the study
    compares two cells: not between questions, and not where a verdict is invalid.
    """
    found = compare(result.sessions)
    bases = _bases(result)
    rows = tuple(
        replace(
            row,
            ratios=tuple(
                ratio(row, result.sessions, bases[at], at) if at in bases else None
                for at in range(len(result.sessions))
            ),
        )
        for row in found.rows
    )
    told = notes(result)
    against = sorted({base for at, base in bases.items() if at != base})
    if against:
        names = headings(result.sessions)
        named = ", ".join(names[base] for base in against)
        told.append(f"ratios (x...) are against {named}; none from or to a run that failed")
    baseline = against[0] if against else found.baseline
    return replace(found, rows=rows, baseline=baseline, notes=tuple(told))


def _bases(result: StudyResult) -> dict[int, int]:
    """Of each session that has a ratio, the session that it is against, both by their place."""
    place = {session.path: at for at, session in enumerate(result.sessions)}
    found: dict[int, int] = {}
    for question in result.questions:
        for contrast in question.contrasts:
            baseline, other = question.cells[contrast.baseline], question.cells[contrast.other]
            sound_runs = [run.session for run in baseline.judged if sound(run.session)]
            if contrast.verdict.kind is Kind.INVALID or not sound_runs:
                continue
            base = place[sound_runs[0].path]
            for run in (*baseline.runs, *other.runs):
                found[place[run.session.path]] = base
    return found
