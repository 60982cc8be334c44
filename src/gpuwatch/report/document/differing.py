"""Of all quantities of a comparison only those that differ, the largest change first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from gpuwatch.analysis.comparison.comparison_row import ComparisonRow
from gpuwatch.analysis.comparison.quantity_table import QuantityGroup, QuantityRow, quantity_table
from gpuwatch.analysis.comparison.side_by_side import Comparison
from gpuwatch.analysis.results import Question, TableRow
from gpuwatch.report.document import quantities
from gpuwatch.report.document.blocks import Section, Sentence

_LEAST = 0.01
"""Least change that is shown, as a ratio; of shares, in points."""
_MAXIMUM = "maximum"
"""Group of the largest values of what has a mean, too."""
_MOST = 20
"""Most quantities; of more, the number is told."""


def of_sessions(compared: Comparison, names: Sequence[str], first: Sequence[object]) -> Section:
    """What differs between single sessions, without the rows ``first``."""
    told = (
        "more than 1 % apart (shares: a point), largest first; single runs: how much a quantity "
        "varies from run to run is not known"
    )
    rows = [row for row in compared.rows if row not in first]
    return _differing(rows, compared.baseline, names, told, badges=False)


def of_question(question: Question) -> Section:
    """What differs between the cells of ``question``."""
    labels = [cell.label for cell in question.cells]
    told = (
        "more than 1 % apart (shares: a point), largest first; where runs are paired, by an "
        "interval of 95 % that excludes no change (one in twenty does by chance), else by runs "
        "that do not overlap"
    )
    return _differing(question.table, question.baseline, labels, told, badges=True)


def _differing(
    rows: Sequence[ComparisonRow | TableRow],
    baseline: int | None,
    labels: Sequence[str],
    told: str,
    *,
    badges: bool,
) -> Section:
    if baseline is None or len(labels) < 2:
        return Section("what differs", ())
    sizes = [(_size(row, baseline), row) for row in rows]
    found = [row for size, row in sorted(sizes, key=lambda each: -each[0]) if size > 0]
    means = {row.name for row in found if row.group != _MAXIMUM}
    found = [row for row in found if row.group != _MAXIMUM or row.name not in means]
    if not found:
        return Section("what differs", [Sentence("", "nothing by more than 1 %")])
    if len(found) > _MOST:
        told += f"; {len(found) - _MOST} more that differ less"
    named = QuantityGroup("", tuple(_named(row, baseline) for row in found[:_MOST]))
    table = quantities.quantity_table_of([named], labels, baseline, badges=badges)
    return Section("what differs", [table, Sentence("", told)])


def _named(row: ComparisonRow | TableRow, baseline: int) -> QuantityRow:
    """The row with the name of its group where the name alone could be another's."""
    (group,) = quantity_table([row], baseline)
    before = {_MAXIMUM: "maximum ", "phases, mean": "phase: "}.get(group.name, "")
    return replace(group.rows[0], name=f"{before}{group.rows[0].name}")


def _size(row: ComparisonRow | TableRow, baseline: int) -> float:
    """How far the furthest value that differs is from the baseline's, 0 if none does: logarithm of
    the ratio, of shares the difference."""
    return max((_apart(row, at, baseline) for at in range(len(row.values))), default=0.0)


def _apart(row: ComparisonRow | TableRow, at: int, baseline: int) -> float:
    value, base = row.values[at], row.values[baseline]
    if at == baseline or value is None or base is None or not _shown(row, at, baseline):
        return 0.0
    if row.unit == "{step}":
        return 0.0  # how many were timed says nothing of how fast they were
    ratio = row.ratios[at]
    if ratio is None and not (base == 0 and value and row.bound(at) is None):
        return 0.0  # not comparable
    if row.unit == "1":
        size = abs(value - base)
    elif not ratio:
        return _LEAST  # to or from nothing: how much has no measure
    else:
        size = abs(math.log(ratio))
    return size if size > _LEAST else 0.0


def _shown(row: ComparisonRow | TableRow, at: int, baseline: int) -> bool:
    """Whether the runs show a difference; single ones cannot contradict it."""
    if isinstance(row, ComparisonRow):
        return True
    change = row.changes[at] if row.changes else None
    if change is not None:
        return not change.low <= 0 <= change.high
    ends = (row.lows[at], row.highs[at], row.lows[baseline], row.highs[baseline])
    low, high, base_low, base_high = ends
    if low is None or high is None or base_low is None or base_high is None:
        return False
    return low > base_high or high < base_low
