"""What the compare screen shows of a result: its sections, and what its other pages are of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpuwatch.analysis.comparison.side_by_side import Comparison, compare
from gpuwatch.analysis.explain.kernels import nearest_profiled
from gpuwatch.analysis.results import Cell, Contrast, Question, StudyResult
from gpuwatch.analysis.study.letters import LegendEntry, with_letters
from gpuwatch.analysis.study.notes import warnings
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.text import clean
from gpuwatch.tui.compare import cell_rows, rows
from gpuwatch.tui.compare.columns import Section, heading_rows
from gpuwatch.tui.compare.histories import Case, Group
from gpuwatch.tui.compare.kernel_differences import Pair
from gpuwatch.tui.compare.verdict_rows import evidence_rows, notes_of, verdict_rows

_KERNEL_RUNGS = frozenset({"kernels", "kernel time", "copies"})
"""Rungs of an explanation that a profile tells."""


@dataclass(frozen=True)
class Answer:
    """What the screen shows."""

    study: StudyResult
    shown: StudyResult
    """``study`` as the tables show it, with letters in place of long labels."""
    legend: tuple[LegendEntry, ...]
    sessions: Comparison | None
    """Session by session; ``None`` where cells have several runs, whose medians are shown."""
    as_of: str = ""
    """How far the study was that is looked at while it goes on."""


def answer(study: StudyResult, folder: Path | None) -> Answer:
    """The answer of a study in ``folder``, or of sessions that were put together."""
    sessions = None if cell_rows.has_cells(study) else _side_by_side(study)
    as_of = cell_rows.snapshot_words(folder, study) if folder is not None else ""
    shown, legend = with_letters(study) if sessions is None else (study, ())
    return Answer(study, shown, legend, sessions, as_of)


def _side_by_side(study: StudyResult) -> Comparison:
    """Session by session, against the one that the verdicts are against."""
    comparison = compare(study.sessions)
    with_contrasts = [each for each in study.questions if each.contrasts]
    if len(with_contrasts) != 1 or comparison.baseline is None:
        return comparison
    (question,) = with_contrasts
    base = {run.session.path for run in question.cells[question.baseline].runs}
    if comparison.sessions[comparison.baseline].path in base:
        return comparison
    return compare(sorted(study.sessions, key=lambda each: each.path not in base))


def sections(answer: Answer, width: int, column: int) -> list[Section]:
    """Everything that is shown, the verdicts first."""
    first = Section((), tuple(verdict_rows(answer.shown, width, answer.legend)))
    if answer.sessions is None:
        return [first, *cell_rows.sections(answer.shown, width, column)]
    place = rows.place_of(answer.sessions, width, column)
    heading = heading_rows(rows.heads(answer.sessions), place)
    notes = [*notes_of(answer.study), *warnings(answer.study)]
    body = rows.body_rows(answer.sessions, place, notes)
    last = Section((), tuple(evidence_rows(answer.study, width)))
    return [first, Section(heading, tuple(body)), last]


def hidden(answer: Answer, width: int) -> int:
    """Columns that are left out, of the table that leaves out most."""
    if answer.sessions is not None:
        return rows.place_of(answer.sessions, width, 0).hidden
    questions = answer.shown.questions
    return max((cell_rows.place_of(each, width, 0).hidden for each in questions), default=0)


def against(answer: Answer) -> str:
    """What ratios are against."""
    if answer.sessions is not None:
        return rows.against(answer.sessions)
    baselines = {clean(each.cells[each.baseline].label) for each in answer.study.questions}
    text = f"medians against {baselines.pop() if len(baselines) == 1 else 'their baselines'}"
    return text if answer.as_of else f"{clean(answer.study.title)}: {text}"


def column_of(answer: Answer, path: str) -> int:
    """How far to shift so that the session at ``path`` stands beside the baseline."""
    if answer.sessions is None:
        return cell_rows.column_of(answer.study, path)
    baseline = answer.sessions.baseline or 0
    others = [each.path for at, each in enumerate(answer.sessions.sessions) if at != baseline]
    return others.index(path) if path in others else 0


def history_cases(answer: Answer) -> list[Case]:
    """What histories are drawn of: the runs one by one, or the cells of each question."""
    if answer.sessions is not None:
        return [Case("", tuple(Group(label, (path,)) for label, path in _one_by_one(answer)))]
    return [
        Case(question.label, tuple(_group(cell) for cell in _ordered(question)))
        for question in answer.study.questions
    ]


def kernel_pairs(answer: Answer) -> list[Pair]:
    """Of which runs the kernels are compared: each of a question with its baseline."""
    contrasts = [
        (question, contrast)
        for question in answer.study.questions
        for contrast in question.contrasts
    ]
    if contrasts:
        return [_pair(question, contrast) for question, contrast in contrasts]
    if answer.sessions is None:
        return []
    runs = _one_by_one(answer)
    return [Pair((runs[0][0], label), (runs[0][1], path)) for label, path in runs[1:]]


def _one_by_one(answer: Answer) -> list[tuple[str, Path]]:
    """The sessions as their columns name them, the baseline first."""
    assert answer.sessions is not None
    baseline = answer.sessions.baseline or 0
    names = rows.names(answer.sessions)
    runs = [
        (name, Path(session.path))
        for name, session in zip(names, answer.sessions.sessions, strict=True)
    ]
    return [*runs[baseline : baseline + 1], *runs[:baseline], *runs[baseline + 1 :]]


def _ordered(question: Question) -> Sequence[Cell]:
    base = question.baseline
    return [question.cells[base], *question.cells[:base], *question.cells[base + 1 :]]


def _group(cell: Cell) -> Group:
    runs = cell.judged or cell.runs
    return Group(cell.label, tuple(Path(run.session.path) for run in runs))


def _pair(question: Question, contrast: Contrast) -> Pair:
    first, second = question.cells[contrast.baseline], question.cells[contrast.other]
    evidence = contrast.explanation.evidence
    sentences = [each.text for each in evidence if each.rung in _KERNEL_RUNGS]
    return Pair(
        (first.label, second.label),
        (Path(_profiled_run(first).path), Path(_profiled_run(second).path)),
        tuple(sentences),
    )


def _profiled_run(cell: Cell) -> Summary:
    """The run whose profile stands for a cell, or any that says why there is none."""
    return nearest_profiled(cell) or (cell.judged or cell.runs)[0].session
