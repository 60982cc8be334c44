"""Rows of text for cells side by side: medians over their judged runs."""

from __future__ import annotations

from pathlib import Path

from gpuwatch.analysis.comparison.quantity_table import of_question
from gpuwatch.analysis.comparison.wording import change_text
from gpuwatch.analysis.results import Cell, Question, StudyResult
from gpuwatch.analysis.study.notes import every_note
from gpuwatch.core.text import clean
from gpuwatch.core.units import percent
from gpuwatch.session.reading.status import State
from gpuwatch.tui.compare.columns import (
    Head,
    Layout,
    Section,
    difference_rows,
    heading_rows,
    layout,
    paired_layout,
    quantity_rows,
    sentence_rows,
)
from gpuwatch.tui.compare.verdict_rows import evidence_rows, first_notes
from gpuwatch.tui.feed.next_run import goes_on
from gpuwatch.tui.live.rows import rule

_BAD = frozenset({State.FAILED, State.KILLED, State.LOST, State.IN_PART})
_NAMES = ("medians over", "judged runs", "standard deviation")


def has_cells(result: StudyResult) -> bool:
    """Whether to show medians: there are several cells, and one has several runs."""
    cells = [cell for question in result.questions for cell in question.cells]
    return len(cells) > 1 and any(len(cell.judged) > 1 for cell in cells)


def snapshot_words(folder: Path, result: StudyResult) -> str:
    """``as of run 7 of 18: `` while the study in ``folder`` goes on, else empty."""
    runs = result.plan.runs if result.plan is not None else ()
    if len(runs) < 2 or not goes_on(folder):
        return ""
    ended = {Path(each.path).name for each in result.sessions if not each.status.live}
    last = max((run.index for run in runs if run.file in ended), default=0)
    return f"as of run {last} of {len(runs)}: " if last else "before its first run is over: "


def place_of(question: Question, width: int, first: int) -> Layout:
    """The columns that fit: the baseline, and others from the ``first`` on."""
    changes = [
        change_text(change)
        for row in question.table
        for change in row.changes
        if change is not None
    ]
    if changes:
        return paired_layout(len(question.cells), question.baseline, width, first, changes)
    return layout(_heads(question), question.baseline, width, first)


def sections(result: StudyResult, width: int, first: int) -> list[Section]:
    """A section for each question, then associated changes and notes."""
    tables = []
    for question in result.questions:
        place = place_of(question, width, first)
        heading = heading_rows(_heads(question), place, _NAMES)
        if len(result.questions) > 1:
            heading = (rule(f"medians: {clean(question.label)}", width), *heading)
        body = quantity_rows(question.table, place)
        names = [cell.label for cell in question.cells]
        body += difference_rows(of_question(question), place, names)
        tables.append(Section(heading, tuple(body)))
    rows = evidence_rows(result, width)
    notes = [note for note in every_note(result) if note not in first_notes(result)]
    if notes:
        rows.append(rule("to know before believing it", width))
    for note in notes:
        rows += sentence_rows(note, width, "!", "warn")
    return [*tables, Section((), tuple(rows))]


def column_of(result: StudyResult, path: str) -> int:
    """The column to scroll to so that the cell with the session at ``path`` is next to the
    baseline."""
    for question in result.questions:
        rest = [at for at in range(len(question.cells)) if at != question.baseline]
        for place, at in enumerate(rest):
            if any(run.session.path == path for run in question.cells[at].runs):
                return place
    return 0


def _heads(question: Question) -> list[Head]:
    """The heading of each cell: label, number of runs, standard deviation."""
    return [
        [(clean(cell.label), "strong"), _runs(cell), (percent(cell.spread), "muted")]
        for cell in question.cells
    ]


def _runs(cell: Cell) -> tuple[str, str]:
    ended = [run for run in cell.judged if not run.session.status.live]
    bad = sum(run.session.status.state in _BAD for run in ended)
    text = "1 run" if len(ended) == 1 else f"{len(ended)} runs"
    text += ", 1 goes on" if len(ended) < len(cell.judged) else ""
    in_part = sum(each.in_part for each in cell.not_run)
    missing = len(cell.not_run) - in_part
    text += f", {bad} failed" if bad else ""
    text += f", {missing} did not run" if missing else ""
    text += f", {in_part} fetched in part" if in_part else ""
    return text, "bad" if bad or missing or in_part else "text"
