"""Times of a profile, and kernels that ran in one session but not in the others."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpuwatch.analysis.hardware.profile import KERNELS, MEMORY_TIME, OPERATORS, Profile, Table
from gpuwatch.core.lazy_dataclass import dataclass

MOST = 12
"""Kernels listed in a comparison: those with the largest share of time."""

_TIME = "Total Time (ns)"
_TO_DEVICE = re.compile(r"host[- ]to[- ]device|htod", re.IGNORECASE)
_MEMSET = re.compile(r"memset", re.IGNORECASE)
_LONGEST = 72


@dataclass(frozen=True)
class KernelRow:
    """A kernel (or an operator of the CPU) that did not run everywhere."""

    table: str
    name: str
    """As the tool reports it."""
    shares: tuple[float | None, ...]
    """Share of the time of all kernels in each session, 0 to 1; 0: it did not run; ``None``: no
    such table, or rows of it were left out."""


@dataclass(frozen=True)
class Times:
    """Seconds over all steps of a profile; ``None`` is unknown."""

    kernels: float | None
    copies_to_device: float | None
    memset: float | None


def times_of(profile: Profile | None) -> Times:
    """GPU time in kernels, in copies from the host, and in memset."""
    tables = {} if profile is None else profile.tables
    return Times(
        _seconds(tables.get(KERNELS), None),
        _seconds(tables.get(MEMORY_TIME), _TO_DEVICE),
        _seconds(tables.get(MEMORY_TIME), _MEMSET),
    )


def _seconds(table: Table | None, pattern: re.Pattern[str] | None) -> float | None:
    """Seconds of the rows whose operation matches, 0 without any; unknown for a shortened table."""
    if table is None or table.rows_left_out:
        return None
    times = table.numbers(_TIME)
    names = table.column("Operation") if pattern else ("",) * len(times)
    if not times or len(names) != len(times):
        return None
    total = 0.0
    for name, time in zip(names, times, strict=True):
        if pattern is not None and not pattern.search(str(name)):
            continue
        if time is None:
            return None
        total += time
    return total / 1e9


def differing_kernels(
    profiles: Sequence[Profile | None], most: int | None = MOST
) -> tuple[KernelRow, ...]:
    """Kernels that ran in some sessions but not in all, the largest share first.

    GPU kernels, or CPU operators if no session has any. ``most``: limit of the list; ``None``: all.
    """
    for table in (KERNELS, OPERATORS):
        shares = [_shares(profile, table) for profile in profiles]
        known = [of_session for of_session in shares if of_session is not None]
        if not known:
            continue
        names = dict.fromkeys(name for of_session in known for name in of_session)
        rows = [
            KernelRow(
                table,
                name,
                tuple(
                    None if of is None else of.get(name, None if _cut(profile, table) else 0.0)
                    for of, profile in zip(shares, profiles, strict=True)
                ),
            )
            for name in names
        ]
        differing = [row for row in rows if any(row.shares) and 0.0 in row.shares]
        differing.sort(key=lambda row: -max(share or 0.0 for share in row.shares))
        return tuple(differing[:most])
    return ()


def _cut(profile: Profile | None, table: str) -> bool:
    return profile is not None and profile.tables[table].rows_left_out > 0


def _shares(profile: Profile | None, name: str) -> dict[str, float] | None:
    table = None if profile is None else profile.tables.get(name)
    if table is None or not table.rows:
        return None
    times, names = table.numbers(_TIME), table.column("Name")
    total = sum(time for time in times if time)
    if not names or total <= 0:
        return None
    shares: dict[str, float] = {}
    for kernel, time in zip(names, times, strict=False):
        if time:
            shares[str(kernel)] = shares.get(str(kernel), 0.0) + time / total
    return shares


def short_name(name: str, longest: int = _LONGEST) -> str:
    """A kernel's name without return type, arguments and nested template parameters.

    A long name keeps its beginning and its end, where kernels of one family differ.
    """
    text = name.removeprefix("void ").strip()
    if text.endswith(")"):
        text = _before_arguments(text)
    text = _shallow(text)
    if len(text) <= longest:
        return text
    tail = longest // 3
    return f"{text[: longest - tail - 1]}…{text[-tail:]}"


def _before_arguments(text: str) -> str:
    """``text`` without the last parenthesised list, the arguments of a C++ function."""
    depth = 0
    for at in range(len(text) - 1, 0, -1):
        depth += (text[at] == ")") - (text[at] == "(")
        if depth == 0:
            return text[:at]
    return text


def _shallow(text: str) -> str:
    """``text`` with nested template parameters shortened to ``<…>``."""
    out, depth = [], 0
    for character in text:
        if character == "<":
            depth += 1
            if depth == 2:
                out.append("<…>")
        if depth < 2:
            out.append(character)
        if character == ">" and depth:
            depth -= 1
    return "".join(out)
