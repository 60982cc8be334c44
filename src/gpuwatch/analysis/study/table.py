"""The table of a question: means over the runs of each cell, ranges, ratios and paired changes.

The values of the single sessions come from
:func:`gpuwatch.analysis.comparison.side_by_side.compare`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from gpuwatch.analysis.comparison.cells import STEP_TIME, WHOLE_RUN, ended_as_asked, valued
from gpuwatch.analysis.comparison.comparison_row import (
    THROUGHPUT,
    ceiling_notes,
    clear_ratio,
    energy_notes,
    ratio,
)
from gpuwatch.analysis.comparison.side_by_side import compare, judged_rows
from gpuwatch.analysis.comparison.wording import signed, throughput
from gpuwatch.analysis.results import Cell, ComparisonRow, Contrast, Kind, Run, Verdict
from gpuwatch.analysis.statistics.intervals import Interval, interval, middle
from gpuwatch.analysis.summary.identity import sound
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core import units
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method

_MEDIAN, _ELAPSED = "step time, median", "elapsed"
"""The row that ``STEADY`` replaces, and that which is judged of runs without steps."""
_EQUAL = 1e-9
"""Spread of log-ratios below which they differ only by rounding: no interval follows from them."""
_WEAKEST = (Method.UNAVAILABLE, Method.BOUND, Method.COUNTED, Method.MEASURED)
"""The least certain method first: that of a cell is the least of its runs."""


def table_of(
    cells: Sequence[Cell], contrasts: Sequence[Contrast], metric: str, *, paired: bool
) -> tuple[tuple[ComparisonRow, ...], list[str]]:
    """The rows, and notes on missing ratios.

    Values are from the judged runs with a primary metric; without such runs, from those that did
    not fail, else from all. Ratios and changes are to the baseline of the cell's contrast, and only
    of runs that ended as planned: the quotient of the two means, and, with ``paired``, the mean
    change within the blocks with its 95 % interval. There are none where :func:`compare` gives
    none, or the cells are not comparable. Step times and throughput have those of the verdicts.

    If a run's value is an upper (lower) bound, so is the cell's mean, which then has no ratio.
    """
    runs = [_shown(cell) for cell in cells]
    sessions = [run.session for of in runs for run in of]
    places = iter(range(len(sessions)))
    of_cell = [[(next(places), run) for run in of] for of in runs]
    rows = compare(sessions).rows
    valid = [each for each in contrasts if each.verdict.kind is not Kind.INVALID]
    against = {each.other: each.baseline for each in valid}
    has_primary = metric == STEP_TIME and any(cell.mean is not None for cell in cells)
    made = [
        _row(row, sessions, of_cell, against, paired=paired)
        for row in rows
        if not (has_primary and row.group == "steps" and row.name == _MEDIAN)
    ]
    judged = {each.other: each.verdict for each in valid}
    if metric == WHOLE_RUN:
        made = [_judged(row, against, judged) if row.name == _ELAPSED else row for row in made]
    if has_primary:
        first = next((at for at, row in enumerate(made) if row.group == "steps"), len(made))
        totals = {at: of.total for at, of in judged.items() if of.total is not None}
        steady, all_steps, rate = (
            _row(row, sessions, of_cell, against, paired=False, judged=True)
            for row in judged_rows(sessions, [run for of in runs for run in of])
        )
        steady = _judged(steady, against, judged)
        all_steps = _judged(all_steps, against, totals)
        rate = _judged(rate, against, {at: throughput(of) for at, of in totals.items()})
        if any(value is not None for value in rate.values):
            made = [rate if row.name == THROUGHPUT else row for row in made]
        made[first:first] = [steady, all_steps]
    return tuple(made), [*ceiling_notes(rows), *energy_notes(sessions)]


_Places = Sequence[tuple[int, Run]]
"""Runs of a cell with their indices among all sessions."""


def _shown(cell: Cell) -> list[Run]:
    over = [run for run in cell.judged if not run.session.status.live]
    good = [run for run in over if sound(run.session)]
    return valued(cell) or good or over or list(cell.judged)


@dataclass(frozen=True)
class _Value:
    """The value of a quantity in one run."""

    run: Run
    at: int
    """The run's index among all sessions."""
    value: float
    method: Method


