"""Rows of text for sessions side by side, one run each."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.analysis.comparison.side_by_side import Comparison
from gpuwatch.analysis.summary.identity import work_name
from gpuwatch.analysis.summary.missing import missing_notes
from gpuwatch.core.text import clean
from gpuwatch.tui.compare.columns import (
    Head,
    Layout,
    difference_rows,
    layout,
    quantity_rows,
    sentence_rows,
)
from gpuwatch.tui.live.head_rows import MARKS
from gpuwatch.tui.live.rows import rule
from gpuwatch.tui.widgets.line import Line


def place_of(compared: Comparison, width: int, first: int) -> Layout:
    """The columns that fit: the baseline, and others from the ``first`` on."""
    return layout(heads(compared), compared.baseline, width, first)


def against(compared: Comparison) -> str:
    """The title's note on the baseline of the ratios, and why it is not the first session."""
    at = compared.baseline
    if at is None:
        return "no ratios: every run failed" if compared.sessions else "no session could be read"
    first = compared.sessions[0].status.state.value
    return f"ratios are against session {at + 1}" + (f" (1 {first})" if at else "")


def heads(compared: Comparison) -> list[Head]:
    """The heading of each session: workload, environment with the given name, state.

    Where these are the same for several sessions, the start of the id is added.
    """
    names = [
        session.given.heading(clean(session.environment.get("label") or ""))
        for session in compared.sessions
    ]
    columns: list[Head] = []
    for at, session in enumerate(compared.sessions):
        mark, role = MARKS[session.status.state]
        name = clean(work_name(session))
        where = names[at]
        if names.count(where) > 1:
            where = f"{where} {clean(session.id)[:6]}"
        state = f"{mark} {session.status.state.value}"
        columns.append([(f"{at + 1} {name}", "strong"), (where, "text"), (state, role)])
    return columns


def names(compared: Comparison) -> list[str]:
    """A short name for each session: its number and environment."""
    return [f"{at} {head[1][0]}" for at, head in enumerate(heads(compared), 1)]


def body_rows(compared: Comparison, place: Layout, notes: Sequence[str] = ()) -> list[Line]:
    """The rows below the heading: quantities by group, differences, notes.

    ``notes`` come before those of the comparison.
    """
    rows = quantity_rows(compared.rows, place)
    rows += difference_rows(compared.differences, place, names(compared))
    shown = list(dict.fromkeys([*notes, *compared.notes, *missing_notes(compared.sessions)]))
    if shown:
        rows.append(rule("to know before believing a ratio", place.width))
    for note in shown:
        rows += sentence_rows(note, place.width, "!", "warn")
    return rows
