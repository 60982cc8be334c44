"""The top of a report: its title, verdicts in words, and one chart or figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from gpuwatch.analysis.comparison.wording import after_word, of_cell, value_name
from gpuwatch.analysis.comparison.wording import heading as heading_of
from gpuwatch.analysis.hardware.mfu import MFU
from gpuwatch.analysis.measured_value import MeasuredValue
from gpuwatch.analysis.results import Cost, Kind, Question, StudyResult, Sweep
from gpuwatch.analysis.study.grouping import LONGEST
from gpuwatch.analysis.study.interval_plot import is_twofold, rows_of
from gpuwatch.analysis.study.not_run import not_run, to_come
from gpuwatch.analysis.summary.identity import session_title
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.analysis.summary.training import lost
from gpuwatch.core import units
from gpuwatch.core.metrics import Method
from gpuwatch.core.text import clean
from gpuwatch.report.document import blocks
from gpuwatch.report.document.efficiency import headline, sentence

_MOST = 3
"""Most comparisons that the title names."""
UNAVAILABLE = "unavailable"


def top(result: StudyResult) -> blocks.Document:
    """The title of the report of ``result``, the answer in words, and one chart or the figures of a
    single run."""
    contrasts = [each for question in result.questions for each in question.contrasts]
    figures: tuple[blocks.Figure, ...] = ()
    chart: blocks.Intervals | blocks.Bars | None = None
    answer = _verdicts(result)
    names = {session_title(each) for each in result.sessions}
    title = names.pop() if len(names) == 1 and result.plan is None else result.title
    if contrasts:
        title, chart = _title(result), _changes(result)
    elif result.sweeps:
        chart = _throughput(result.sweeps[0]) if len(result.sweeps) == 1 else None
    elif len(result.sessions) == 1:
        (run,) = result.sessions
        costs = [cell.cost for question in result.questions for cell in question.cells]
        if run.workload.get("kind") != "machine":
            figures = _figures(run, next(filter(None, costs), None))
        title = session_title(run)
        chart = _bars("phases of a step, mean", run.steps.phases.items(), units.milliseconds)
        told = (sentence(lost(run.training)), headline(run))
        answer = tuple(blocks.Sentence("", each) for each in told if each)
    missing = [blocks.Sentence("", reason, hint) for reason, hint in not_run(result)]
    missing += [blocks.Sentence("", each) for each in to_come(result)]
    return blocks.Document(
        title, figures=figures, chart=chart, answer=answer, missing=tuple(missing)
    )


def _verdicts(result: StudyResult) -> tuple[blocks.Item, ...]:
    """Verdicts in words, of each question and over all."""
    items: list[blocks.Item] = []
    several = len(result.questions) > 1
    for question, name in zip(result.questions, short_labels(result.questions), strict=True):
        sentences = _sentences(question, alone=not result.sweeps)
        if several and len(sentences) == 1:
            items.append(replace(sentences[0], text=f"{name}: {sentences[0].text}"))
        else:
            items += [blocks.Heading(name), *sentences] if several and sentences else sentences
    sweeps = len(result.sweeps) > 1
    over_all = [
        *(blocks.Sentence("overall", each.sentence) for each in result.overall),
        *(
            # The label without the parameter, which starts the sentence: ``mnist-cnn in docker``.
            blocks.Sentence(
                "sweep",
                f"{each.label.rpartition(': ')[0] or each.label}: {each.sentence}"
                if sweeps
                else each.sentence,
            )
            for each in result.sweeps
        ),
        *(blocks.Sentence("noise", each.sentence) for each in result.noise),
    ]
    if over_all and any(isinstance(item, blocks.Heading) for item in items):
        items.append(blocks.Heading("over all"))
    items += over_all
    if not items and len(result.sessions) > 1:
        items += [blocks.Sentence("", each) for each in result.notes[:1]]
    return tuple(items)


def _sentences(question: Question, *, alone: bool) -> list[blocks.Sentence]:
    sentences = []
    for each in question.contrasts:
        verdict = each.verdict
        sentences.append(blocks.Sentence(heading_of(verdict), after_word(each), kind=verdict.kind))
        sentences += [blocks.Sentence("", each.design)] if each.design else []
    if not sentences and alone:
        cells = [cell for cell in question.cells if cell.judged and len(cell.runs) > 1]
        sentences = [blocks.Sentence("", of_cell(cell, question.metric)) for cell in cells]
    return sentences


def _intervals(questions: Sequence[Question]) -> blocks.Intervals | None:
    """All contrasts, labelled by case, environment, or both; ``None`` without any interval."""
    contrasts = [
        (name, question, each)
        for question, name in zip(questions, short_labels(questions), strict=True)
        for each in question.contrasts
    ]
    cases = len({name for name, _, _ in contrasts}) > 1
    environments = len({of.cells[each.other].label for _, of, each in contrasts}) > 1
    both = any(is_twofold(each.verdict) for _, _, each in contrasts)  # each row named, or none
    changes = []
    for name, question, contrast in contrasts:
        label = question.cells[contrast.other].label
        label = f"{name}: {label}" if cases and environments else name if cases else label
        told = rows_of(label, contrast.verdict) if both else [(label, contrast.verdict)]
        for shown, verdict in told:
            total = verdict is contrast.verdict.total
            ratios = contrast.total_ratios if total else contrast.ratios
            base = question.cells[contrast.baseline].label
            changes.append(blocks.Change(shown, base, verdict, tuple(ratios)))
    return (
        blocks.Intervals(tuple(changes)) if any(each.verdict.change for each in changes) else None
    )


def short_labels(questions: Sequence[Question]) -> list[str]:
    """Labels, without the workload if all have the same: ``batch size 64``."""
    labels = [question.label for question in questions]
    heads = {label.partition(", ")[0] for label in labels}
    shorter = [label.partition(", ")[2] for label in labels]
    return shorter if len(heads) == 1 and all(shorter) else labels


def _title(result: StudyResult) -> str:
    """``docker and apptainer against bare, mnist-cnn``, if all questions compare the same."""
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
    title = f"{', '.join(first)}{' and ' if first else ''}{last} against {bases.pop()}"
    runs = [run for of in result.questions for cell in of.cells for run in cell.runs]
    works = {clean(run.session.workload.get("name") or "", LONGEST) for run in runs}
    return ", ".join((title, *(works - {"", *title.split()}))) if len(works) == 1 else title


def _changes(result: StudyResult) -> blocks.Intervals | blocks.Bars | None:
    """The intervals of all changes; without any, the means of the first question whose cells may
    be compared."""
    intervals = _intervals(result.questions)
    if intervals is not None:
        return intervals
    judged = (
        question
        for question in result.questions
        if any(each.verdict.kind is not Kind.INVALID for each in question.contrasts)
    )
    if (question := next(judged, None)) is None:
        return None
    means = ((cell.label, cell.mean) for cell in question.cells)
    return _bars(value_name(question.metric), means, lambda mean: units.quantity(mean, "s"))


def _throughput(sweep: Sweep) -> blocks.Bars | None:
    rates = (
        (units.fact(sweep.parameter, point.value), point.samples_per_second)
        for point in sweep.points
    )
    title = f"throughput by {sweep.parameter.replace('_', ' ')}"
    return _bars(title, rates, lambda rate: units.quantity(rate, "{sample}/s"))


def _bars(
    title: str, values: Iterable[tuple[str, float | None]], shown: Callable[[float], str]
) -> blocks.Bars | None:
    """A bar for each known value; ``None`` if none is known."""
    bars = tuple(
        blocks.Bar(name, value, shown(value)) for name, value in values if value is not None
    )
    return blocks.Bars(title, bars) if bars else None


def _figures(session: Summary, cost: Cost | None) -> tuple[blocks.Figure, ...]:
    """Step time, throughput, MFU, energy, memory, and what samples cost if a price is known."""
    steps, of = session.steps, session.efficiency
    why = steps.reason or "the program reports no steps"
    peak, energy, memory = of.mfu_peaks[0].ceiling, of.energy, session.peak_gpu_memory
    over = "" if peak is None else f"{peak.text}, {units.quantity(peak.value, peak.unit)}"
    mean = "" if steps.mean_seconds is None else units.quantity(steps.mean_seconds, "s")
    joules, per = energy.gpu_per_sample, "sample"
    if joules.value is None:
        joules, per = energy.gpu_per_step, "step"
    figures = [
        _figure(
            "step time, median",
            steps.median_seconds,
            "s",
            f"measured: {steps.count} timed steps, mean {mean}",
            why,
        ),
        _figure(
            "throughput, mean",
            steps.samples_per_second,
            "{sample}/s",
            "counted: samples of the timed steps over their time",
            steps.reason or "the program reports no samples",
        ),
        _known(MFU, of.mfu, f"of the dense {over}"),
        _known(f"energy a {per}", joules, joules.source.partition(" (")[0]),
        _known("peak GPU memory", memory, memory.source),
    ]
    if cost is not None and cost.per_million is not None:
        paid = f"{units.three_figures(cost.per_million)} EUR"
        how = f"at {cost.per_hour:.2f} EUR an hour, steady mean"
        figures.append(blocks.Figure("a million samples", paid, how))
    return tuple(figures)


def _known(name: str, figure: MeasuredValue, how: str) -> blocks.Figure:
    way, why = f"{figure.method.value}: {how}", figure.reason or ""
    told = _figure(name, figure.value, figure.unit, way, why)
    bound = "≤" if figure.method is Method.BOUND else ""
    return replace(told, value=f"{bound}{told.value}{units.give_or_take(figure.error)}")


def _figure(name: str, value: float | None, unit: str, how: str, why: str) -> blocks.Figure:
    if value is None:
        return blocks.Figure(name, UNAVAILABLE, why)
    return blocks.Figure(name, units.quantity(value, unit), how)
