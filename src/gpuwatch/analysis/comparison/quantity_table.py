"""Quantities side by side as texts: what every screen and report shows of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from gpuwatch.analysis.comparison.comparison_row import ComparisonRow
from gpuwatch.analysis.comparison.side_by_side import environment_facts
from gpuwatch.analysis.comparison.wording import change_text
from gpuwatch.analysis.results import Cell, Difference, Question, TableRow
from gpuwatch.core import units
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method, label
from gpuwatch.core.models import JSON, mapping
from gpuwatch.core.text import clean

_FIRST = "steps"
"""The group of the metric that verdicts are about."""


@dataclass(frozen=True)
class QuantityCell:
    """A value and what belongs to it; texts that do not apply are empty."""

    value: str
    """With its unit and the sign of a bound; a dash if unknown."""
    is_known: bool
    ratio: str = ""
    """The value over the baseline's: ``×1.031``."""
    span: str = ""
    """The range of the runs where it shows, without the value's unit: ``499 to 506``."""
    runs: str = ""
    """``2 of 5 runs`` if not all of them have a value."""
    change: str = ""
    """Within the blocks, with its interval: ``+3.1 % (+2.4 to +3.8)``; empty without blocks."""
    is_changed: bool = False
    """Whether the interval of ``change`` excludes zero."""


@dataclass(frozen=True)
class QuantityRow:
    name: str
    cells: tuple[QuantityCell, ...]
    """One per column shown."""
    method: str
    """``counted``, or several: ``counted/bound``."""


@dataclass(frozen=True)
class QuantityGroup:
    name: str
    rows: tuple[QuantityRow, ...]


def quantity_table(
    rows: Sequence[ComparisonRow | TableRow],
    baseline: int | None,
    columns: Sequence[int] | None = None,
) -> tuple[QuantityGroup, ...]:
    """The groups of quantities, those of the steps first.

    ``baseline`` is the index of the column without ratios. With ``columns`` only these, and no row
    that is unknown in all of them.
    """
    ordered = sorted(rows, key=lambda row: row.group != _FIRST)
    shown = [
        row
        for row in ordered
        if columns is None or any(row.values[at] is not None for at in columns)
    ]
    return tuple(
        QuantityGroup(clean(group), tuple(_row(row, baseline, columns) for row in of_group))
        for group, of_group in groupby(shown, key=lambda row: row.group)
    )


def _row(
    row: ComparisonRow | TableRow, baseline: int | None, columns: Sequence[int] | None
) -> QuantityRow:
    shown = range(len(row.values)) if columns is None else columns
    methods = dict.fromkeys(row.methods[at].value for at in shown)
    methods.pop(Method.UNAVAILABLE.value, None)
    name = clean(row.name)
    return QuantityRow(
        label(name) if "." in name else name,
        tuple(_cell(row, at, baseline) for at in shown),
        "/".join(methods),
    )


def _cell(row: ComparisonRow | TableRow, at: int, baseline: int | None) -> QuantityCell:
    value = row.values[at]
    text = units.quantity(value, row.unit, is_traffic=row.is_traffic)
    if value is None:
        return QuantityCell(text, is_known=False)
    bound = row.bound(at)
    ratio = "" if at == baseline else units.ratio(row.ratios[at])
    cell = QuantityCell(units.bounded(text, bound), True, ratio)
    if isinstance(row, ComparisonRow):
        return cell
    change = row.changes[at] if row.changes else None
    return replace(
        cell,
        span=_span(row, at, text),
        runs=_runs(row, at),
        change="" if change is None else change_text(change),
        is_changed=change is not None and not change.low <= 0 <= change.high,
    )


def _span(row: TableRow, at: int, value: str) -> str:
    low, high = row.lows[at], row.highs[at]
    if low is None or high is None:
        return ""
    first, to, last = units.span(low, high, row.unit, is_traffic=row.is_traffic).partition(" to ")
    number, _, unit = last.rpartition(" ")
    shared = " " not in first and value.endswith(f" {unit}")
    return f"{first}{to}{number if shared else last}" if to else ""


def _runs(row: TableRow, at: int) -> str:
    if not row.known or not 0 < row.known[at] < row.runs[at]:
        return ""
    return f"{row.known[at]} of {row.runs[at]} runs"


def difference_name(difference: Difference) -> str:
    """The fact's name, without its scope if that is redundant: ``image size``, ``host: kernel``."""
    scope, key = difference.scope, difference.key
    if scope == "environment":
        return key if key.startswith("variables.") else key.replace("_", " ")
    if scope in ("process", "host"):
        return key.removeprefix("process.").removeprefix("env.")
    return f"{scope}: {key}"


def difference_texts(difference: Difference) -> tuple[str, ...]:
    """The values, each whole."""
    return tuple(units.fact(difference.key, value) for value in difference.values)


def of_question(question: Question) -> tuple[Difference, ...]:
    """The facts that differ between any two compared cells, with the value in every cell."""
    facts = {
        (each.scope, each.key): None
        for contrast in question.contrasts
        for each in contrast.explanation.differences
    }
    return tuple(
        Difference(scope, key, tuple(_value(cell, scope, key) for cell in question.cells))
        for scope, key in facts
    )


def _value(cell: Cell, scope: str, key: str) -> JSON:
    sessions = [run.session for run in cell.judged or cell.runs]
    values = [
        (
            environment_facts(each.environment)
            if scope == "environment"
            else mapping(each.facts.get(scope))
        ).get(key)
        for each in sessions
    ]
    if any(value != values[0] for value in values):
        return "differs from run to run"
    return values[0] if values else None
