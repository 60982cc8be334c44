"""All sessions of a study side by side, with ratios only where the study compares them."""

from __future__ import annotations

from dataclasses import replace

from gpuwatch.analysis.comparison.side_by_side import Comparison, compare, headings, with_judged
from gpuwatch.analysis.results import Kind, StudyResult
from gpuwatch.analysis.study.letters import LegendEntry, with_letters
from gpuwatch.analysis.study.notes import notes
from gpuwatch.analysis.summary.identity import sound


def one_run_each(result: StudyResult) -> bool:
    """Whether every cell has at most one run, outside blocks."""
    return all(
        len(cell.runs) <= 1 and all(run.block is None for run in cell.runs)
        for question in result.questions
        for cell in question.cells
    )


def lettered(result: StudyResult) -> tuple[StudyResult, tuple[LegendEntry, ...]]:
    """``result`` with letters for long labels, and their legend.

    Sessions of several questions that stand side by side have letters of their own.
    """
    if one_run_each(result) and len(result.questions) > 1:
        return result, ()
    return with_letters(result)


def compared(result: StudyResult) -> Comparison:
    """The comparison of all sessions, with the study's notes.

    Ratios are relative to the first sound run of the question's baseline. They are given only where
    the study compares two cells: not between questions, and not if a verdict is invalid.
    """
    bases = _bases(result)
    comparison = with_judged(compare(result.sessions), result.questions, bases)
    notes_ = notes(result)
    against = sorted({base for at, base in bases.items() if at != base})
    if against:
        names = headings(result.sessions)
        named = ", ".join(names[base] for base in against)
        notes_.append(f"ratios (×…) are against {named}; none from or to a run that failed")
    baseline = against[0] if against else comparison.baseline
    return replace(comparison, baseline=baseline, notes=tuple(notes_))


def _bases(result: StudyResult) -> dict[int, int]:
    """Index of each session with a ratio -> index of its baseline session."""
    place = {session.path: at for at, session in enumerate(result.sessions)}
    bases: dict[int, int] = {}
    for question in result.questions:
        for contrast in question.contrasts:
            baseline, other = question.cells[contrast.baseline], question.cells[contrast.other]
            sound_runs = [run.session for run in baseline.judged if sound(run.session)]
            if contrast.verdict.kind is Kind.INVALID or not sound_runs:
                continue
            base = place[sound_runs[0].path]
            for run in (*baseline.runs, *other.runs):
                bases[place[run.session.path]] = base
    return bases
