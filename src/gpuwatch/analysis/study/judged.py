"""Single runs side by side: with what their verdicts judge, before what the sessions tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpuwatch.analysis.comparison.cells import STEP_TIME
from gpuwatch.analysis.comparison.comparison_row import ALL_STEPS, STEADY, ComparisonRow, row_of
from gpuwatch.analysis.comparison.ratios import THROUGHPUT, paid_ratios, ratio
from gpuwatch.analysis.comparison.side_by_side import Comparison
from gpuwatch.analysis.results import Question


def with_judged(
    compared: Comparison, questions: Sequence[Question], bases: Mapping[int, int]
) -> Comparison:
    """``compared`` with ratios to ``bases``, and the rows of the values that verdicts judge.

    These are the steady step time and the time per step over all steady steps; the ratio of the
    throughput is the inverse of that of the latter.

    Args:
        bases: index of each session with a ratio, and that of its baseline.
    """
    sessions = compared.sessions
    runs = {
        run.session.path: run
        for question in questions
        if question.metric == STEP_TIME and question.contrasts
        for cell in question.cells
        for run in cell.runs
    }
    steady = {path: run.value for path, run in runs.items()}
    totals = {path: run.total for path, run in runs.items()}
    judged = [
        row_of("steps", STEADY, "s", sessions, lambda session: steady.get(session.path)),
        row_of("steps", ALL_STEPS, "s", sessions, lambda session: totals.get(session.path)),
    ]
    judged = [row for row in judged if any(value is not None for value in row.values)]
    first = next((at for at, row in enumerate(compared.rows) if row.group == "steps"), 0)
    rows = [*compared.rows[:first], *judged, *compared.rows[first:]]

    def against(row: ComparisonRow) -> ComparisonRow:
        places = range(len(sessions))
        ratios = (ratio(row, sessions, bases[at], at) if at in bases else None for at in places)
        return replace(row, ratios=tuple(ratios))

    told = [against(row) for row in rows]
    paid = next((row for row in told if row.name == ALL_STEPS), None)
    return replace(
        compared,
        rows=tuple(
            replace(row, ratios=paid_ratios(row.ratios, paid.ratios))
            if paid is not None and (row.group, row.name) == THROUGHPUT
            else row
            for row in told
        ),
    )
