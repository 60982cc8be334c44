"""The beginning of a study's report: what it asked, what it found, what is missing."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.analysis.results import Cell, Question, StudyResult, Verdict
from gpuwatch.report.ranges import between
from gpuwatch.report.study_document import Heading, Item, Plot, Said, Section
from gpuwatch.report.values import shown


def heading(result: StudyResult) -> list[str]:
    """The study's title, and what it asks where its plan says that."""
    plan = result.plan
    asked = [] if plan is None else [plan.title, plan.question]
    return list(dict.fromkeys(each for each in (result.title, *asked) if each))


def answer(result: StudyResult) -> Section:
    """Verdicts in words, the plot of their intervals, and what did not take place."""
    items: list[Item] = []
    several = len(result.questions) > 1
    for question in result.questions:
        said = _said(question, alone=not result.sweeps)
        items += [Heading(question.label), *said] if several and said else said
    over_all = general(result)
    items += [Heading("over all"), *over_all] if items and several and over_all else over_all
    plot = _plot(result.questions)
    return Section("", (*items, *([plot] if plot else []), *missing(result)))


def general(result: StudyResult) -> tuple[Said, ...]:
    """What is said of several cells at once: means over cases, sweeps, noise."""
    return (
        *(Said("overall", each.sentence) for each in result.overall),
        *(Said("sweep", each.sentence) for each in result.sweeps),
        *(Said("noise", each.sentence) for each in result.noise),
    )


def missing(result: StudyResult) -> tuple[Said, ...]:
    """Runs that did not take place with what mends them, and how many are still to come."""
    found = [Said("", each.why, each.fix) for each in result.not_run]
    if result.to_come:
        runs = "1 run is" if result.to_come == 1 else f"{result.to_come} runs are"
        found.append(Said("", f"{runs} still to come: this is what the others say so far"))
    return tuple(found)


def word(verdict: Verdict) -> str:
    """The verdict as it stands before its sentence."""
    return verdict.kind.value.upper()


def _said(question: Question, *, alone: bool) -> list[Item]:
    said: list[Item] = [Said(word(each.verdict), each.sentence) for each in question.contrasts]
    if not said and alone:
        cells = [cell for cell in question.cells if len(cell.judged) > 1]
        said = [Said("", _of(cell, question.metric)) for cell in cells]
    return said


def _of(cell: Cell, metric: str) -> str:
    """What there is to say of a cell that nothing is compared with."""
    values = [run.value for run in cell.judged if run.value is not None]
    told = f"{cell.label}: {metric} {shown(cell.median, 's')}"
    told += f" ({between(min(values), max(values), 's')})" if len(values) > 1 else ""
    return f"{told}, {len(values)} of {len(cell.judged)} runs"


def _plot(questions: Sequence[Question]) -> Plot | None:
    """The contrasts that have an interval or a word, those of several cases by both names."""
    found = tuple(
        (
            f"{question.label}: {question.cells[each.other].label}"
            if len(questions) > 1
            else question.cells[each.other].label,
            each.verdict,
        )
        for question in questions
        for each in question.contrasts
    )
    return Plot(found) if any(verdict.change for _, verdict in found) else None
