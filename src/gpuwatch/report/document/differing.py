"""Of all quantities of a comparison only those that differ, the largest change first."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

from gpuwatch.analysis.comparison.comparison_row import (
    ALL_STEPS,
    DEGREES,
    PAID,
    STEADY,
    THROUGHPUT,
    as_long,
)
from gpuwatch.analysis.comparison.effect import shows
from gpuwatch.analysis.comparison.same_work import RATES
from gpuwatch.analysis.comparison.side_by_side import Comparison
from gpuwatch.analysis.hardware.energy import COUNTER
from gpuwatch.analysis.results import ComparisonRow, Question, Verdict
from gpuwatch.analysis.summary.identity import sound
from gpuwatch.core import units
from gpuwatch.report.document import quantities
from gpuwatch.report.document.blocks import Section, Sentence

_LEAST = 0.01
"""Least change that is shown, as a ratio; of shares in points, too."""
_MAXIMUM = "maximum"
"""Group of the largest values of what has a mean, too."""
_SINGLE = "single runs: how much they vary is not known"
_WAYS = {True: "with an interval that excludes zero", False: "with runs that do not overlap"}
"""How repeated runs show a change, with and without blocks."""
_RATES = (PAID, THROUGHPUT)
_PLACE = {name: at for at, name in enumerate((STEADY, ALL_STEPS, *_RATES))}
"""Of what is judged, in the order of its sentence."""
_MOST = 12
"""Most quantities; of more, the number is told."""


def of_sessions(
    compared: Comparison, names: Sequence[str], above: Sequence[ComparisonRow] = ()
) -> Section:
    """What differs between single sessions, but for the rows that stand ``above`` it; not from one
    that is compared with none."""
    told = _SINGLE
    known = {row.name for row in above} | {_reads(row) for row in above}
    rows = [row for row in compared.rows if known.isdisjoint((row.name, _reads(row)))]
    bases = [compared.sessions[compared.baseline or 0]] if compared.sessions else []
    if not all(as_long(base, each) for base in bases for each in compared.sessions):
        told += (
            "; totals, such as elapsed, have no change: the runs timed different numbers of steps"
        )
    places = {
        at for row in compared.rows for at, ratio in enumerate(row.ratios) if ratio is not None
    }
    return _differing(rows, compared.baseline, names, told, None, places=places, above=above)


def _reads(row: ComparisonRow) -> tuple[str, ...]:
    """What makes a row another one: of memory its values, as that of the only process reads as that
    of its GPU, else its name."""
    if row.unit == "By":
        return tuple(units.quantity(value, row.unit) for value in row.values)
    return row.group, row.name


def of_question(question: Question) -> Section:
    """What differs between the cells of ``question``."""
    labels = [cell.label for cell in question.cells]
    several = any(len(cell.judged) > 1 for cell in question.cells)
    told = "values are geometric means of runs, medians where one is 0" if several else _SINGLE
    verdicts = {each.other: each.verdict for each in question.contrasts}
    ran = [
        at
        for at, cell in enumerate(question.cells)
        if any(sound(run.session) for run in cell.judged)
    ]
    return _differing(question.table, question.baseline, labels, told, verdicts, places=ran)


def _differing(
    rows: Sequence[ComparisonRow],
    baseline: int | None,
    labels: Sequence[str],
    told: str,
    verdicts: Mapping[int, Verdict] | None,
    *,
    places: Collection[int],
    above: Sequence[ComparisonRow] = (),
) -> Section:
    """``places``: the columns that are compared; ``verdicts``: theirs, of repeated runs."""
    if baseline is None or (verdicts is not None and baseline not in places):
        return Section("what differs", ())
    if not (places := [at for at in places if at != baseline]):
        return Section("what differs", ())
    # Of each the logarithm of the factor to the furthest that differs, 0 if none does.
    sizes = [(max(_apart(row, at, baseline) for at in places), row) for row in rows]
    sizes.sort(key=lambda each: (_PLACE.get(each[1].name, len(_PLACE)), -each[0]))
    stays = _rates(rows, (verdicts or {}).values())
    if any(each.change is not None for each in (verdicts or {}).values()):
        stays += [row for row in rows if row.name in (STEADY, ALL_STEPS, PAID)]
    found = [row for size, row in sizes if size > 0 or row in stays]
    means = {row.name for row in found if row.group != _MAXIMUM}
    found = [row for row in found if row.group != _MAXIMUM or row.name not in means]
    if any(row.name == "energy per step" for row in found):
        found = [row for row in found if row.name != COUNTER]  # the same, of all steps
    once: dict[tuple[object, ...], ComparisonRow] = {}
    for row in found:
        once.setdefault((*_reads(row), *map(row.change, places)), row)
    found = list(once.values())
    shown = found[:_MOST]
    compared = [(row, at) for row in rows for at in places if row.ratios[at] is not None]
    apart = [(row, at) for row in shown for at in places if _apart(row, at, baseline)]
    paired = {row.change(at) is not None for row, at in apart or compared}
    ways = [] if told.startswith(_SINGLE) else [_WAYS[each] for each in _WAYS if each in paired]
    rule = " ".join(filter(None, ("by more than 1 % (shares 1 pp)", " or ".join(ways))))
    if not shown:
        steps = any(row.unit == "{step}" and row.ratios[at] != 1 for row, at in compared)
        told = (
            f"nothing else that can be compared{', but numbers of steps,' * steps} differs {rule}"
        )
        return Section("what differs", [Sentence("", told)] if compared else ())
    legend = [f"first what is judged, then what differs {rule}, the largest factor first"]
    legend.append(told + quantities.steps_of([*above, *shown]))
    legend += quantities.change_legend(shown, baseline) if ways else []
    if any(row.unit != DEGREES and row.ratios[at] is None for row, at in apart):
        legend.append(
            "without a change: from nothing, of a run that failed, or of unlike work, "
            "windows, ceilings or seeds"
        )
    rest = [] if verdicts is None else [quantities.badge_legend(shown)]
    if len(found) > _MOST:
        rest.append(f"{units.counted(len(found) - _MOST, 'smaller difference')} left out")
    legend.append("; ".join(filter(None, rest)))
    table = quantities.quantity_table(
        shown, labels, baseline, badges=verdicts is not None, brief=True, verdicts=verdicts
    )
    return Section("what differs", [table, *(Sentence("", each) for each in legend if each)])


def rates(question: Question) -> Section:
    """The throughput of each cell, where unlike steps leave no verdict."""
    rows = _rates(question.table, [each.verdict for each in question.contrasts])
    labels = [cell.label for cell in question.cells]
    table = quantities.quantity_table(rows, labels, question.baseline, brief=True)
    return Section("", (table,) if rows else ())


def _rates(rows: Sequence[ComparisonRow], verdicts: Iterable[Verdict]) -> list[ComparisonRow]:
    unlike = any(each.endswith(f"({RATES})") for verdict in verdicts for each in verdict.reasons)
    return [row for row in rows if unlike and row.name in _RATES]


def _apart(row: ComparisonRow, at: int, baseline: int) -> float:
    value, base = row.values[at], row.values[baseline]
    if value is None or base is None or not shows(row, at, baseline):
        return 0.0
    if row.unit == "J" and row.ratios[at] is None:
        return 0.0  # within the error of energy
    if row.unit == "{step}" or value == base or row.bound(at) or row.bound(baseline):
        return 0.0  # how many steps were timed says nothing of how fast they were
    if not row.of_cells and row.is_total and row.ratios[at] is None and base:
        return 0.0  # the longer run has more
    if row.unit == "1":
        of = max(value, _LEAST) / max(base, _LEAST)
        return abs(math.log(of)) if abs(value - base) > _LEAST else 0.0
    if value <= 0 or base <= 0:
        return _LEAST  # to or from nothing: how much has no measure
    size = abs(math.log(row.ratios[at] or value / base))
    return size if size > _LEAST else 0.0
