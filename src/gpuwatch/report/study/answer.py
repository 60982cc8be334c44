"""The beginning of a study's report: what it asked, what it found, what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpuwatch.analysis.results import (
    Cell,
    Contrast,
    Kind,
    Question,
    StudyResult,
    Sweep,
    Verdict,
)
from gpuwatch.report.ranges import between
from gpuwatch.report.study import rest
from gpuwatch.report.study.document import Heading, Item, LabelledSentence, Plot, Section
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
    for question, name in zip(result.questions, _short(result.questions), strict=True):
        of = _said(question, alone=not result.sweeps)
        if several and len(of) == 1:
            items.append(replace(of[0], text=f"{name}: {of[0].text}"))
        else:
            items += [Heading(name), *of] if several and of else of
    over_all = general(result)
    if over_all and any(isinstance(item, Heading) for item in items):
        items.append(Heading("over all"))
    items += over_all
    if not items and len(result.sessions) > 1:
        items += [LabelledSentence("", each) for each in result.notes[:1]]
    plot = _plot(result.questions)
    return Section("", (*items, *([plot] if plot else []), *missing(result)))


def general(result: StudyResult) -> tuple[LabelledSentence, ...]:
    """What is said of several cells at once: means over cases, sweeps, noise."""
    several = len(result.sweeps) > 1
    return (
        *(LabelledSentence("overall", each.sentence) for each in result.overall),
        *(
            LabelledSentence(
                "sweep", f"{of_sweep(each)}: {each.sentence}" if several else each.sentence
            )
            for each in result.sweeps
        ),
        *(LabelledSentence("noise", each.sentence) for each in result.noise),
    )


def missing(result: StudyResult) -> tuple[LabelledSentence, ...]:
    """Runs that did not take place with how to fix them, and how many are still to come."""
    found = [LabelledSentence("", why, hint) for why, hint in rest.not_run(result)]
    if result.to_come:
        runs = "1 run is" if result.to_come == 1 else f"{result.to_come} runs are"
        found.append(
            LabelledSentence("", f"{runs} still to come: this is what the others say so far")
        )
    return tuple(found)


def word(verdict: Verdict) -> str:
    """The verdict as it stands before its sentence."""
    return verdict.kind.value.upper()


def said(contrast: Contrast) -> str:
    """Its sentence, for where the verdict stands before it: the word is not there twice."""
    if contrast.verdict.kind is not Kind.CANT_TELL:
        return contrast.sentence
    for told, shorter in ((": can't tell: ", ": "), (": can't tell against ", " against ")):
        if told in contrast.sentence:
            return contrast.sentence.replace(told, shorter, 1)
    return contrast.sentence


def _said(question: Question, *, alone: bool) -> list[LabelledSentence]:
    found = [LabelledSentence(word(each.verdict), said(each)) for each in question.contrasts]
    if not found and alone:
        cells = [cell for cell in question.cells if len(cell.judged) > 1]
        found = [LabelledSentence("", _of(cell, question.metric)) for cell in cells]
    return found


def _of(cell: Cell, metric: str) -> str:
    """What there is to say of a cell that nothing is compared with."""
    values = [run.value for run in cell.judged if run.value is not None]
    told = f"{cell.label}: {metric} {shown(cell.median, 's')}"
    told += f" ({between(min(values), max(values), 's')})" if len(values) > 1 else ""
    return f"{told}, {len(values)} of {len(cell.judged)} runs"


def of_sweep(sweep: Sweep) -> str:
    """Its label without the parameter, which its sentence begins with: ``mnist-cnn in docker``."""
    return sweep.label.rpartition(": ")[0] or sweep.label


def _short(questions: Sequence[Question]) -> list[str]:
    """Labels without the workload where that is the same in all: ``batch size 64``."""
    labels = [question.label for question in questions]
    heads = {label.partition(", ")[0] for label in labels}
    shorter = [label.partition(", ")[2] for label in labels]
    return shorter if len(heads) == 1 and all(shorter) else labels


def _plot(questions: Sequence[Question]) -> Plot | None:
    """The contrasts, by what tells them apart: the case, the environment, or both."""
    found = [
        (name, question.cells[each.other].label, each.verdict)
        for question, name in zip(questions, _short(questions), strict=True)
        for each in question.contrasts
    ]
    cases = len({name for name, _, _ in found}) > 1
    environments = len({label for _, label, _ in found}) > 1
    drawn = tuple(
        (f"{name}: {label}" if cases and environments else name if cases else label, verdict)
        for name, label, verdict in found
    )
    return Plot(drawn) if any(verdict.change for _, verdict in drawn) else None
