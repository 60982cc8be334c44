"""Of all quantities of a comparison only those that differ, the largest change first."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from gpuwatch.analysis.comparison.comparison_row import (
    ALL_STEPS,
    DEGREES,
    OF_THE_RUN,
    PAID,
    STEADY,
    ComparisonRow,
)
from gpuwatch.analysis.comparison.effect import shows
from gpuwatch.analysis.comparison.side_by_side import PEAK_MEMORY, Comparison
from gpuwatch.analysis.results import Question, TableRow, Verdict
from gpuwatch.core import units
from gpuwatch.report.document import quantities
from gpuwatch.report.document.blocks import Section, Sentence

_LEAST = 0.01
"""Least change that is shown, as a ratio; of shares in points, too."""
_MAXIMUM = "maximum"
"""Group of the largest values of what has a mean, too."""
_BEFORE = {_MAXIMUM: "maximum ", "phases, mean": "phase: "}
"""What stands before the names of a group."""
_MOST = 12
"""Most quantities; of more, the number is told."""


def of_sessions(
    compared: Comparison,
    names: Sequence[str],
    above: Sequence[ComparisonRow] = (),
) -> Section:
    """What differs between single sessions, but for the rows that stand ``above`` it; not from one
    that is compared with none."""
    told = "single runs: how much they vary is not known"
    known = {row.name for row in above} | {_reads(row) for row in above}
    rows = [row for row in compared.rows if known.isdisjoint((row.name, _reads(row)))]
    steps = {session.steps.count for session in compared.sessions}
    if len(steps) > 1:
        rows = [
            row for row in rows if row.name not in OF_THE_RUN and row.group != "over the window"
        ]
        told += "; no totals, as the runs timed other numbers of steps"
    places = {
        at for row in compared.rows for at, ratio in enumerate(row.ratios) if ratio is not None
    }
    return _differing(rows, compared.baseline, names, told, None, places=places, badges=False)


def _reads(row: ComparisonRow | TableRow) -> tuple[str, ...]:
    """What makes a row another one: of memory its values, as that of the only process reads as that
    of its GPU, else its name."""
    if row.unit == "By":
        return tuple(units.quantity(value, row.unit) for value in row.values)
    return row.group, row.name


def of_question(question: Question) -> Section:
    """What differs between the cells of ``question``."""
    labels = [cell.label for cell in question.cells]
    told = (
        "values are medians of runs; changes are means within blocks, which may be others, above "
        "their 95 % intervals (of the judged the verdict's), which exclude 0, as one in twenty "
        "does by chance; without blocks the runs do not overlap"
    )
    if not any(change for row in question.table for change in row.changes or ()):
        told = "" if len(labels) < 2 else "without a verdict: values are medians of runs"
    verdicts = {each.other: each.verdict for each in question.contrasts}
    every = range(len(labels))
    return _differing(
        question.table, question.baseline, labels, told, verdicts, places=every, badges=True
    )


def _differing(
    rows: Sequence[ComparisonRow | TableRow],
    baseline: int | None,
    labels: Sequence[str],
    told: str,
    verdicts: Mapping[int, Verdict] | None,
    *,
    places: Collection[int],
    badges: bool,
) -> Section:
    """``places``: the columns that are compared."""
    if baseline is None or len(labels) < 2:
        return Section("what differs", ())
    sizes = [(_size(row, baseline, places), row) for row in rows]
    sizes.sort(key=lambda each: (each[1].name not in (STEADY, ALL_STEPS, PAID), -each[0]))
    found = [row for size, row in sizes if size > 0]
    means = {row.name for row in found if row.group != _MAXIMUM}
    found = [row for row in found if row.group != _MAXIMUM or row.name not in means]
    once: dict[tuple[object, ...], ComparisonRow | TableRow] = {}
    for row in found:
        changes = row.changes if isinstance(row, TableRow) else ()
        once.setdefault((*_reads(row), changes), row)
    found = list(once.values())
    if not found:
        return Section("what differs", [Sentence("", "nothing else by more than 1 %")])
    legend = ["more than 1 % apart, shares 1 pp; the judged first, then the largest", told]
    shown = found[:_MOST]
    ratios = [row for row in shown if row.unit != DEGREES]
    if any(_apart(row, at, baseline) and not row.ratios[at] for row in ratios for at in places):
        legend.append(
            "without a change: from or to nothing, of a run that failed, or of unlike work, "
            "windows, ceilings or seeds"
        )
    rest = [quantities.badge_legend(shown)] if badges else []
    if len(found) > _MOST:
        rest.append(f"{units.counted(len(found) - _MOST, 'smaller difference')} left out")
    legend.append("; ".join(filter(None, rest)))
    # The name alone could be another's.
    named = [
        replace(row, name=f"{_BEFORE[row.group]}{quantities.name_of(row)}")
        if row.group in _BEFORE and row.name != PEAK_MEMORY
        else row
        for row in shown
    ]
    table = quantities.quantity_table(
        named, labels, baseline, badges=badges, brief=True, verdicts=verdicts
    )
    return Section("what differs", [table, *(Sentence("", each) for each in legend if each)])


def _size(row: ComparisonRow | TableRow, baseline: int, places: Collection[int]) -> float:
    """The logarithm of the factor between the baseline's value and the furthest that differs, 0 if
    none does."""
    return max((_apart(row, at, baseline) for at in places), default=0.0)


def _apart(row: ComparisonRow | TableRow, at: int, baseline: int) -> float:
    value, base = row.values[at], row.values[baseline]
    if at == baseline or value is None or base is None or not shows(row, at, baseline):
        return 0.0
    if row.unit == "J" and row.ratios[at] is None:
        return 0.0  # within the error of energy
    if row.unit == "{step}" or value == base or row.bound(at) or row.bound(baseline):
        return 0.0  # how many steps were timed says nothing of how fast they were
    if row.group == "over the window" and row.ratios[at] is None and base:
        return 0.0  # the longer window has more
    if row.unit == "1" and abs(value - base) <= _LEAST:
        return 0.0
    if value <= 0 or base <= 0:
        return _LEAST  # to or from nothing: how much has no measure
    size = abs(math.log(row.ratios[at] or value / base))
    return size if size > _LEAST else 0.0
