"""Every quantity of the cells of a question: medians over their runs, ranges, and ratios.

The figures are those of :func:`gpuwatch.analysis.compare.compare`, a value for each session.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence

from gpuwatch.analysis.cells import STEP_TIME, valued
from gpuwatch.analysis.compare import Row, compare
from gpuwatch.analysis.efficiency_rows import energy_notes
from gpuwatch.analysis.identity import sound
from gpuwatch.analysis.ratios import ratio
from gpuwatch.analysis.results import Cell, Contrast, Kind, Run, TableRow
from gpuwatch.analysis.row import ceiling_notes
from gpuwatch.analysis.summary import Summary
from gpuwatch.metrics import Method

STEADY = "step time, steady state"
"""Name of the row of the primary metric."""
_WEAKEST = (Method.UNAVAILABLE, Method.BOUND, Method.COUNTED, Method.MEASURED)


def table_of(
    cells: Sequence[Cell], contrasts: Sequence[Contrast], metric: str, *, paired: bool
) -> tuple[tuple[TableRow, ...], list[str]]:
    """The rows, and why some have no ratio.

    Values are of the judged runs that ended and did not fail; of a cell without such, of the
    others. A ratio is against the baseline of the cell's contrast: the geometric mean over the
    blocks of ``paired`` runs, else that of the medians. There is none where :func:`compare` gives
    none, nor where the two are not comparable.
    """
    runs = [_shown(cell) for cell in cells]
    sessions = [run.session for of in runs for run in of]
    places = iter(range(len(sessions)))
    of_cell = [[(next(places), run) for run in of] for of in runs]
    rows = compare(sessions).rows
    against = {
        each.other: each.baseline for each in contrasts if each.verdict.kind is not Kind.INVALID
    }
    made = [_row(row, sessions, of_cell, against, paired=paired) for row in rows]
    if metric == STEP_TIME and any(cell.median is not None for cell in cells):
        made.insert(_first_of_steps(rows), _primary(cells, against, paired=paired))
    return tuple(made), [*ceiling_notes(rows), *energy_notes(sessions)]


_Places = Sequence[tuple[int, Run]]
"""Runs of a cell with their places among all sessions."""


def _shown(cell: Cell) -> list[Run]:
    over = [run for run in cell.judged if not run.session.status.live]
    good = [run for run in over if sound(run.session)]
    return good or over or list(cell.judged)


def _first_of_steps(rows: Sequence[Row]) -> int:
    return next((at for at, row in enumerate(rows) if row.group == "steps"), len(rows))


def _row(
    row: Row,
    sessions: Sequence[Summary],
    of_cell: Sequence[_Places],
    against: Mapping[int, int],
    *,
    paired: bool,
) -> TableRow:
    # Beside values that are known, those that are at most so much say too little for a median.
    bounds = {at for at, is_bound in enumerate(row.at_most) if is_bound}
    known = [at for at, value in enumerate(row.values) if value is not None]
    at_most = bool(bounds) and bounds.issuperset(known)
    left_out = set() if at_most else bounds
    found = [
        [
            (run, at, value)
            for at, run in runs
            if at not in left_out and (value := row.values[at]) is not None
        ]
        for runs in of_cell
    ]

    def over(first: _Value, second: _Value) -> float | None:
        return ratio(row, sessions, first[1], second[1])

    return _made(
        row.group,
        row.name,
        row.unit,
        found,
        tuple(_weakest(row.methods[at] for _, at, _ in of) for of in found),
        _ratios(found, against, over, paired=paired),
        is_traffic=row.is_traffic,
        at_most=at_most,
    )


def _primary(cells: Sequence[Cell], against: Mapping[int, int], *, paired: bool) -> TableRow:
    """What the verdicts are of."""
    found = [
        [(run, 0, run.value) for run in valued(cell) if run.value is not None] for cell in cells
    ]
    return _made(
        "steps",
        STEADY,
        "s",
        found,
        tuple(Method.MEASURED if of else Method.UNAVAILABLE for of in found),
        _ratios(found, against, lambda first, second: second[2] / first[2], paired=paired),
    )


_Value = tuple[Run, int, float]
"""A run, its place among all sessions, and its value."""


def _made(
    group: str,
    name: str,
    unit: str,
    found: Sequence[Sequence[_Value]],
    methods: tuple[Method, ...],
    ratios: tuple[float | None, ...],
    *,
    is_traffic: bool = False,
    at_most: bool = False,
) -> TableRow:
    values = [[value for *_, value in of] for of in found]
    return TableRow(
        group=group,
        name=name,
        unit=unit,
        values=tuple(statistics.median(of) if of else None for of in values),
        lows=tuple(min(of, default=None) for of in values),
        highs=tuple(max(of, default=None) for of in values),
        methods=methods,
        ratios=ratios,
        is_traffic=is_traffic,
        at_most=at_most,
    )


def _weakest(methods: Iterable[Method]) -> Method:
    """Of known values the method that says least."""
    return min(methods, key=_WEAKEST.index, default=Method.UNAVAILABLE)


def _ratios(
    found: Sequence[Sequence[_Value]],
    against: Mapping[int, int],
    over: Callable[[_Value, _Value], float | None],
    *,
    paired: bool,
) -> tuple[float | None, ...]:
    bases = set(against.values())
    return tuple(
        _ratio(found[against[at]], of, over, paired=paired)
        if at in against
        else 1.0
        if at in bases and of and statistics.median(value for *_, value in of)
        else None
        for at, of in enumerate(found)
    )


def _ratio(
    baseline: Sequence[_Value],
    other: Sequence[_Value],
    over: Callable[[_Value, _Value], float | None],
    *,
    paired: bool,
) -> float | None:
    if paired:
        first = {each[0].block: each for each in baseline}
        pairs = [(first[each[0].block], each) for each in other if each[0].block in first]
    else:
        # Whether two are of the same thing is transitive: no need to look at all pairs.
        pairs = [(one, two) for one in baseline for two in other[:1]]
        pairs += [(one, two) for one in baseline[:1] for two in other[1:]]
    known = [value for pair in pairs if (value := over(*pair)) is not None]
    if not known or (not paired and len(known) < len(pairs)):
        return None
    if paired and min(known) > 0:
        return math.exp(statistics.fmean(map(math.log, known)))
    base = statistics.median(value for *_, value in baseline)
    return statistics.median(value for *_, value in other) / base if base else None
