"""The table of a question: medians over the runs of each cell, ranges, and ratios.

The values of the single sessions come from
:func:`gpuwatch.analysis.comparison.side_by_side.compare`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence

from gpuwatch.analysis.comparison.cells import STEP_TIME, ended_as_asked, valued
from gpuwatch.analysis.comparison.comparison_row import (
    AT_LEAST,
    AT_MOST,
    ComparisonRow,
    ceiling_notes,
)
from gpuwatch.analysis.comparison.efficiency_rows import energy_notes
from gpuwatch.analysis.comparison.ratios import ratio
from gpuwatch.analysis.comparison.side_by_side import compare
from gpuwatch.analysis.results import Cell, Contrast, Kind, Run, TableRow
from gpuwatch.analysis.summary.identity import sound
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method

STEADY = "step time, steady"
"""Name of the primary metric's row."""
_MEDIAN = "step time, median"
"""The row that ``STEADY`` replaces."""
_WEAKEST = (Method.UNAVAILABLE, Method.BOUND, Method.COUNTED, Method.MEASURED)


def table_of(
    cells: Sequence[Cell], contrasts: Sequence[Contrast], metric: str, *, paired: bool
) -> tuple[tuple[TableRow, ...], list[str]]:
    """The rows, and notes on missing ratios.

    Values are from the judged runs with a primary metric; without such runs, from those that did
    not fail, else from all. Runs that did not end as planned have no ratios. A ratio is to the
    baseline of the cell's contrast: the geometric mean over the blocks of ``paired`` runs (none if
    one is 0), else the ratio of the medians. There is none where :func:`compare` gives none, or the
    cells are not comparable.

    If a run's value is an upper (lower) bound, so is the cell's median, which then has no ratio.
    """
    runs = [_shown(cell) for cell in cells]
    sessions = [run.session for of in runs for run in of]
    places = iter(range(len(sessions)))
    of_cell = [[(next(places), run) for run in of] for of in runs]
    rows = compare(sessions).rows
    against = {
        each.other: each.baseline for each in contrasts if each.verdict.kind is not Kind.INVALID
    }
    has_primary = metric == STEP_TIME and any(cell.median is not None for cell in cells)
    made = [
        _row(row, sessions, of_cell, against, paired=paired)
        for row in rows
        if not (has_primary and row.group == "steps" and row.name == _MEDIAN)
    ]
    if has_primary:
        made.insert(_first_of_steps(made), _primary(cells, against, paired=paired))
    return tuple(made), [*ceiling_notes(rows), *energy_notes(sessions)]


_Places = Sequence[tuple[int, Run]]
"""Runs of a cell with their indices among all sessions."""


def _shown(cell: Cell) -> list[Run]:
    over = [run for run in cell.judged if not run.session.status.live]
    good = [run for run in over if sound(run.session)]
    return valued(cell) or good or over or list(cell.judged)


def _first_of_steps(rows: Sequence[TableRow]) -> int:
    return next((at for at, row in enumerate(rows) if row.group == "steps"), len(rows))


@dataclass(frozen=True)
class _Value:
    """The value of a quantity in one run."""

    run: Run
    at: int
    """The run's index among all sessions."""
    value: float
    method: Method = Method.MEASURED
    bound: str | None = None


def _row(
    row: ComparisonRow,
    sessions: Sequence[Summary],
    of_cell: Sequence[_Places],
    against: Mapping[int, int],
    *,
    paired: bool,
) -> TableRow:
    cells_values = [
        [
            _Value(run, at, value, row.methods[at], row.bound(at))
            for at, run in runs
            if (value := row.values[at]) is not None
        ]
        for runs in of_cell
    ]

    def over(first: _Value, second: _Value) -> float | None:
        if not (ended_as_asked(first.run.session) and ended_as_asked(second.run.session)):
            return None
        return ratio(row, sessions, first.at, second.at)

    return _made(
        (row.group, row.name, row.unit),
        cells_values,
        [len(runs) for runs in of_cell],
        _ratios(cells_values, against, over, paired=paired),
        is_traffic=row.is_traffic,
    )


