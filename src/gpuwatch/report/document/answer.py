"""The top of a report: its title, the answer in a sentence, one chart, and verdicts in words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from gpuwatch.analysis.comparison.wording import (
    after_word,
    counted,
    of_cell,
    per_cent,
    size_text,
    typical_step,
)
from gpuwatch.analysis.comparison.wording import heading as heading_of
from gpuwatch.analysis.hardware import bound
from gpuwatch.analysis.hardware.mfu import MFU, MFU_AT_MAXIMUM_CLOCK
from gpuwatch.analysis.measured_value import MeasuredValue
from gpuwatch.analysis.results import Contrast, Kind, Overall, Question, StudyResult, Sweep
from gpuwatch.analysis.statistics.intervals import ALPHA, Interval
from gpuwatch.analysis.study.interval_plot import rows_of
from gpuwatch.analysis.study.not_run import not_run, to_come
from gpuwatch.analysis.summary.identity import session_title
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core import units
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.report import changes
from gpuwatch.report.document.blocks import (
    Bar,
    Bars,
    Change,
    Figure,
    Heading,
    Intervals,
    Item,
    Sentence,
    Statement,
)
from gpuwatch.report.document.reasons import middle_runs
from gpuwatch.session.reading.status import State

_MOST = 3
"""Most comparisons that have a sentence each; more are counted by verdict."""
UNAVAILABLE = "unavailable"
_BOUNDS = {
    bound.MEMORY: "memory-bound",
    bound.COMPUTE: "compute-bound",
    bound.HOST: "host-bound",
    bound.NEITHER: "below both ceilings",
    bound.UNKNOWN: UNAVAILABLE,
}


@dataclass(frozen=True)
class Top:
    title: str
    """``B against A``."""
    statements: tuple[Statement, ...]
    figures: tuple[Figure, ...] = ()
    """Of a single run."""
    chart: Intervals | Bars | None = None


def top(result: StudyResult) -> Top:
    """The title of the report of ``result``, its answer in a sentence or a few, and its chart."""
    contrasts = [each for question in result.questions for each in question.contrasts]
    run = None if contrasts or result.sweeps else _only_run(result)
    if run is not None:
        return Top(session_title(run), (_of_run(run),), _figures(run), _phases(run))
    if contrasts:
        return Top(_title(result), _answers(result, contrasts), (), _changes(result))
    told = (each.sentence.partition("; ") for each in result.sweeps)
    statements = tuple(Statement(claim, rest) for claim, _, rest in told)
    chart = _throughput(result.sweeps[0]) if len(result.sweeps) == 1 else None
    runs = counted(len(result.sessions), "run")
    nothing = Statement(f"Nothing to compare: {runs}, one environment or none")
    return Top(result.title, statements or (nothing,), (), chart)


def verdicts(result: StudyResult) -> tuple[Item, ...]:
    """Verdicts in words, of each question and over all."""
    items: list[Item] = []
    several = len(result.questions) > 1
    for question, name in zip(result.questions, short_labels(result.questions), strict=True):
        sentences = _sentences(question, alone=not result.sweeps)
        if several and len(sentences) == 1:
            items.append(replace(sentences[0], text=f"{name}: {sentences[0].text}"))
        else:
            items += [Heading(name), *sentences] if several and sentences else sentences
    sweeps = len(result.sweeps) > 1
    over_all = [
        *(Sentence("overall", each.sentence) for each in result.overall),
        *(
            # The label without the parameter, which starts the sentence: ``mnist-cnn in docker``.
            Sentence(
                "sweep",
                f"{each.label.rpartition(': ')[0] or each.label}: {each.sentence}"
                if sweeps
                else each.sentence,
            )
            for each in result.sweeps
        ),
        *(Sentence("noise", each.sentence) for each in result.noise),
    ]
    if over_all and any(isinstance(item, Heading) for item in items):
        items.append(Heading("over all"))
    items += over_all
    if not items and len(result.sessions) > 1:
        items += [Sentence("", each) for each in result.notes[:1]]
    return tuple(items)


def missing(result: StudyResult) -> tuple[Sentence, ...]:
    """Runs that did not take place, with hints, and the number of runs still to come."""
    sentences = [Sentence("", reason, hint) for reason, hint in not_run(result)]
    return (*sentences, *(Sentence("", each) for each in to_come(result)))


def _sentences(question: Question, *, alone: bool) -> list[Sentence]:
    sentences = []
    for each in question.contrasts:
        verdict = each.verdict
        sentences.append(Sentence(heading_of(verdict), after_word(each), kind=verdict.kind))
        sentences += [Sentence("", each.design)] if each.design else []
    if not sentences and alone:
        cells = [cell for cell in question.cells if len(cell.judged) > 1]
        sentences = [Sentence("", of_cell(cell, question.metric)) for cell in cells]
    return sentences


def _intervals(questions: Sequence[Question]) -> Intervals | None:
    """All contrasts, labelled by case, environment, or both; ``None`` without any interval."""
    contrasts = [
        (name, question, each)
        for question, name in zip(questions, short_labels(questions), strict=True)
        for each in question.contrasts
    ]
    cases = len({name for name, _, _ in contrasts}) > 1
    environments = len({of.cells[each.other].label for _, of, each in contrasts}) > 1
    changes = []
    for name, question, contrast in contrasts:
        label = question.cells[contrast.other].label
        label = f"{name}: {label}" if cases and environments else name if cases else label
        for shown, verdict in rows_of(label, contrast.verdict):
            total = verdict is contrast.verdict.total
            ratios = contrast.total_ratios if total else contrast.ratios
            base = question.cells[contrast.baseline].label
            changes.append(Change(shown, base, verdict, tuple(ratios)))
    return Intervals(tuple(changes)) if any(each.verdict.change for each in changes) else None


def short_labels(questions: Sequence[Question]) -> list[str]:
    """Labels, without the workload if all have the same: ``batch size 64``."""
    labels = [question.label for question in questions]
    heads = {label.partition(", ")[0] for label in labels}
    shorter = [label.partition(", ")[2] for label in labels]
    return shorter if len(heads) == 1 and all(shorter) else labels


def _title(result: StudyResult) -> str:
    """``B and C against A``, if all questions compare the same."""
    pairs = dict.fromkeys(
        (question.cells[each.baseline].label, question.cells[each.other].label)
        for question in result.questions
        for each in question.contrasts
    )
    bases = {base for base, _ in pairs}
    others = [other for _, other in pairs]
    if len(bases) > 1 or len(others) > _MOST:
        return result.title
    *first, last = others
    return f"{', '.join(first)}{' and ' if first else ''}{last} against {bases.pop()}"


def _answers(result: StudyResult, contrasts: Sequence[Contrast]) -> tuple[Statement, ...]:
    if 0 < len(result.overall) <= _MOST:
        return tuple(_over_cases(each) for each in result.overall)
    if len(contrasts) > _MOST:
        counts = Counter(each.verdict.kind for each in contrasts)
        kinds = ", ".join(f"{counts[kind]} {kind.word}" for kind in Kind if counts[kind])
        return (Statement(f"{len(contrasts)} comparisons: {kinds}"),)
    several = len(result.questions) > 1
    return tuple(
        _of_contrast(question, each, f"{name}: " if several else "")
        for question, name in zip(result.questions, short_labels(result.questions), strict=True)
        for each in question.contrasts
    )


def _over_cases(overall: Overall) -> Statement:
    """Of several cases together; where the interval holds zero the headline has no number."""
    change = overall.change
    who = f"{overall.environment} against {overall.baseline}"
    over = f"{who} over {counted(overall.cases, 'case')}: "
    size = f"{overall.metric} {changes.estimate(change.estimate, change)}"
    ends = f"{changes.ends(change)} %, geometric mean"
    if change.low <= 0 <= change.high:
        return Statement(f"{over}no difference shown", f"{size}, {ends}")
    return Statement(over + size, ends)


def _of_contrast(question: Question, contrast: Contrast, case: str) -> Statement:
    first, other = (question.cells[at].label for at in (contrast.baseline, contrast.other))
    verdict, kind = contrast.verdict, contrast.verdict.kind
    change = verdict.leading.change
    if kind in (Kind.SLOWER, Kind.FASTER, Kind.SMALL) and change is not None:
        size, ends = size_text(change)
        word = "slower" if change.estimate > 0 else "faster"
        small = f", within the margin of {per_cent(verdict.margin)}" if kind is Kind.SMALL else ""
        claim = f"{case}{other} is {size} {word} than {first}{small}"
        which = f", over all steps: {typical_step(verdict)}" if verdict.by_total else ""
        return Statement(claim, f"{ends}{_level(change)}{which}")
    told = ""
    if change is not None:
        estimate = changes.estimate(change.estimate, change)
        told = f"{estimate}, {changes.ends(change)} %{_level(change)}"
    if kind is Kind.SAME:
        less = f"differ by less than {per_cent(verdict.margin)}"
        return Statement(f"{case}{other} and {first} {less}", told)
    if kind is Kind.INVALID:
        reasons = "; ".join(verdict.reasons)
        return Statement(f"{case}{other} and {first} are not comparable", reasons)
    if kind is Kind.CANT_TELL:
        claim = f"{case}Can't tell whether {other} is slower or faster than {first}"
        return Statement(claim, told or "; ".join(verdict.reasons))
    no_verdict = heading_of(verdict).replace(kind.word, "No verdict", 1)
    return Statement(f"{case}{no_verdict} on {other} against {first}", told)


def _level(interval: Interval) -> str:
    """The confidence of ``interval``, unless it is the usual 95 %."""
    usual = math.isclose(interval.level, 1 - ALPHA)
    return "" if usual else f", {100 * interval.level:.3g} % interval"


def _changes(result: StudyResult) -> Intervals | Bars | None:
    """The intervals of all changes; without any, the medians of the first question's cells."""
    intervals = _intervals(result.questions)
    if intervals is not None:
        return intervals
    question = next(each for each in result.questions if each.contrasts)
    bars = tuple(
        Bar(cell.label, cell.median, units.quantity(cell.median, "s"))
        for cell in question.cells
        if cell.median is not None
    )
    return Bars(question.metric, bars) if bars else None


