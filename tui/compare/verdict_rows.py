"""Rows of text for a study's result: verdicts, intervals on one axis, associated changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len

from gpuwatch.analysis.comparison.cells import STEP_TIME, WHOLE_RUN
from gpuwatch.analysis.comparison.wording import after_word, heading, of_cell
from gpuwatch.analysis.results import Contrast, Kind, Question, StudyResult, Sweep
from gpuwatch.analysis.study.interval_plot import plot, rows_of
from gpuwatch.analysis.study.letters import LegendEntry
from gpuwatch.analysis.study.not_run import not_run, to_come
from gpuwatch.analysis.study.sweep import sweep_table
from gpuwatch.core.text import clean
from gpuwatch.core.units import UNKNOWN
from gpuwatch.tui.compare.columns import sentence_rows
from gpuwatch.tui.live.rows import rule
from gpuwatch.tui.live.study_rows import VERDICTS
from gpuwatch.tui.widgets.cells import pad
from gpuwatch.tui.widgets.line import Line

_MOST_NOT_RUN = 20
"""Most runs listed as not run."""
_COLOURS = {Kind.SLOWER: "bad", Kind.FASTER: "good"}
"""Colours of the verdicts that state a difference."""
MARKS = {kind: (VERDICTS[kind.value][0], _COLOURS.get(kind, "text")) for kind in Kind}
"""The mark and colour of each verdict."""
_METRICS = {STEP_TIME: "steady step time", WHOLE_RUN: WHOLE_RUN}
"""Names of the metrics in headings; the tables' median is over all timed steps."""
_AXIS = {"|": "│", "[": "├", "]": "┤", "-": "─", "*": "●"}
_FASTER, _SLOWER = "faster ◂ ", " ▸ slower"


def verdict_rows(result: StudyResult, width: int, legend: Sequence[LegendEntry] = ()) -> list[Line]:
    """The rows before the tables: verdicts, or why there are none.

    ``legend``: the labels that letters stand for.
    """
    rows = [row for note in first_notes(result) for row in sentence_rows(note, width, "!", "warn")]
    for entry in legend:
        rows += sentence_rows(entry.text, width, entry.letter, "strong")
    rows += [rule("over all cases", width)] if result.overall else []
    for overall in result.overall:
        rows += sentence_rows(overall.sentence, width, "·", "text")
    for question in result.questions:
        rows += _question(question, width)
    for sweep in result.sweeps:
        rows += _sweep(sweep, width)
    for floor in result.noise:
        rows.append(rule(f"noise floor: {clean(floor.label)}", width))
        rows += sentence_rows(floor.sentence, width, "·", "text")
    return [*rows, *_missing(result, width)]


def first_notes(result: StudyResult) -> tuple[str, ...]:
    """The notes at the very top: if nothing is compared, why."""
    compared = any(question.contrasts for question in result.questions)
    return () if compared or result.sweeps else result.notes


def notes_of(result: StudyResult) -> tuple[str, ...]:
    """The caveats of the result, without the notes at the very top."""
    first = first_notes(result)
    notes = [*result.notices, *result.notes, *(n for each in result.questions for n in each.notes)]
    return tuple(note for note in dict.fromkeys(notes) if note not in first)


def _question(question: Question, width: int) -> list[Line]:
    rows = [
        rule(
            f"{_METRICS.get(question.metric, clean(question.metric))} of {clean(question.label)}",
            width,
        )
    ]
    if not question.contrasts:
        texts = [of_cell(cell, question.metric) for cell in question.cells]
        return [*rows, *(row for text in texts for row in sentence_rows(text, width, "·", "text"))]
    for contrast in question.contrasts:
        kind = contrast.verdict.kind
        rows += sentence_rows(
            after_word(contrast), width, *MARKS[kind], head=f"{heading(contrast.verdict)}: "
        )
        rows += sentence_rows(contrast.design, width, "·", "muted") if contrast.design else []
    return [*rows, *_plot(question, width)]


def _plot(question: Question, width: int) -> Iterator[Line]:
    """The intervals on one axis, with the slower and the faster side named."""
    named = [
        row
        for contrast in question.contrasts
        for row in rows_of(question.cells[contrast.other].label, contrast.verdict)
    ]
    chart = plot(named, width - 4)
    if chart is None:
        return
    start = 3 + chart.label + 2
    sides = Line(width)
    if chart.zero > len(_FASTER):
        sides.to(start + chart.zero - len(_FASTER)).add(_FASTER, "muted")
    yield sides.to(start + chart.zero + 1).add(_SLOWER, "muted")
    for drawn, (_, verdict) in zip(chart.drawn, named, strict=True):
        role = MARKS[verdict.kind][1]
        row = Line(width).add(f"   {pad(drawn.name, chart.label)}  ", "strong")
        for cell in drawn.axis:
            row.add(_AXIS.get(cell, cell), "muted" if cell in "|:" else role)
        yield row.add(f"  {drawn.text}", role)
    yield Line(width).to(start).add(chart.scale, "muted")


def evidence_rows(result: StudyResult, width: int) -> list[Line]:
    """The changes associated with each contrast."""
    return list(_evidence(result, width))


def _evidence(result: StudyResult, width: int) -> Iterator[Line]:
    explained: list[tuple[Question, Contrast]] = [
        (question, contrast)
        for question in result.questions
        for contrast in question.contrasts
        if contrast.explanation.evidence
    ]
    for question, contrast in explained:
        title = clean(question.cells[contrast.other].label)
        if len(result.questions) > 1:
            title = f"{title}, {clean(question.label)}"
        yield rule(f"associated changes: {title}", width)
        for evidence in contrast.explanation.evidence:
            yield from sentence_rows(evidence.text, width, "·", "muted")


def _sweep(sweep: Sweep, width: int) -> list[Line]:
    rows = [rule(clean(sweep.label), width)]
    rows += sentence_rows(sweep.sentence, width, "·", "text")
    points = sweep_table(sweep)
    column = max((cell_len(clean(point.value)) for point in points), default=0)
    for point in points:
        row = Line(width).add(f"   {pad(clean(point.value), min(column, width // 3), '>')}  ")
        if point.throughput == point.step_time == UNKNOWN:
            rows.append(row.add(clean(point.why or "unknown"), "muted"))
            continue
        row.add(pad(point.throughput, 12, ">"), "strong").add(pad(point.step_time, 12, ">"))
        rows.append(row.add(f"  {point.rank}", "good" if point.rank == "best" else "muted"))
    return rows


def _missing(result: StudyResult, width: int) -> list[Line]:
    """Runs that did not take place, and runs still to come."""
    runs = not_run(result)
    rows = [rule("did not run", width)] if runs else []
    for why, hint in runs[:_MOST_NOT_RUN]:
        rows += sentence_rows(why, width, "✗", "bad")
        rows += sentence_rows(f"Fix: {hint}", width, " ", "text") if hint else []
    if len(runs) > _MOST_NOT_RUN:
        rows.append(Line(width).add(f"   and {len(runs) - _MOST_NOT_RUN} more", "muted"))
    return rows + [
        row for text in to_come(result) for row in sentence_rows(text, width, "…", "muted")
    ]