def _primary(cells: Sequence[Cell], against: Mapping[int, int], *, paired: bool) -> TableRow:
    """The row of the primary metric, which the verdicts are about."""
    cells_values = [
        [_Value(run, 0, run.value) for run in valued(cell) if run.value is not None]
        for cell in cells
    ]
    ratios = _ratios(
        cells_values, against, lambda one, other: other.value / one.value, paired=paired
    )
    return _made(
        ("steps", STEADY, "s"), cells_values, [len(_shown(cell)) for cell in cells], ratios
    )


def _made(
    name: tuple[str, str, str],
    cells_values: Sequence[Sequence[_Value]],
    runs: Sequence[int],
    ratios: tuple[float | None, ...],
    *,
    is_traffic: bool = False,
) -> TableRow:
    """``name``: group, name and unit; ``runs``: runs of each cell, with or without a value."""
    medians = [_median(of) for of in cells_values]
    bounds = tuple(_bound(of) if of else None for of in cells_values)
    known = [bound for of, bound in zip(cells_values, bounds, strict=True) if of]
    return TableRow(
        *name,
        values=tuple(medians),
        # An upper bound leaves the lowest value unknown, a lower bound the highest.
        lows=tuple(
            None if AT_MOST in _directions(of) else min((e.value for e in of), default=None)
            for of in cells_values
        ),
        highs=tuple(
            None if AT_LEAST in _directions(of) else max((e.value for e in of), default=None)
            for of in cells_values
        ),
        methods=tuple(
            _weakest(of) if median is not None else Method.UNAVAILABLE
            for of, median in zip(cells_values, medians, strict=True)
        ),
        ratios=ratios,
        is_traffic=is_traffic,
        at_most=bool(known) and all(bound == AT_MOST for bound in known),
        bounds=bounds,
        known=tuple(map(len, cells_values)),
        runs=tuple(runs),
    )


def _directions(values: Sequence[_Value]) -> set[str]:
    return {each.bound for each in values if each.bound is not None}


def _bound(values: Sequence[_Value]) -> str | None:
    directions = _directions(values)
    return directions.pop() if len(directions) == 1 else None


def _median(values: Sequence[_Value]) -> float | None:
    """Median; ``None`` without values, or with both upper and lower bounds."""
    if not values or len(_directions(values)) > 1:
        return None
    return statistics.median(each.value for each in values)


def _weakest(values: Sequence[_Value]) -> Method:
    """The least certain method."""
    return min((each.method for each in values), key=_WEAKEST.index, default=Method.UNAVAILABLE)


def _ratios(
    cells_values: Sequence[Sequence[_Value]],
    against: Mapping[int, int],
    over: Callable[[_Value, _Value], float | None],
    *,
    paired: bool,
) -> tuple[float | None, ...]:
    bases = set(against.values())
    exact = [not _directions(of) for of in cells_values]
    return tuple(
        (
            _ratio(cells_values[against[at]], of, over, paired=paired)
            if exact[at] and exact[against[at]]
            else None
        )
        if at in against
        else 1.0
        if at in bases and exact[at] and _median(of)
        else None
        for at, of in enumerate(cells_values)
    )


def _ratio(
    baseline: Sequence[_Value],
    other: Sequence[_Value],
    over: Callable[[_Value, _Value], float | None],
    *,
    paired: bool,
) -> float | None:
    if paired:
        first = {each.run.block: each for each in baseline}
        pairs = [(first[each.run.block], each) for each in other if each.run.block in first]
    else:
        # Comparability is transitive: no need to check all pairs.
        pairs = [(one, two) for one in baseline for two in other[:1]]
        pairs += [(one, two) for one in baseline[:1] for two in other[1:]]
    known = [value for pair in pairs if (value := over(*pair)) is not None]
    if not known or (not paired and len(known) < len(pairs)):
        return None
    if paired:
        return math.exp(statistics.fmean(map(math.log, known))) if min(known) > 0 else None
    base = _median(baseline)
    value = _median(other)
    return value / base if base and value is not None else None
