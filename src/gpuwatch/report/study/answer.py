"""The beginning of a study's report: its question, its answer, and missing runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpuwatch.analysis.comparison.wording import after_word, of_cell
from gpuwatch.analysis.comparison.wording import heading as heading_of
from gpuwatch.analysis.results import Question, StudyResult, Sweep
from gpuwatch.analysis.study.letters import LegendEntry
from gpuwatch.analysis.study.not_run import not_run, to_come
from gpuwatch.report.study.document import Heading, Item, LabelledSentence, Section
from gpuwatch.report.study.hero import plot_of, short_labels


def heading(result: StudyResult) -> list[str]:
    """The study's title, and the title and question of its plan if there are any."""
    plan = result.plan
    planned = [] if plan is None else [plan.title, plan.question]
    return list(dict.fromkeys(each for each in (result.title, *planned) if each))


def legend(entries: Sequence[LegendEntry]) -> Section:
    """The letters that stand for long labels."""
    return Section("", tuple(LabelledSentence(each.letter, each.text) for each in entries))


def answer(result: StudyResult) -> Section:
    """Verdicts in words, the plot of their intervals, and missing runs."""
    items: list[Item] = []
    several = len(result.questions) > 1
    for question, name in zip(result.questions, short_labels(result.questions), strict=True):
        sentences = _sentences(question, alone=not result.sweeps)
        if several and len(sentences) == 1:
            items.append(replace(sentences[0], text=f"{name}: {sentences[0].text}"))
        else:
            items += [Heading(name), *sentences] if several and sentences else sentences
    over_all = general(result)
    if over_all and any(isinstance(item, Heading) for item in items):
        items.append(Heading("over all"))
    items += over_all
    if not items and len(result.sessions) > 1:
        items += [LabelledSentence("", each) for each in result.notes[:1]]
    plot = plot_of(result.questions)
    return Section("", (*items, *([plot] if plot else []), *missing(result)))


def general(result: StudyResult) -> tuple[LabelledSentence, ...]:
    """Sentences about several cells: means over cases, sweeps, noise."""
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
    """Runs that did not take place, with hints, and the number of runs still to come."""
    sentences = [LabelledSentence("", reason, hint) for reason, hint in not_run(result)]
    return (*sentences, *(LabelledSentence("", each) for each in to_come(result)))


def _sentences(question: Question, *, alone: bool) -> list[LabelledSentence]:
    sentences = []
    for each in question.contrasts:
        sentences.append(LabelledSentence(heading_of(each.verdict), after_word(each)))
        sentences += [LabelledSentence("", each.design)] if each.design else []
    if not sentences and alone:
        cells = [cell for cell in question.cells if len(cell.judged) > 1]
        sentences = [LabelledSentence("", of_cell(cell, question.metric)) for cell in cells]
    return sentences


def of_sweep(sweep: Sweep) -> str:
    """The label without the parameter, which starts the sentence: ``mnist-cnn in docker``."""
    return sweep.label.rpartition(": ")[0] or sweep.label
