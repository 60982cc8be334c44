"""The cells of a question side by side as rows of text: medians over their judged runs."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.analysis.compare import Difference
from gpuwatch.analysis.results import Cell, Question, StudyResult
from gpuwatch.session.status import State
from gpuwatch.text import clean
from gpuwatch.tui.columns import (
    Head,
    Layout,
    Section,
    difference_rows,
    heading_rows,
    layout,
    quantity_rows,
    told_rows,
)
from gpuwatch.tui.live_rows import rule
from gpuwatch.tui.verdict_rows import evidence_rows
from gpuwatch.units import percent

_BAD = frozenset({State.FAILED, State.KILLED, State.LOST})
_NAMES = ("medians over", "judged runs", "standard deviation")


def has_cells(result: StudyResult) -> bool:
    """Whether there are several cells, and one of them has several runs, whose medians to show."""
    cells = [cell for question in result.questions for cell in question.cells]
    return len(cells) > 1 and any(len(cell.judged) > 1 for cell in cells)


def place_of(question: Question, width: int, first: int) -> Layout:
    """The columns that fit, from the ``first`` beside the baseline on."""
    return layout(_heads(question), 0, width, first)


def sections(result: StudyResult, width: int, first: int) -> list[Section]:
    """One section for each question, what goes with the changes, what else must be known."""
    found = []
    for question in result.questions:
        place = place_of(question, width, first)
        heading = heading_rows(_heads(question), place, _NAMES)
        if len(result.questions) > 1:
            heading = (rule(f"medians: {clean(question.label)}", width), *heading)
        body = quantity_rows(question.table, place)
        body += difference_rows(_differences(question), place)
        found.append(Section(heading, tuple(body)))
    rows = evidence_rows(result, width)
    notes = [*result.notices, *result.notes, *(n for each in result.questions for n in each.notes)]
    if notes:
        rows.append(rule("to know before believing it", width))
    for note in dict.fromkeys(notes):
        rows += told_rows(note, width, "!", "warn")
    return [*found, Section((), tuple(rows))]


def column_of(result: StudyResult, path: str) -> int:
    """How far to shift so that the cell of the session at ``path`` stands beside the baseline."""
    for question in result.questions:
        for at, cell in enumerate(question.cells):
            if any(run.session.path == path for run in cell.runs):
                return max(0, at - 1)
    return 0


def _heads(question: Question) -> list[Head]:
    """For each cell its name, its runs, how much they vary."""
    return [
        [(clean(cell.label), "strong"), _runs(cell), (percent(cell.spread), "muted")]
        for cell in question.cells
    ]


def _runs(cell: Cell) -> tuple[str, str]:
    bad = sum(run.session.status.state in _BAD for run in cell.judged)
    text = "1 run" if len(cell.judged) == 1 else f"{len(cell.judged)} runs"
    missing = len(cell.not_run)
    text += f", {bad} failed" if bad else ""
    text += f", {missing} did not run" if missing else ""
    return text, "bad" if bad or missing else "text"


def _differences(question: Question) -> Sequence[Difference]:
    """What differs between the baseline and any other cell, with a value for every cell.

    A cell that a difference was not told of has the baseline's value.
    """
    found: dict[tuple[str, str], list[object]] = {}
    for contrast in question.contrasts:
        for each in contrast.explanation.differences:
            own, other = each.values
            values = found.setdefault((each.scope, each.key), [own] * len(question.cells))
            values[contrast.other] = other
    return [Difference(scope, key, tuple(values)) for (scope, key), values in found.items()]
