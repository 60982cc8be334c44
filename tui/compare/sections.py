"""The sections of the compare screen, and the runs for its pages of histories and kernels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpuwatch.analysis.comparison.side_by_side import Comparison, compare, with_judged
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
"""Rungs of an explanation that come from a profile."""


@dataclass(frozen=True)
class Answer:
    """The result that the screen shows."""

    study: StudyResult
    shown: StudyResult
    """``study`` as the tables show it, with letters in place of long labels."""
    legend: tuple[LegendEntry, ...]
    sessions: Comparison | None
    """Each session by itself; ``None`` if cells have several runs and medians are shown."""
    as_of: str = ""
    """``as of run 7 of 18: `` for a study that is still going on, else empty."""


def answer(study: StudyResult, folder: Path | None) -> Answer:
    """The answer for a study in ``folder``, or for single sessions if that is ``None``."""
    sessions = None if cell_rows.has_cells(study) else _side_by_side(study)
    as_of = cell_rows.snapshot_words(folder, study) if folder is not None else ""
    shown, legend = with_letters(study) if sessions is None else (study, ())
    return Answer(study, shown, legend, sessions, as_of)


def _side_by_side(study: StudyResult) -> Comparison:
    """Each session by itself; the baseline is that of the verdicts."""
    comparison = compare(study.sessions)
    with_contrasts = [each for each in study.questions if each.contrasts]
    if len(with_contrasts) == 1 and comparison.baseline is not None:
        (question,) = with_contrasts
        base = {run.session.path for run in question.cells[question.baseline].runs}
        if comparison.sessions[comparison.baseline].path not in base:
            comparison = compare(sorted(study.sessions, key=lambda each: each.path not in base))
    first = comparison.baseline
    bases = {} if first is None else dict.fromkeys(range(len(comparison.sessions)), first)
    return with_judged(comparison, study.questions, bases)


def sections(answer: Answer, width: int, column: int) -> list[Section]:
    """All sections, the verdicts first; ``column``: the first column next to the baseline."""
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
    """The largest number of columns that a table leaves out."""
    if answer.sessions is not None:
        return rows.place_of(answer.sessions, width, 0).hidden
    questions = answer.shown.questions
    return max((cell_rows.place_of(each, width, 0).hidden for each in questions), default=0)


def against(answer: Answer) -> str:
    """The title's note on the baseline."""
    if answer.sessions is not None:
        return rows.against(answer.sessions)
    baselines = {clean(each.cells[each.baseline].label) for each in answer.study.questions}
    text = f"medians against {baselines.pop() if len(baselines) == 1 else 'their baselines'}"
    title = clean(answer.study.title)
    return text if answer.as_of else f"{title}{'' if title.endswith('?') else ':'} {text}"


def column_of(answer: Answer, path: str) -> int:
    """The column to scroll to so that the session at ``path`` is next to the baseline."""
    if answer.sessions is None:
        return cell_rows.column_of(answer.study, path)
    baseline = answer.sessions.baseline or 0
    others = [each.path for at, each in enumerate(answer.sessions.sessions) if at != baseline]
    return others.index(path) if path in others else 0


def history_cases(answer: Answer) -> list[Case]:
    """The cases of the histories: one with every run, or one per question with its cells."""
    if answer.sessions is not None:
        return [Case("", tuple(Group(label, (path,)) for label, path in _one_by_one(answer)))]
    return [
        Case(question.label, tuple(_group(cell) for cell in _ordered(question)))
        for question in answer.study.questions
    ]


def kernel_pairs(answer: Answer) -> list[Pair]:
    """The runs whose kernels are compared: those of each contrast, else each with the first."""
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
    """Names and paths of the sessions, the baseline first."""
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
    """The run that represents a cell: one with a profile if there is any."""
    return nearest_profiled(cell) or (cell.judged or cell.runs)[0].session
