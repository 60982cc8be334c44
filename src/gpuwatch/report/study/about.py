"""The end of a study's report: sweeps, noise, notes, and how each number was obtained."""

from __future__ import annotations

from gpuwatch.analysis.comparison.wording import change_text
from gpuwatch.analysis.results import NoiseFloor, Question, StudyResult, Sweep, SweepPoint
from gpuwatch.analysis.study import notes as study_notes
from gpuwatch.analysis.study.interval_plot import percent
from gpuwatch.analysis.summary.missing import missing_notes
from gpuwatch.analysis.summary.training import NAMES, unit_of
from gpuwatch.core import units
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import JSON
from gpuwatch.report.study.document import Grid, Heading, Item, LabelledSentence, Section
from gpuwatch.report.study.why import middle_runs

_MOST_NOTES = 40


def sweeps(result: StudyResult) -> Section:
    """Throughput and step time against each parameter."""
    items: list[Item] = []
    for sweep in result.sweeps:
        items += [Heading(sweep.label), _points(sweep)]
        items += [
            LabelledSentence("", f"{_value(each.value)}: {each.why}")
            for each in sweep.points
            if each.why
        ]
    return Section("sweeps", tuple(items))


def _points(sweep: Sweep) -> Grid:
    head = (
        sweep.parameter.replace("_", " "),
        "throughput",
        "step time",
        "against the best",
        *(NAMES[key] for key in trained(sweep)),
    )
    rows = tuple(
        (
            _value(point.value),
            units.quantity(point.samples_per_second, "{sample}/s"),
            units.quantity(point.step_seconds, "s"),
            _against_best(point, best=at == sweep.best),
            *(units.quantity(getattr(point, key), unit) for key, unit in trained(sweep).items()),
        )
        for at, point in enumerate(sweep.points)
    )
    return Grid(head, rows)


def trained(sweep: Sweep) -> dict[str, str]:
    """The loss and accuracies that at least one point has, with their units."""
    return {
        key: unit_of(key)
        for key in NAMES
        if any(getattr(point, key) is not None for point in sweep.points)
    }


def _against_best(point: SweepPoint, *, best: bool) -> str:
    if best:
        return "best"
    change = point.throughput
    if change is None:
        return ""
    difference = change_text(change)
    return f"{difference}, tied" if point.tied else difference


def _value(value: JSON) -> str:
    return "default" if value is None else str(value)


def noise(result: StudyResult) -> Section:
    """The differences that this machine can resolve, by number of blocks."""
    items: list[Item] = []
    for floor in result.noise:
        items += [Heading(f"{floor.label}: noise of one run {units.percent(floor.noise)}")]
        items += [_resolves(floor)] if floor.resolves else []
    return Section("noise floor", tuple(items))


def _resolves(floor: NoiseFloor) -> Grid:
    head = ("blocks", "told from none", "called slower", "no change called same")
    rows = tuple(
        (
            str(each.blocks),
            percent(each.excludes_zero),
            percent(each.beyond_margin),
            "yes" if each.same else "no",
        )
        for each in floor.resolves
    )
    return Grid(head, rows)


def notes(result: StudyResult) -> Section:
    """Notes on the reliability of the numbers: of the study, its questions and its runs."""
    notes_ = list(
        dict.fromkeys([*study_notes.notes(result), *study_notes.warnings(result), *result.notices])
    )
    items = [LabelledSentence("", each) for each in notes_[:_MOST_NOTES]]
    if more := len(notes_) - len(items):
        items.append(LabelledSentence("", f"{more} more notes: summary.json has all of them"))
    return Section("notes", tuple(items))


def method(result: StudyResult) -> Section:
    """How the primary metric, the intervals and every sampled metric were obtained."""
    items: list[Item] = [LabelledSentence("", text) for text in _primary(result.questions)]
    sessions = [
        run.session for question in result.questions for run in middle_runs(question) if run
    ]
    sources: dict[str, dict[str, None]] = {}
    for session in sessions:
        for name, each in session.metrics.items():
            if each.method is not Method.UNAVAILABLE:
                sources.setdefault(f"{each.method.value}: {each.source}", {})[name] = None
    evidence = [
        each
        for question in result.questions
        for contrast in question.contrasts
        for each in contrast.explanation.evidence
        if each.source
    ]
    for one in evidence:
        how = f"{one.method.value if one.method else 'recorded'}: {one.source}"
        sources.setdefault(how, {})[one.rung] = None
    items += [LabelledSentence("", f"{how}: {', '.join(names)}") for how, names in sources.items()]
    items += [LabelledSentence("", note) for note in missing_notes(sessions)]
    return Section("how each number was obtained", tuple(items))


def _primary(questions: tuple[Question, ...]) -> list[str]:
    metrics = {question.metric for question in questions}
    sentences = []
    if "step time" in metrics:
        sentences.append(
            "step time: median of the steady part of one run's timed steps, of which none was "
            "profiled; each run is a process of its own, and one value"
        )
    if "whole run" in metrics:
        sentences.append("whole run: seconds from launch to end, start-up included")
    verdicts = [each.verdict for question in questions for each in question.contrasts]
    if any(each.paired for each in verdicts):
        sentences.append(
            "change: mean of the log-ratios of runs in one block, with the interval of Student's t"
        )
    if any(each.change and not each.paired for each in verdicts):
        sentences.append(
            "change: difference of the mean logarithms of unpaired runs, with a t interval; what "
            "drifted between them is in it"
        )
    if any(each.comparisons > 1 for each in verdicts):
        sentences.append("several comparisons share one level by Holm's procedure")
    return sentences
