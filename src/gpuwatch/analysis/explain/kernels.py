"""Kernels that ran in only one of two environments, by family, and executed work."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from gpuwatch.analysis.explain.sides import Sides
from gpuwatch.analysis.hardware.kernels import (
    LEAST_FLOP,
    MOST,
    OTHER,
    KernelRow,
    differing_kernels,
    family_launches,
    short_name,
)
from gpuwatch.analysis.hardware.profile import KERNELS, OPERATORS, Counters, Profile
from gpuwatch.analysis.results import Cell, Evidence
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core import units
from gpuwatch.core.aggregate import total_of
from gpuwatch.core.metrics import Method
from gpuwatch.core.text import clean

LEAST_SHARE = 0.005
"""Share of the time below which differing kernels are only listed, without a sentence."""
_LONGEST_NAME = 60
_MOST_FAMILIES = 2

Differing = tuple[KernelRow, ...]


def differing(sides: Sides) -> tuple[Differing, Differing, Evidence | None]:
    """Kernels that ran in only one cell, the families that differ, and the sentence about them.

    Of the run nearest to its cell's mean. A kernel launched in any run of the other cell does not
    count, nor a family's number of launches that some run of the other cell has too.
    """
    nearest = [nearest_profiled(cell) for cell in sides.cells]
    kernels, families = differing_kernels(
        [(None, None) if each is None else (each.profile, each.counters) for each in nearest]
    )
    if not families:
        return (), (), None
    table = families[0].table
    launched = [
        {
            str(name)
            for run in cell.judged
            if run.session.profile is not None and table in run.session.profile.tables
            for name in run.session.profile.tables[table].column("Name")
        }
        for cell in sides.cells
    ]
    kernels = tuple(
        row
        for row in kernels
        if not any(
            count == 0 and row.name in names
            for count, names in zip(row.kernels, launched, strict=True)
        )
    )
    alone = {row.family for row in kernels}
    families = tuple(row for row in families if row.family in alone or _always_differs(sides, row))
    profiles = [each.profile for each in nearest if each is not None and each.profile is not None]
    return kernels[:MOST], families, _evidence(sides, kernels, families, profiles)


def _always_differs(sides: Sides, row: KernelRow) -> bool:
    """Whether no run of one cell has as many launches of the family as any of the other."""
    launches = [
        {
            family_launches(run.session.profile, row.table, row.family, per_step=row.per_step)
            for run in cell.judged
        }
        - {None}
        for cell in sides.cells
    ]
    return all(launches) and launches[0].isdisjoint(launches[1])


def executed(sides: Sides) -> Evidence | None:
    """Executed FLOP and DRAM bytes from hardware counters, where they differ by 2 % or more."""
    for per, keys in (
        ("a step", ("flop_per_step", "dram_read_bytes_per_step", "dram_write_bytes_per_step")),
        ("in all", ("flop", "dram_read_bytes", "dram_write_bytes")),
    ):
        texts = [
            f"{text} {per}"
            for text in (
                _counted(sides, "executed FLOP", "FLOP", keys[:1]),
                _counted(sides, "DRAM traffic", "B", keys[1:]),
            )
            if text
        ]
        if texts:
            known = (each.counters for part in sides.sessions for each in part)
            tool = next(counters.tool for counters in known if counters is not None)
            source = f"hardware counters, {tool}"
            return Evidence("kernels", "; ".join(texts), None, Method.MEASURED, source)
    return None


def _counted(sides: Sides, name: str, unit: str, keys: Sequence[str]) -> str | None:
    first, second = sides.middles(lambda session: _sum(session.counters, keys))
    if first is None or second is None or max(first, second) <= 0:
        return None
    if abs(second - first) < LEAST_FLOP * max(first, second):
        return None
    ratio = f" ({units.ratio(second / first)})" if first else ""
    return f"{name} {sides.both(units.si(first, unit), units.si(second, unit))}{ratio}"


def _sum(counters: Counters | None, keys: Sequence[str]) -> float | None:
    total = total_of([None if counters is None else getattr(counters, key) for key in keys])
    return total if total is not None and math.isfinite(total) else None


def nearest_profiled(cell: Cell) -> Summary | None:
    """The judged run with a profile whose value is nearest to the mean."""
    runs = [run for run in cell.judged if _has_tables(run.session.profile)]
    mean = cell.mean
    timed = [run for run in runs if run.value is not None]
    if mean is not None and timed:
        return min(timed, key=lambda run: abs((run.value or 0.0) - mean)).session
    return runs[0].session if runs else None


def _has_tables(profile: Profile | None) -> bool:
    tables = {} if profile is None else profile.tables
    return any(name in tables and tables[name].rows for name in (KERNELS, OPERATORS))


def _evidence(
    sides: Sides, kernels: Differing, families: Differing, profiles: Sequence[Profile]
) -> Evidence | None:
    texts = [*_one_sided(sides, kernels, profiles), *_launches(sides, families)]
    if not texts:
        return None
    derived = [each.time_source for each in profiles if each.time_source]
    source, method = profiles[0].tool, Method.MEASURED
    source += ", of the run nearest to the mean of each environment"
    if derived and any(share for row in kernels for share in row.shares):
        source, method = f"{source}; times {derived[0]}", Method.COUNTED
    return Evidence("kernels", "; ".join(texts), None, method, source)


def _one_sided(sides: Sides, rows: Differing, profiles: Sequence[Profile]) -> Iterator[str]:
    """Sentences on kernels only in the other cell, then on kernels only in the baseline."""
    for here in (1, 0):
        alone = [row for row in rows if row.kernels[here] and row.kernels[1 - here] == 0]
        shares = [share for row in alone if (share := row.shares[here]) is not None]
        timed = len(shares) == len(alone)
        if not alone or (timed and sum(shares) < LEAST_SHARE):
            continue
        name, away = sides.names[here], sides.names[1 - here]
        what = "kernel" if alone[0].table == KERNELS else "operator"
        amount, largest = _amount(alone, here), _amount(alone[:1], here)
        if timed:
            derived = "derived " if any(each.time_source for each in profiles) else ""
            amount = f"{units.percent(sum(shares))} of its {derived}{what} time"
            largest = units.percent(alone[0].shares[here])
        named = clean(short_name(alone[0].name or "", _LONGEST_NAME), _LONGEST_NAME)
        text = f"{units.counted(len(alone), what)} ran in {name} and not in {away}, {amount}: "
        text += _families(alone, here, timed=timed)
        yield text + (f"the largest {named}, {largest}" if len(alone) > 1 else named)


def _families(alone: Sequence[KernelRow], here: int, *, timed: bool) -> str:
    """``Winograd convolution 36 %, `` and so on for the families with the most time.

    Without times by their numbers of kernels: ``Winograd convolution 3 kernels, ``.
    """
    sizes: dict[str, float] = {}
    for row in alone:
        if row.family != OTHER:
            size = (row.shares[here] or 0.0) if timed else 1
            sizes[row.family] = sizes.get(row.family, 0.0) + size
    most = sorted(sizes.items(), key=lambda each: -each[1])[:_MOST_FAMILIES]
    if not timed:
        return "".join(f"{name} {units.counted(size, 'kernel')}, " for name, size in most)
    return "".join(
        f"{name} {units.percent(share)}, " for name, share in most if share >= LEAST_SHARE
    )


def _launches(sides: Sides, families: Differing) -> Iterator[str]:
    """``GEMM 12 launches in bare, 10 in docker`` for families that both cells launched."""
    both = []
    for row in families:
        first, second = row.launches
        small = all(share is not None and share < LEAST_SHARE for share in row.shares)
        if first and second and first != second and row.family != OTHER and not small:
            both.append((abs(second - first), row.family, first, second, row.per_step))
    for _, name, first, second, per_step in sorted(both, reverse=True)[:_MOST_FAMILIES]:
        per = " a step" if per_step else ""
        yield f"{name} {sides.both(f'{first:,.4g} launches{per}', f'{second:,.4g}')}"


def _amount(rows: Sequence[KernelRow], here: int) -> str:
    """``24 launches, 1.58 GFLOP``, of what is known."""
    launches = total_of([row.launches[here] for row in rows])
    flop = total_of([row.flop[here] for row in rows])
    parts = [] if launches is None else [units.counted(launches, "launch", "launches")]
    parts += [] if flop is None else [units.si(flop, "FLOP")]
    per = " a step" if rows[0].per_step else ""
    return f"{', '.join(parts)}{per}" if parts else "how often is not known"
