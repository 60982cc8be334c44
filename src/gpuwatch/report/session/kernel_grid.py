"""The table of what differs in the kernels of several sessions."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.analysis.hardware.kernels import KernelRow, short_name
from gpuwatch.core import units
from gpuwatch.core.text import clean
from gpuwatch.report.tables.grid import Grid


def kernel_grid(
    labels: Sequence[str], kernels: Sequence[KernelRow], families: Sequence[KernelRow]
) -> Grid:
    """Each family that differs, and under it its kernels that did not run everywhere."""
    per_step = any(row.per_step for row in (*families, *kernels))
    names = _distinct(kernels)
    rows: list[tuple[str, ...]] = []
    for family in families:
        rows.append((family.family, *_cells(family)))
        rows += [
            (f"· {name}", *_cells(row))
            for row, name in zip(kernels, names, strict=True)
            if row.family == family.family
        ]
    title = f"kernels that differ{', per step' if per_step else ''}"
    if any(share for row in families for share in row.shares):
        title += "; % of kernel time"
    return Grid((title, *labels), tuple(rows))


def _cells(row: KernelRow) -> list[str]:
    return [_cell(row, at) for at in range(len(row.kernels))]


def _cell(row: KernelRow, at: int) -> str:
    """``3 kernels, 24 launches, 1.58 GFLOP, 51 %``, of what is known; a dash: none ran."""
    kernels, launches, flop, share = (
        values[at] for values in (row.kernels, row.launches, row.flop, row.shares)
    )
    if kernels is None:
        return units.UNKNOWN
    if kernels == 0:
        return "-"
    many, work = [], []
    if row.name is None:
        many.append(f"{kernels} kernel{'' if kernels == 1 else 's'}")
    if launches is not None:
        many.append(f"{launches:,.4g} launch{'' if launches == 1 else 'es'}")
    if flop is not None:
        work.append(units.si(flop, "FLOP"))
    if share is not None:
        work.append(units.percent(share))
    return ",\t".join(", ".join(parts) for parts in (many, work) if parts) or "ran"


def _distinct(rows: Sequence[KernelRow]) -> list[str]:
    """Short names, or full names where two short ones are equal."""
    full = [row.name or "" for row in rows]
    short = [short_name(name) for name in full]
    return [
        clean(name, 300) if short.count(shorter) > 1 else shorter
        for name, shorter in zip(full, short, strict=True)
    ]
