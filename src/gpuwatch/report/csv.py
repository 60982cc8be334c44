"""Studies and sessions as tidy CSV: one row per run and quantity, in base units."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from gpuwatch.analysis.comparison.side_by_side import Comparison, compare
from gpuwatch.analysis.results import Question, Run, StudyResult
from gpuwatch.analysis.study.overall import TIME_PER_STEP
from gpuwatch.analysis.summary.identity import parameter_text, settings
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core.metrics import Method
from gpuwatch.core.text import spreadsheet
from gpuwatch.report.document.quantities import every_run, order_of, orders
from gpuwatch.report.export.table import csv_text

COLUMNS = (
    *("study", "part", "workload", "parameters", "environment", "block", "order"),
    *("session", "status", "group", "metric", "unit", "value", "method"),
    *("outlier", "warm_up", "command"),
)
PRIMARY = "primary"
"""Group of the values that verdicts are about."""
_Place = tuple[Question, Run]
"""Where a session stands in the result."""


def as_csv(result: StudyResult) -> str:
    """Every quantity of every run in base units; an empty cell means unknown.

    Cells are escaped so that a spreadsheet takes none for a formula.
    """
    return csv_text([COLUMNS, *_rows(result)])


def _rows(result: StudyResult) -> Iterator[Sequence[object]]:
    order = orders(result.plan)
    places = {run.session.path: (question, run) for question, _, run in every_run(result)}
    rows = compare(result.sessions).rows
    for at, session in enumerate(result.sessions):
        place = places.get(session.path)
        first = _first(result, session, place, order_of(session, order))
        of_run = ("", "") if place is None else (_yes(place[1].outlier), _yes(place[1].warm_up))
        last = (*of_run, spreadsheet(session.workload.get("label")))
        for quantity in () if place is None else _primary(*place):
            yield (*first, *quantity, *last)
        for row in rows:
            named = (row.group, spreadsheet(row.name), row.unit)
            yield (*first, *named, _number(row.values[at]), row.methods[at].value, *last)


def _first(
    result: StudyResult, session: Summary, place: _Place | None, order: int | None
) -> tuple[str, ...]:
    """The columns that identify the run, up to its status."""
    plan = result.plan
    part = "" if plan is None or place is None else plan.parts[place[0].part].name
    block = None if place is None else place[1].block
    parameters = ";".join(
        f"{key}={parameter_text(value)}" for key, value in settings(session).items()
    )
    return tuple(
        spreadsheet(each)
        for each in (
            result.title if plan is None else plan.study,
            part,
            session.workload.get("name"),
            parameters,
            session.environment.get("label"),
            block,
            order,
            session.id,
            session.status.state.value,
        )
    )


def _primary(question: Question, run: Run) -> Iterator[tuple[str, str, str, str, str]]:
    values = [(question.metric, run.value)]
    if run.total is not None:
        values.append((TIME_PER_STEP, run.total))
    for name, value in values:
        method = Method.UNAVAILABLE if value is None else Method.MEASURED
        yield PRIMARY, name, "s", _number(value), method.value


def _number(value: float | None) -> str:
    return "" if value is None or not math.isfinite(value) else repr(value)


def _yes(true: bool) -> str:
    return "yes" if true else "no"


def of_sessions(compared: Comparison) -> str:
    """One row per session and quantity, in base units; without a study."""
    rows: list[Sequence[str]] = [
        ("session", "label", "environment", "group", "name", "unit", "value", "method", "ratio")
    ]
    for row in compared.rows:
        for at, session in enumerate(compared.sessions):
            of = (session.id, session.label, session.environment.get("label"))
            quantity = (row.group, row.name, row.unit, _number(row.values[at]))
            last = (row.methods[at].value, _number(row.ratios[at]))
            rows.append((*map(spreadsheet, of), *quantity, *last))
    return csv_text(rows)
