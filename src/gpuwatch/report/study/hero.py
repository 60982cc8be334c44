"""The top of a study's report: a title, the answer in one sentence, and one chart."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from gpuwatch.analysis.comparison.wording import counted, per_cent, size_text, typical_step
from gpuwatch.analysis.comparison.wording import heading as heading_of
from gpuwatch.analysis.hardware import bound
from gpuwatch.analysis.hardware.mfu import MFU, MFU_AT_MAXIMUM_CLOCK
from gpuwatch.analysis.measured_value import MeasuredValue
from gpuwatch.analysis.results import Contrast, Kind, Overall, Question, StudyResult, Sweep
from gpuwatch.analysis.statistics.intervals import ALPHA, Interval
from gpuwatch.analysis.study.interval_plot import rows_of
from gpuwatch.analysis.summary.identity import session_title
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core import units
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.report import changes
from gpuwatch.report.study.document import Plot
from gpuwatch.report.study.why import middle_runs
from gpuwatch.session.reading.status import State

_MOST = 3
"""Most comparisons that have a sentence each; more are counted by verdict."""
_MOST_DRAWN = 16
"""Most comparisons in the chart."""
_UNAVAILABLE = "unavailable"
_BOUNDS = {
    bound.MEMORY: "memory-bound",
    bound.COMPUTE: "compute-bound",
    bound.HOST: "host-bound",
    bound.NEITHER: "below both ceilings",
    bound.UNKNOWN: _UNAVAILABLE,
}


@dataclass(frozen=True)
class Statement:
    """A sentence that answers the study's question."""

    claim: str
    """``B is 12.7 % faster than A``."""
    detail: str = ""
    """What follows in parentheses: ``11.0 to 14.3 %``."""


@dataclass(frozen=True)
class Figure:
    """One of the main figures of a single run."""

    name: str
    value: str
    """``unavailable`` if unknown."""
    note: str
    """How it was obtained, or why it is unknown."""


@dataclass(frozen=True)
class Bar:
    name: str
    value: float
    text: str
    """The value as people read it."""


@dataclass(frozen=True)
class Bars:
    """Values on a common axis from zero."""

    title: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Hero:
    title: str
    """``B against A``."""
    statements: tuple[Statement, ...]
    figures: tuple[Figure, ...] = ()
    """Of a single run."""
    chart: Plot | Bars | None = None


def hero(result: StudyResult) -> Hero:
    """The top of the report of ``result``."""
    contrasts = [each for question in result.questions for each in question.contrasts]
    run = None if contrasts or result.sweeps else _only_run(result)
    if run is not None:
        return Hero(session_title(run), (_of_run(run),), _figures(run), _phases(run))
    if contrasts:
        return Hero(_title(result), _answers(result, contrasts), (), _changes(result))
    statements = tuple(_of_sweep(each) for each in result.sweeps)
    chart = _throughput(result.sweeps[0]) if len(result.sweeps) == 1 else None
    return Hero(result.title, statements or (_of_nothing(result),), (), chart)


def plot_of(questions: Sequence[Question]) -> Plot | None:
    """All contrasts, labelled by case, environment, or both; ``None`` without any interval."""
    contrasts = [
        (name, question.cells[each.other].label, each.verdict)
        for question, name in zip(questions, short_labels(questions), strict=True)
        for each in question.contrasts
    ]
    cases = len({name for name, _, _ in contrasts}) > 1
    environments = len({label for _, label, _ in contrasts}) > 1
    drawn = tuple(
        row
        for name, label, verdict in contrasts
        for row in rows_of(
            f"{name}: {label}" if cases and environments else name if cases else label, verdict
        )
    )
    return Plot(drawn) if any(verdict.change for _, verdict in drawn) else None


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


def _changes(result: StudyResult) -> Plot | Bars | None:
    """The intervals of all changes; without any, the medians of the first question's cells."""
    plot = plot_of(result.questions)
    if plot is not None:
        return plot if len(plot.contrasts) <= _MOST_DRAWN else None
    question = next(each for each in result.questions if each.contrasts)
    bars = tuple(
        Bar(cell.label, cell.median, units.quantity(cell.median, "s"))
        for cell in question.cells
        if cell.median is not None
    )
    return Bars(question.metric, bars) if bars else None


def _of_sweep(sweep: Sweep) -> Statement:
    claim, _, rest = sweep.sentence.partition("; ")
    return Statement(claim, rest)


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


def _of_nothing(result: StudyResult) -> Statement:
    runs = counted(len(result.sessions), "run")
    return Statement(f"Nothing to compare: {runs}, one environment or none")


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
        Figure("bound", _BOUNDS.get(verdict.bound, _UNAVAILABLE), verdict.text),
    )


def _mfu(name: str, mfu: MeasuredValue) -> Figure:
    return _figure(name, mfu.value, "1", f"{mfu.method.value}: {mfu.source}", mfu.reason or "")


def _figure(name: str, value: float | None, unit: str, how: str, why: str) -> Figure:
    if value is None:
        return Figure(name, _UNAVAILABLE, why)
    return Figure(name, units.quantity(value, unit).removesuffix(" /s"), how)


def _phases(session: Summary) -> Bars | None:
    """Where the step's time goes."""
    bars = tuple(
        Bar(name, seconds, units.milliseconds(seconds))
        for name, seconds in session.steps.phases.items()
    )
    return Bars("phases of a step, mean", bars) if bars else None