def _throughput(sweep: Sweep) -> Bars | None:
    bars = tuple(
        Bar(
            units.fact(sweep.parameter, point.value),
            point.samples_per_second,
            units.quantity(point.samples_per_second, "{sample}/s"),
        )
        for point in sweep.points
        if point.samples_per_second is not None
    )
    return Bars(f"throughput by {sweep.parameter.replace('_', ' ')}", bars) if bars else None


def _only_run(result: StudyResult) -> Summary | None:
    """The run in the middle of the only cell; ``None`` if there are several cells or none."""
    if len(result.questions) != 1 or len(result.questions[0].cells) != 1:
        return None
    (run,) = middle_runs(result.questions[0])
    return None if run is None else run.session


def _of_run(session: Summary) -> Statement:
    seconds, rate = session.steps.median_seconds, session.steps.samples_per_second
    if session.status.state is not State.FINISHED or seconds is None:
        return Statement(session.status.text)
    samples = "" if rate is None else f", {units.digits(rate)} samples/s"
    return Statement(f"A step takes {units.quantity(seconds, 's')}{samples}")


def _figures(session: Summary) -> tuple[Figure, ...]:
    """Step time, throughput, MFU and what bounds the run."""
    steps, of = session.steps, session.efficiency
    verdict = of.roofline.verdict
    why = steps.reason or "the program reports no steps"
    return (
        _figure(
            "step time",
            steps.median_seconds,
            "s",
            f"measured: median of {steps.count} timed steps",
            why,
        ),
        _figure(
            "samples/s",
            steps.samples_per_second,
            "{sample}/s",
            "counted: samples of the timed steps over their time",
            steps.reason or "the program reports no samples",
        ),
        _mfu(MFU, of.mfu),
        _mfu(MFU_AT_MAXIMUM_CLOCK, of.mfu_at_maximum_clock),
        Figure("bound", _BOUNDS.get(verdict.bound, UNAVAILABLE), verdict.text),
    )


def _mfu(name: str, mfu: MeasuredValue) -> Figure:
    return _figure(name, mfu.value, "1", f"{mfu.method.value}: {mfu.source}", mfu.reason or "")


def _figure(name: str, value: float | None, unit: str, how: str, why: str) -> Figure:
    if value is None:
        return Figure(name, UNAVAILABLE, why)
    return Figure(name, units.quantity(value, unit).removesuffix(" /s"), how)


def _phases(session: Summary) -> Bars | None:
    """Where the step's time goes."""
    bars = tuple(
        Bar(name, seconds, units.milliseconds(seconds))
        for name, seconds in session.steps.phases.items()
    )
    return Bars("phases of a step, mean", bars) if bars else None
