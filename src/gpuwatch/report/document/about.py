"""The end of a study's report: sweeps, noise, notes, and how each number was obtained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath

from gpuwatch.analysis.results import NoiseFloor, Question, StudyResult, Sweep
from gpuwatch.analysis.statistics.power import POWER
from gpuwatch.analysis.study import notes as study_notes
from gpuwatch.analysis.study.cost import cost_text
from gpuwatch.analysis.study.interval_plot import percent
from gpuwatch.analysis.study.sweep import RANKS, SweepRow, sweep_table, training_names
from gpuwatch.analysis.summary.missing import missing_notes
from gpuwatch.core import units
from gpuwatch.core.metrics import Method, label
from gpuwatch.report.document.blocks import (
    PAGE,
    Heading,
    Item,
    Section,
    Sentence,
    SweepChart,
    Table,
)
from gpuwatch.report.document.origin import device, host, started
from gpuwatch.report.document.quantities import every_run
from gpuwatch.report.document.reasons import middle_runs

_MOST_NOTES = 40
_FEW = 3
"""Notes common to more runs than this are told once, below the table of all runs."""


def sweeps(result: StudyResult) -> Section:
    """Throughput and step time against each parameter."""
    items: list[Item] = []
    for sweep in result.sweeps:
        rows = sweep_table(sweep)
        items += [Heading(sweep.label), SweepChart(sweep), _points(sweep, rows)]
        items += [
            Sentence("", f"{row.value}: {row.why}")
            for row in rows
            if row.why and row.why not in sweep.sentence
        ]
    return Section("sweeps", tuple(items))


def _points(sweep: Sweep, rows: Sequence[SweepRow]) -> Table:
    head = [
        sweep.parameter.replace("_", " "),
        "steady throughput",
        "typical step",
        "against the best",
    ]
    ranks = sweep.parameter == RANKS
    head += ["efficiency"] if ranks else []
    cells = (
        (
            row.value,
            row.throughput,
            row.step_time,
            ", ".join(filter(None, (row.change, row.rank))),
            *([row.efficiency] if ranks else []),
            *row.training,
        )
        for row in rows
    )
    return Table((*head, *training_names(sweep)), tuple(cells))


def costs(question: Question) -> Section:
    """What samples cost in each cell whose price was given."""
    items = (
        Sentence(cell.label, cost_text(cell.cost))
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


def _resolves(floor: NoiseFloor) -> Table:
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
    return Table(head, rows)


def notes(result: StudyResult) -> Section:
    """Notes on the reliability of the numbers: of the study, its questions and its runs."""
    notes_ = study_notes.every_note(result)
    items = [Sentence("", each) for each in notes_[:_MOST_NOTES]]
    if more := len(notes_) - len(items):
        items.append(Sentence("", f"{more} more notes: summary.json has all of them"))
    return Section("notes", tuple(items))


def method(result: StudyResult) -> Section:
    """How the primary metric, the intervals and every sampled metric were obtained."""
    items: list[Item] = [Sentence("", text) for text in _primary(result.questions)]
    sessions = [
        run.session for question in result.questions for run in middle_runs(question) if run
    ]
    sources: dict[str, dict[str, None]] = {}
    for session in sessions:
        for name, each in session.metrics.items():
            if each.method is not Method.UNAVAILABLE:
                sources.setdefault(f"{each.method.value}: {each.source}", {})[label(name)] = None
    for _, one in study_notes.every_evidence(result.questions):
        if one.source:
            how = f"{one.method.value if one.method else 'recorded'}: {one.source}"
            sources.setdefault(how, {})[one.rung] = None
    items += [Sentence("", f"{how}: {', '.join(names)}") for how, names in sources.items()]
    items += [Sentence("", note) for note in missing_notes(sessions)]
    return Section("how each number was obtained", tuple(items))


def _primary(questions: tuple[Question, ...]) -> list[str]:
    metrics = {question.metric for question in questions}
    verdicts = [each.verdict for question in questions for each in question.contrasts]
    told = {
        "step time: median of the steady part of one run's timed steps, of which none was "
        "profiled; each run is a process of its own, and one value": "step time" in metrics,
        "steady mean: from the first line of the steady part to its end, slow steps "
        "and what happens between steps included": "step time" in metrics,
        "whole run: seconds from launch to end, start-up included": "whole run" in metrics,
        "change: mean of the log-ratios of runs in one block, of every ten one trimmed at "
        "either end, the place in the block taken out": any(each.paired for each in verdicts),
        "change: difference of the trimmed mean logarithms of unpaired runs; what drifted "
        "between them is in it": any(each.change and not each.paired for each in verdicts),
        "several tests share one level by Holm's procedure": any(e.tests > 1 for e in verdicts),
    }
    return [sentence for sentence, holds in told.items() if holds]


def all_runs(result: StudyResult) -> Section:
    """A row for each session, in the plan's order."""
    run_of = {run.session.path: run for _, _, run in every_run(result)}
    notes_of = {
        each.path: [*each.notes, *([each.notice] if each.notice else [])]
        for each in result.sessions
    }
    total = len(result.sessions)
    noted = Counter(note for notes_ in notes_of.values() for note in notes_)
    common = [note for note, count in noted.items() if count > _FEW]
    rows = []
    for session in result.sessions:
        run = run_of.get(session.path)
        block = None if run is None else run.block
        told = [run.reason] if run is not None and run.reason else []
        told += [note for note in notes_of[session.path] if note not in common]
        rows.append(
            (
                PurePath(session.path).name,
                session.given.heading(session.label),
                units.UNKNOWN if block is None else str(block or "warm-up"),
                session.status.text,
                started(session),
                units.UNKNOWN if session.seconds is None else units.clock_time(session.seconds),
                device(session),
                host(session),
                "; ".join(told),
            )
        )
    head = ("file", "run", "block", "status", "started", "length", "device", "host", "notes")
    shared = [
        Sentence("every run" if noted[note] == total else f"{noted[note]} of {total} runs", note)
        for note in common
    ]
    return Section("all runs", (Table(head, tuple(rows)), *shared) if rows else (), formats=(PAGE,))
