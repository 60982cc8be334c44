"""Kernels that ran in only one of two environments, by family, and executed work."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from gpuwatch.analysis.explain.sides import Sides
from gpuwatch.analysis.hardware.kernels import MOST, KernelRow, differing_kernels, short_name
from gpuwatch.analysis.hardware.profile import KERNELS, OPERATORS, Counters, Profile
from gpuwatch.analysis.results import Cell, Evidence
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core import units
from gpuwatch.core.metrics import Method
from gpuwatch.core.text import clean

LEAST_SHARE = 0.005
"""Share of the time below which differing kernels are only listed, without a sentence."""
_LEAST_EXECUTED = 0.02
"""Relative difference of executed FLOP or bytes from which on it is reported."""
_LONGEST_NAME = 60
_MOST_FAMILIES = 2

# By the words that libraries use in kernel names; the first match counts.
_FAMILIES = tuple(
    (re.compile(pattern, re.IGNORECASE), family)
    for pattern, family in (
        (r"winograd", "Winograd convolution"),
        (r"implicit_?(gemm|conv)|[sh](884|1688|16816)?cudnn_", "implicit GEMM convolution"),
        (r"flash", "flash attention"),
        (r"attention|sdpa|fmha", "attention"),
        (r"mkldnn|onednn", "oneDNN"),
        (r"fft", "FFT"),
        (r"nchwto|nhwcto|tonchw|tonhwc|(?<!conv_)transpose|permute", "change of layout"),
        (r"rnn|lstm|gru_", "recurrent layer"),
        (r"conv(?!ert)|dgrad|wgrad|fprop", "convolution"),
        (r"gemm|gemv|cutlass|xmma|nvjet|splitk|::(add|b|baddb)?mm$|matmul", "GEMM"),
    )
)


def family(name: str) -> str | None:
    """What a kernel of cuDNN, cuBLAS, CUTLASS or oneDNN does, by its name; ``None``: unknown.

    ``scudnn`` and ``h884cudnn`` kernels without ``winograd`` are cuDNN's precomputed implicit GEMM.
    """
    return next((label for pattern, label in _FAMILIES if pattern.search(name)), None)


def differing(sides: Sides) -> tuple[tuple[KernelRow, ...], Evidence | None]:
    """Kernels that ran in only one cell, the largest first, and the sentence about them.

    Shares are from the profile of the run nearest to its cell's median. A kernel launched in any
    run of the other cell does not count.
    """
    nearest = [nearest_profiled(cell) for cell in sides.cells]
    profiles = [None if each is None else each.profile for each in nearest]
    rows = differing_kernels(profiles, most=None)
    if not rows:
        return (), None
    table = rows[0].table
    launched = [_launched(cell, table) for cell in sides.cells]
    rows = tuple(
        row
        for row in rows
        if not any(
            share == 0.0 and row.name in names
            for share, names in zip(row.shares, launched, strict=True)
        )
    )
    tool = next(each.tool for each in profiles if each is not None)
    return rows[:MOST], _evidence(sides, rows, table, tool)


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
            known = (each for part in sides.sessions for each in part if each.counters is not None)
            tool = next(each.counters.tool for each in known if each.counters is not None)
            return Evidence(
                "kernels", "; ".join(texts), None, Method.MEASURED, f"hardware counters, {tool}"
            )
    return None


def _counted(sides: Sides, name: str, unit: str, keys: Sequence[str]) -> str | None:
    first, second = sides.medians(lambda session: _sum(session.counters, keys))
    if first is None or second is None or max(first, second) <= 0:
        return None
    if abs(second - first) < _LEAST_EXECUTED * max(first, second):
        return None
    ratio = f" ({units.ratio(second / first)})" if first else ""
    return f"{name} {sides.both(units.si(first, unit), units.si(second, unit))}{ratio}"


def _sum(counters: Counters | None, keys: Sequence[str]) -> float | None:
    values = [None if counters is None else getattr(counters, key) for key in keys]
    known = [float(value) for value in values if value is not None]
    total = sum(known)
    return total if len(known) == len(values) and math.isfinite(total) else None


def nearest_profiled(cell: Cell) -> Summary | None:
    """The judged run with a profile whose value is nearest to the median."""
    runs = [run for run in cell.judged if _has_tables(run.session.profile)]
    middle = cell.median
    timed = [run for run in runs if run.value is not None]
    if middle is not None and timed:
        return min(timed, key=lambda run: abs((run.value or 0.0) - middle)).session
    return runs[0].session if runs else None


def _has_tables(profile: Profile | None) -> bool:
    tables = {} if profile is None else profile.tables
    return any(name in tables and tables[name].rows for name in (KERNELS, OPERATORS))


def _launched(cell: Cell, table: str) -> set[str]:
    """Names of all kernels in the profiles of a cell's judged runs."""
    return {
        str(name)
        for run in cell.judged
        if run.session.profile is not None and table in run.session.profile.tables
        for name in run.session.profile.tables[table].column("Name")
    }


def _evidence(sides: Sides, rows: Sequence[KernelRow], table: str, tool: str) -> Evidence | None:
    what = "kernel" if table == KERNELS else "operator"
    texts = list(_one_sided(sides, rows, what))
    if not texts:
        return None
    return Evidence(
        "kernels",
        "; ".join(texts),
        None,
        Method.MEASURED,
        f"{tool}, of the run nearest to the median of each environment",
    )


def _one_sided(sides: Sides, rows: Sequence[KernelRow], what: str) -> Iterator[str]:
    """Sentences on kernels only in the other cell, then on kernels only in the baseline."""
    for here in (1, 0):
        alone = [
            (row.name, share)
            for row in rows
            if (share := row.shares[here]) and row.shares[1 - here] == 0.0
        ]
        total = sum(share for _, share in alone)
        if total < LEAST_SHARE:
            continue
        name, away = sides.names[here], sides.names[1 - here]
        whats = what if len(alone) == 1 else f"{what}s"
        largest, share = max(alone, key=lambda each: each[1])
        named = clean(short_name(largest, _LONGEST_NAME), _LONGEST_NAME)
        text = f"{len(alone)} {whats} ran in {name} and not in {away}, {units.percent(total)} of "
        text += f"its {what} time: {_families(alone)}"
        yield text + (
            f"the largest {named}, {units.percent(share)}" if len(alone) > 1 else f"{named}"
        )


def _families(alone: Sequence[tuple[str, float]]) -> str:
    """``Winograd convolution 36 %, `` and so on for the families with the most time."""
    shares: dict[str, float] = {}
    for name, share in alone:
        if (label := family(name)) is not None:
            shares[label] = shares.get(label, 0.0) + share
    most = sorted(shares.items(), key=lambda each: -each[1])[:_MOST_FAMILIES]
    return "".join(
        f"{name} {units.percent(share)}, " for name, share in most if share >= LEAST_SHARE
    )
