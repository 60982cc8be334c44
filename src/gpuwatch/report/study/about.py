"""The end of a study's report: sweeps, noise, notes, and how each number was obtained."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.analysis.results import NoiseFloor, Question, StudyResult, Sweep
from gpuwatch.analysis.statistics.power import POWER
from gpuwatch.analysis.study import notes as study_notes
from gpuwatch.analysis.study.cost import cost_text
from gpuwatch.analysis.study.interval_plot import percent
from gpuwatch.analysis.study.sweep import SweepRow, sweep_table, training_names
from gpuwatch.analysis.summary.missing import missing_notes
from gpuwatch.core import units
from gpuwatch.core.metrics import Method, label
from gpuwatch.report.study.document import Grid, Heading, Item, LabelledSentence, Section
from gpuwatch.report.study.why import middle_runs

_MOST_NOTES = 40


def sweeps(result: StudyResult) -> Section:
    """Throughput and step time against each parameter."""
    items: list[Item] = []
    for sweep in result.sweeps:
        rows = sweep_table(sweep)
        items += [Heading(sweep.label), _points(sweep, rows)]
        items += [LabelledSentence("", f"{row.value}: {row.why}") for row in rows if row.why]
    return Section("sweeps", tuple(items))


def _points(sweep: Sweep, rows: Sequence[SweepRow]) -> Grid:
    head = (sweep.parameter.replace("_", " "), "throughput", "step time", "against the best")
    cells = (
        (
            row.value,
            row.throughput,
            row.step_time,
            ", ".join(filter(None, (row.change, row.rank))),
            *row.training,
        )
        for row in rows
    )
    return Grid((*head, *training_names(sweep)), tuple(cells))


def costs(question: Question) -> Section:
    """What samples cost in each cell whose price was given."""
    items = (
        LabelledSentence(cell.label, cost_text(cell.cost))
        for cell in question.cells
        if cell.cost is not None
    )
    return Section("cost", tuple(items))


def noise(result: StudyResult) -> Section:
    """The differences that this machine can resolve, by number of blocks."""
    items: list[Item] = []
    for floor in result.noise:
        items += [Heading(f"{floor.label}: noise of one run {units.percent(floor.noise)}")]
        items += [_resolves(floor)] if floor.resolves else []
    return Section("noise floor", tuple(items))


def _resolves(floor: NoiseFloor) -> Grid:
    head = (
        "blocks",
        f"detected, {units.percent(POWER)} power",
        "called SLOWER",
        "SAME within reach",
    )
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
    notes_ = study_notes.every_note(result)
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
                sources.setdefault(f"{each.method.value}: {each.source}", {})[label(name)] = None
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
        sentences.append(
            "all steps, throughput: from the first line of the steady part to its end, slow steps "
            "and what happens between steps included"
        )
    if "whole run" in metrics:
        sentences.append("whole run: seconds from launch to end, start-up included")
    verdicts = [each.verdict for question in questions for each in question.contrasts]
    if any(each.paired for each in verdicts):
        sentences.append(
            "change: mean of the log-ratios of runs in one block, of every ten one trimmed at "
            "either end, the place in the block taken out"
        )
    if any(each.change and not each.paired for each in verdicts):
        sentences.append(
            "change: difference of the trimmed mean logarithms of unpaired runs; what drifted "
            "between them is in it"
        )
    if any(each.comparisons > 1 for each in verdicts):
        sentences.append("several comparisons share one level by Holm's procedure")
    return sentences