def _row(
    row: ComparisonRow,
    sessions: Sequence[Summary],
    of_cell: Sequence[_Places],
    against: Mapping[int, int],
    *,
    paired: bool,
    judged: bool = False,
) -> ComparisonRow:
    """``judged``: the verdicts are about it, so that their runs are comparable."""
    cells_values = [
        [
            _Value(run, at, value, row.methods[at])
            for at, run in runs
            if (value := row.values[at]) is not None
        ]
        for runs in of_cell
    ]

    def over(first: _Value, second: _Value) -> float | None:
        ended = ended_as_asked(first.run.session) and ended_as_asked(second.run.session)
        if not (judged or ended):
            return None
        # The scatter of several pairs has the errors of their values in it.
        return (ratio if paired else clear_ratio)(row, sessions, first.at, second.at)

    means = tuple(map(_mean, cells_values))
    return ComparisonRow(
        *(row.group, row.name, row.unit, means),
        methods=tuple(
            Method.UNAVAILABLE if mean is None else min((e.method for e in of), key=_WEAKEST.index)
            for of, mean in zip(cells_values, means, strict=True)
        ),
        ratios=_ratios(cells_values, against, over),
        at_most=row.at_most,
        # An upper bound leaves the lowest value unknown, a lower bound the highest.
        lows=tuple(_end(of, min, known=not (row.at_most and _bounded(of))) for of in cells_values),
        highs=tuple(_end(of, max, known=row.at_most or not _bounded(of)) for of in cells_values),
        known=tuple(map(len, cells_values)),
        runs=tuple(map(len, of_cell)),
        changes=tuple(
            _change(cells_values[against[at]], of, over) if paired and at in against else None
            for at, of in enumerate(cells_values)
        ),
    )


def _judged(
    row: ComparisonRow, against: Mapping[int, int], verdicts: Mapping[int, Verdict]
) -> ComparisonRow:
    """The row of a value that the verdicts are about, with their changes, and estimates as
    ratios."""
    changes = {at: of.change for at, of in verdicts.items() if of.paired}
    moved = {
        at: _reads_otherwise(row, at, against[at], change.estimate)
        for at, change in changes.items()
        if change is not None
    }
    estimates = {at: of.estimate for at, of in verdicts.items()}
    ratios = tuple(
        ratio if (estimate := estimates.get(at)) is None else 1 + estimate
        for at, ratio in enumerate(row.ratios)
    )
    return replace(
        row,
        ratios=ratios,
        changes=tuple(map(changes.get, range(len(ratios)))),
        measured=tuple(each if moved.get(at) else None for at, each in enumerate(row.ratios)),
    )


def _reads_otherwise(row: ComparisonRow, at: int, base: int, estimate: float) -> bool:
    """Whether the values, as they are rounded, show another change than the estimate."""
    value, first, ratio = row.values[at], row.values[base], row.ratios[at]
    if value is None or first is None or ratio is None or signed(ratio - 1) == signed(estimate):
        return False
    told = units.quantity(first * (1 + estimate), row.unit)
    return told != units.quantity(value, row.unit)


_Over = Callable[[_Value, _Value], float | None]
"""The second value over the first; ``None`` where they are not comparable."""


def _end(values: Sequence[_Value], end: Callable[..., float], *, known: bool) -> float | None:
    return end(each.value for each in values) if values and known else None


def _bounded(values: Sequence[_Value]) -> bool:
    return any(each.method is Method.BOUND for each in values)


def _mean(values: Sequence[_Value]) -> float | None:
    """See :class:`ComparisonRow`; ``None`` without values."""
    return middle([each.value for each in values])


def _ratios(
    cells_values: Sequence[Sequence[_Value]], against: Mapping[int, int], over: _Over
) -> tuple[float | None, ...]:
    bases = set(against.values())
    return tuple(
        _ratio(cells_values[against[at]], of, over)
        if at in against
        else 1.0
        if at in bases and not _bounded(of) and _mean(of)
        else None
        for at, of in enumerate(cells_values)
    )


def _ratio(baseline: Sequence[_Value], other: Sequence[_Value], over: _Over) -> float | None:
    """The quotient of the means."""
    # Comparability is transitive: no need to check all pairs.
    pairs = [(one, two) for one in baseline for two in other[:1]]
    pairs += [(one, two) for one in baseline[:1] for two in other[1:]]
    base, value = _mean(baseline), _mean(other)
    apart = _bounded([*baseline, *other]) or any(over(*pair) is None for pair in pairs)
    if base is None or value is None or apart:
        return None
    return value / base if base else math.inf


def _change(baseline: Sequence[_Value], other: Sequence[_Value], over: _Over) -> Interval | None:
    """The mean change within the blocks that have both values."""
    if _bounded([*baseline, *other]):
        return None
    first = {each.run.block: each for each in baseline}
    ratios = [over(first[each.run.block], each) for each in other if each.run.block in first]
    logs = [math.log(each) for each in ratios if each and each < math.inf]
    known = [each for each in ratios if each is not None]
    if len(logs) < max(len(known), 2) or statistics.stdev(logs) < _EQUAL:
        return None
    return interval(logs)
