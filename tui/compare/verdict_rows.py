"""What a study says, as rows of text: sentences, intervals on one axis, what goes with them."""

from __future__ import annotations

from collections.abc import Iterator

from gpuwatch.analysis.comparison.cells import STEP_TIME, WHOLE_RUN
from gpuwatch.analysis.results import Cell, Contrast, Kind, Question, StudyResult, Sweep, SweepPoint
from gpuwatch.analysis.study.interval_plot import plot
from gpuwatch.core.text import clean
from gpuwatch.core.units import fact, milliseconds
from gpuwatch.tui.compare.columns import told_rows
from gpuwatch.tui.live.rows import rule, samples_rate
from gpuwatch.tui.widgets.cells import pad
from gpuwatch.tui.widgets.line import Line

_MOST_TOLD = 20
MARKS = {
    Kind.SAME: ("=", "good"),
    Kind.SLOWER: ("▲", "bad"),
    Kind.FASTER: ("▼", "good"),
    Kind.SMALL: ("≈", "text"),
    Kind.CANT_TELL: ("?", "warn"),
    Kind.INVALID: ("✗", "bad"),
    Kind.DESCRIBED: ("·", "text"),
}
"""A mark and a colour for each verdict; the sentence beside it says it in words."""
_METRICS = {STEP_TIME: "steady step time", WHOLE_RUN: WHOLE_RUN}
"""What verdicts are of; the median of a table is of all timed steps."""
_AXIS = {"|": "│", "[": "├", "]": "┤", "-": "─", "*": "●"}
_FASTER, _SLOWER = "faster ◂ ", " ▸ slower"


def verdict_rows(result: StudyResult, width: int) -> list[Line]:
    """Everything before the tables, the verdicts first; without any, why there is none."""
    rows = [row for note in first_notes(result) for row in told_rows(note, width, "!", "warn")]
    rows += [rule("over all cases", width)] if result.overall else []
    for each in result.overall:
        rows += told_rows(each.sentence, width, "·", "text")
    for question in result.questions:
        rows += _question(question, width)
    for sweep in result.sweeps:
        rows += _sweep(sweep, width)
    for floor in result.noise:
        rows.append(rule(f"noise floor: {clean(floor.label)}", width))
        rows += told_rows(floor.sentence, width, "·", "text")
    return [*rows, *_missing(result, width)]


def first_notes(result: StudyResult) -> tuple[str, ...]:
    """What is said before anything else: of what is not compared, why."""
    compared = any(question.contrasts for question in result.questions)
    return () if compared or result.sweeps else result.notes


def notes_of(result: StudyResult) -> tuple[str, ...]:
    """What must be known to believe the result, without what stands first already."""
    said = first_notes(result)
    notes = [*result.notices, *result.notes, *(n for each in result.questions for n in each.notes)]
    return tuple(note for note in dict.fromkeys(notes) if note not in said)


def _question(question: Question, width: int) -> list[Line]:
    rows = [
        rule(
            f"{_METRICS.get(question.metric, clean(question.metric))} of {clean(question.label)}",
            width,
        )
    ]
    if not question.contrasts:
        return [*rows, *(row for cell in question.cells for row in _alone(cell, width))]
    for contrast in question.contrasts:
        kind = contrast.verdict.kind
        word = "" if kind is Kind.DESCRIBED else f"{kind.value.upper()}: "
        rows += told_rows(contrast.sentence, width, *MARKS[kind], head=word)
    return [*rows, *_plot(question, width)]


def _plot(question: Question, width: int) -> Iterator[Line]:
    """The changes on one axis, and on which side of it is which."""
    verdicts = [contrast.verdict for contrast in question.contrasts]
    names = [question.cells[contrast.other].label for contrast in question.contrasts]
    found = plot(list(zip(names, verdicts, strict=True)), width - 4)
    if found is None:
        return
    start = 3 + found.label + 2
    sides = Line(width)
    if found.zero > len(_FASTER):
        sides.to(start + found.zero - len(_FASTER)).add(_FASTER, "muted")
    yield sides.to(start + found.zero + 1).add(_SLOWER, "muted")
    for drawn, verdict in zip(found.drawn, verdicts, strict=True):
        role = MARKS[verdict.kind][1]
        row = Line(width).add(f"   {pad(drawn.name, found.label)}  ", "strong")
        for cell in drawn.axis:
            row.add(_AXIS.get(cell, cell), "muted" if cell in "|:" else role)
        yield row.add(f"  {drawn.text}", role)
    yield Line(width).to(start).add(found.scale, "muted")


def _alone(cell: Cell, width: int) -> list[Line]:
    """What a cell says that nothing is compared with."""
    count = sum(run.value is not None for run in cell.judged)
    runs = "1 run" if count == 1 else f"median of {count} runs"
    text = f"{milliseconds(cell.median)}, {runs}" if count else "no run with a value"
    return told_rows(f"{cell.label}: {text}", width, "·", "text")


def evidence_rows(result: StudyResult, width: int) -> list[Line]:
    """What goes with a change, of every contrast that has something."""
    return list(_evidence(result, width))


def _evidence(result: StudyResult, width: int) -> Iterator[Line]:
    told: list[tuple[Question, Contrast]] = [
        (question, contrast)
        for question in result.questions
        for contrast in question.contrasts
        if contrast.explanation.evidence
    ]
    for question, contrast in told:
        title = clean(question.cells[contrast.other].label)
        if len(result.questions) > 1:
            title = f"{title}, {clean(question.label)}"
        yield rule(f"what goes with it: {title}", width)
        for evidence in contrast.explanation.evidence:
            yield from told_rows(evidence.text, width, "·", "muted")


def _sweep(sweep: Sweep, width: int) -> list[Line]:
    rows = [rule(clean(sweep.label), width)]
    rows += told_rows(sweep.sentence, width, "·", "text")
    values = [clean(fact(sweep.parameter, point.value)) for point in sweep.points]
    column = max(map(len, values), default=0)
    for at, (value, point) in enumerate(zip(values, sweep.points, strict=True)):
        row = Line(width).add(f"   {pad(value, min(column, width // 3), '>')}  ", "strong")
        rows.append(_point(row, point, best=at == sweep.best))
    return rows


def _point(row: Line, point: SweepPoint, *, best: bool) -> Line:
    if point.samples_per_second is None and point.step_seconds is None:
        return row.add(clean(point.why or "unknown"), "muted")
    rate = f"{samples_rate(point.samples_per_second)} samples/s"
    row.add(pad(rate, 18, ">")).add(pad(milliseconds(point.step_seconds), 12, ">"), "text")
    if best:
        row.add("  best", "good")
    elif point.tied:
        row.add("  cannot be told from the best", "muted")
    return row


def _missing(result: StudyResult, width: int) -> list[Line]:
    """Runs that did not take place, and those that still will."""
    runs = result.not_run
    rows = [rule("did not run", width)] if runs else []
    for each in runs[:_MOST_TOLD]:
        rows += told_rows(each.text, width, "✗", "bad")
    if len(runs) > _MOST_TOLD:
        rows.append(Line(width).add(f"   and {len(runs) - _MOST_TOLD} more", "muted"))
    if result.to_come:
        to_come = "1 run is" if result.to_come == 1 else f"{result.to_come} runs are"
        rows.append(Line(width).add(f" … {to_come} still to come", "muted"))
    return rows
