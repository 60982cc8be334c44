"""Times of a profile, and what differs in the kernels of several sessions."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import astuple, replace

from gpuwatch.analysis.hardware.profile import (
    COUNTERS,
    FAMILIES,
    KERNELS,
    MEMORY_TIME,
    OPERATORS,
    TITLES,
    Cell,
    Counters,
    Profile,
    Table,
    counters_table,
)
from gpuwatch.core import units
from gpuwatch.core.aggregate import grouped
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import number
from gpuwatch.core.text import cut

OTHER = "other"
"""The family of names that say nothing."""

# The first match counts: a name says first what is special about it.
_FAMILIES = tuple(
    (re.compile(pattern, re.IGNORECASE), family)
    for pattern, family in (
        (r"nccl|rccl|c10d::|all_?reduce|all_?gather", "communication"),
        (r"winograd", "Winograd convolution"),
        (r"implicit_?(gemm|conv)|[sh](884|1688|16816)?cudnn_", "implicit GEMM convolution"),
        (r"flash", "flash attention"),
        (r"attention|sdpa|fmha", "attention"),
        (r"mkldnn|onednn", "oneDNN"),
        (r"fft", "FFT"),
        (r"softmax", "softmax"),
        (r"(batch|layer|group|instance|rms)_?norm|\bbn_(fw|bw)", "normalization"),
        (r"pool", "pooling"),
        (r"nchwto|nhwcto|tonchw|tonhwc|(?<!conv_)transpose|permute", "layout conversion"),
        (r"rnn|lstm|gru_", "recurrent layer"),
        (r"conv\w*direct", "direct convolution"),
        (r"conv(?!ert)|dgrad|wgrad|fprop|im2col|col2im", "convolution"),
        (r"gemm|gemv|cutlass|xmma|nvjet|splitk|::(add|b|baddb)?mm$|matmul", "GEMM"),
        (r"dropout|philox|curand|distribution_", "random numbers"),
        (r"embedding|gather|scatter|index", "indexing"),
        (r"nll_loss|cross_entropy", "loss"),
        (r"sort|topk", "sorting"),
        (r"copy|memcpy|memset|CatArray|::cat$", "copy"),
        (r"multi_tensor_apply|_foreach_", "multi-tensor"),
        (r"reduc|::(sum|mean)$", "reduction"),
        (
            r"elementwise|pointwise|op_tensor|::(add|addc?mul|addcdiv|mul|div|sqrt|lerp)_?$",
            "elementwise",
        ),
    )
)


def family(name: str) -> str:
    """What a kernel of cuDNN, cuBLAS, CUTLASS, oneDNN or torch does, by its name.

    ``scudnn`` and ``h884cudnn`` kernels without ``winograd`` are cuDNN's precomputed implicit GEMM.
    """
    return next((label for pattern, label in _FAMILIES if pattern.search(name)), OTHER)


MOST = 12
"""Kernels listed in a comparison: the largest."""
LEAST_FLOP = 0.02
"""Relative difference of executed FLOP or bytes from which on it is reported."""

Profiled = tuple[Profile | None, Counters | None]
"""What is known of the kernels of a session."""

_TIME, _STEP_TIME, _SHARE = "Total Time (ns)", "Time/Step (ns)", "Time (%)"
_COUNTS = {KERNELS: "Instances", OPERATORS: "Calls"}
_TO_DEVICE = re.compile(r"host[- ]to[- ]device|htod", re.IGNORECASE)
_MEMSET = re.compile(r"memset", re.IGNORECASE)
_LONGEST = 72


@dataclass(frozen=True)
class KernelRow:
    """A kernel (or an operator of the CPU) or a whole family, in each session.

    ``None`` is unknown: there is no such table, or rows of it were left out.
    """

    table: str
    family: str
    name: str | None
    """As the tool reports it; ``None``: the row is of all kernels of the family."""
    kernels: tuple[int | None, ...]
    """How many kernels of different names ran; 0: none did."""
    launches: tuple[float | None, ...]
    flop: tuple[float | None, ...]
    """Executed FLOP by hardware counters."""
    shares: tuple[float | None, ...]
    """Share of the time of all kernels, 0 to 1."""
    per_step: bool
    """Whether launches and FLOP are per step; else they are of whole profiles, as some session's
    steps are unknown."""


@dataclass(frozen=True)
class Times:
    """Mean seconds of a profiled step, or those of a whole profile; ``None`` is unknown."""

    kernels: float | None
    copies_to_device: float | None
    memset: float | None


def times_of(profile: Profile | None, *, per_step: bool = True) -> Times:
    """GPU time in kernels, in copies from the host, and in memset: of a step, or else of a whole
    profile whose steps are unknown."""
    if profile is None or bool(profile.steps) is not per_step:
        return Times(None, None, None)
    kernels, copies = (profile.tables.get(name) for name in (KERNELS, MEMORY_TIME))
    totals = _seconds(kernels, None), _seconds(copies, _TO_DEVICE), _seconds(copies, _MEMSET)
    return Times(*(None if each is None else each / (profile.steps or 1) for each in totals))


def family_seconds(profile: Profile | None) -> dict[str, float]:
    """Seconds of a profiled step in the GPU's kernels, by family; empty where a time is unknown
    or derived, or the number of steps unknown."""
    if profile is None or profile.time_source or _table(profile, KERNELS) is None:
        return {}
    table = family_table(profile)
    if table is None or table.rows_left_out:
        return {}
    named = zip(table.column("Name"), table.numbers(_STEP_TIME), strict=False)
    known = {str(label): time / 1e9 for label, time in named if time is not None}
    return known if len(known) == len(table.rows) else {}


def most_time(profile: Profile | None) -> str:
    """The two families that take most of the time, such as ``kernels: 56 % normalization, 12 %
    copy``; without a GPU those of the CPU's operators; empty where they are not known."""
    if (of := family_table(profile)) is None:
        return ""
    what = "kernels" if _table(profile, KERNELS) else "operators"
    shares = zip(of.numbers(_SHARE), of.column("Name"), strict=True)
    known = [
        f"{units.percent(share / 100)} {name}"
        for share, name in shares
        if share and share > 0 and name != OTHER
    ]
    return f"{what}: {', '.join(known[:2])}" if known else ""


def family_table(profile: Profile | None) -> Table | None:
    """What the kernels of a profile do, the most time first; without a GPU, the operators.

    Times and launches are of a step, or of the whole profile where its steps are unknown. Rows
    that were left out are in no family, nor in a share that the tool did not give.
    """
    table = _table(profile, KERNELS) or _table(profile, OPERATORS)
    if profile is None or table is None:
        return None
    names = table.column("Name")
    given, times, counts = (
        table.numbers(column) or (None,) * len(names)
        for column in (_SHARE, _TIME, _COUNTS[table.name])
    )
    total = None if table.rows_left_out or given.count(None) == len(given) else _sum(times)
    if total:
        given = tuple(None if time is None else 100 * time / total for time in times)
    families = (family(str(name)) for name in names)
    parts = grouped(zip(families, zip(given, times, counts, strict=True), strict=True))
    steps = profile.steps or 1
    rows: list[tuple[Cell, ...]] = []
    for label, cells in parts.items():
        share, *totals = map(_sum, zip(*cells, strict=True))
        a_step = (None if total is None else total / steps for total in totals)
        rows.append((share, *a_step, label))
    per_step = "Launches/Step" if table.name == KERNELS else "Calls/Step"
    columns = (_STEP_TIME, per_step) if profile.steps else (_TIME, _COUNTS[table.name])
    rows.sort(key=lambda row: tuple(-(number(cell) or 0.0) for cell in row[1:3]))
    return Table(FAMILIES, (_SHARE, *columns, "Name"), tuple(rows), table.rows_left_out)


def all_tables(profile: Profile | None, counters: Counters | None) -> dict[str, Table]:
    """All tables of a session by name, the families first, in display order."""
    tables = dict(profile.tables) if profile is not None else {}
    if (families := family_table(profile)) is not None:
        tables[FAMILIES] = families
    if counters is not None and counters.kernels:
        tables[COUNTERS] = counters_table(counters)
    ordered = dict.fromkeys([*TITLES, *tables])
    return {name: tables[name] for name in ordered if name in tables and tables[name].rows}


def _seconds(table: Table | None, pattern: re.Pattern[str] | None) -> float | None:
    """Seconds of the rows whose operation matches, 0 without any; unknown for a shortened table."""
    if table is None or table.rows_left_out:
        return None
    times = table.numbers(_TIME)
    names = table.column("Operation") if pattern else ("",) * len(times)
    if not times or len(names) != len(times):
        return None
    named = zip(names, times, strict=True)
    total = _sum([time for name, time in named if not pattern or pattern.search(str(name))])
    return None if total is None else total / 1e9


def differing_kernels(
    profiled: Sequence[Profiled],
) -> tuple[tuple[KernelRow, ...], tuple[KernelRow, ...]]:
    """Kernels that ran in some sessions but not in all, and the families that differ.

    Each with the largest share of time first, without times with the most FLOP or launches. A
    family differs by one of these kernels, by its launches, or by 2 % of its FLOP. GPU kernels, or
    CPU operators if no session has any.
    """
    for table in (KERNELS, OPERATORS):
        having = [profile for profile, _ in profiled if _table(profile, table) is not None]
        if not having:
            continue
        per_step = all(profile is not None and profile.steps for profile in having)
        uses = [_uses(each, table, per_step=per_step) for each in profiled]
        names = dict.fromkeys(name for of in uses if of is not None for name in of)
        absent = [None if _is_cut(profile, table) else _ABSENT for profile, _ in profiled]
        rows = {
            name: [
                None if of is None else of.get(name, missing)
                for of, missing in zip(uses, absent, strict=True)
            ]
            for name in names
        }
        apart = {
            name
            for name, of in rows.items()
            if len({use and use.kernels for use in of} - {None}) > 1
        }
        families = grouped((family(name), name) for name in rows)
        whole = {
            label: [_added(of) for of in zip(*(rows[name] for name in members), strict=True)]
            for label, members in families.items()
        }
        return (
            _ordered(_row(table, family(name), name, rows[name], per_step) for name in apart),
            _ordered(
                _row(table, label, None, of, per_step)
                for label, of in whole.items()
                if apart.intersection(families[label]) or _differs(of)
            ),
        )
    return (), ()


def family_launches(
    profile: Profile | None, table: str, of_family: str, *, per_step: bool
) -> float | None:
    """Launches of a family in one session; ``None`` if they are not known."""
    uses = None if _is_cut(profile, table) else _uses((profile, None), table, per_step=per_step)
    if uses is None:
        return None
    return _sum([use.launches for name, use in uses.items() if family(name) == of_family])


@dataclass(frozen=True)
class _Use:
    """What one session did in a kernel or family."""

    kernels: int
    launches: float | None
    flop: float | None
    share: float | None


_ABSENT = _Use(0, 0.0, 0.0, 0.0)


def _table(profile: Profile | None, name: str) -> Table | None:
    table = None if profile is None else profile.tables.get(name)
    return table if table is not None and table.column("Name") else None


def _is_cut(profile: Profile | None, name: str) -> bool:
    table = _table(profile, name)
    return table is not None and table.rows_left_out > 0


def _uses(profiled: Profiled, name: str, *, per_step: bool) -> dict[str, _Use] | None:
    """What ran in a session by name; rows of the same name are added up."""
    profile, counters = profiled
    table = _table(profile, name)
    if profile is None or table is None:
        return None
    names = [str(each) for each in table.column("Name")]
    unknown = (None,) * len(names)
    times = table.numbers(_TIME) or unknown
    counts = table.numbers(_COUNTS[name]) or unknown
    total = (
        _sum(times) if any(share is not None for share in table.numbers(_SHARE) or (0.0,)) else None
    )
    flop = _flop(counters, per_step=per_step)
    steps = (profile.steps or 1) if per_step else 1
    uses: dict[str, _Use] = {}
    for kernel, time, count in zip(names, times, counts, strict=True):
        if count == 0 or (count is None and time == 0):
            continue
        use = _Use(
            1,
            None if count is None else count / steps,
            flop.get(kernel),
            time / total if time is not None and total else None,
        )
        known = uses.get(kernel)
        same = None if known is None else _added((known, replace(use, flop=0.0)))
        uses[kernel] = use if same is None else replace(same, kernels=1)
    return uses


def _flop(counters: Counters | None, *, per_step: bool) -> dict[str, float | None]:
    """Executed FLOP by kernel; empty if they are of other steps than asked for."""
    if counters is None or bool(counters.steps) is not per_step:
        return {}
    steps = counters.steps or 1
    return {
        kernel.name: None if kernel.flop is None else kernel.flop / steps
        for kernel in counters.kernels
    }


def _added(uses: Sequence[_Use | None]) -> _Use | None:
    known = [use for use in uses if use is not None]
    if len(known) < len(uses):
        return None
    return _Use(
        sum(use.kernels for use in known),
        _sum([use.launches for use in known]),
        _sum([use.flop for use in known]),
        _sum([use.share for use in known]),
    )


def _sum(values: Sequence[float | None]) -> float | None:
    return None if None in values else sum(value for value in values if value is not None)


def _differs(uses: Sequence[_Use | None]) -> bool:
    known = [use for use in uses if use is not None]
    launches = {use.launches for use in known if use.launches is not None}
    flop = [use.flop for use in known if use.flop is not None]
    return len(launches) > 1 or (bool(flop) and max(flop) - min(flop) > LEAST_FLOP * max(flop))


def _row(
    table: str, label: str, name: str | None, uses: Sequence[_Use | None], per_step: bool
) -> KernelRow:
    of_each = [(None,) * 4 if use is None else astuple(use) for use in uses]
    kernels, launches, flop, shares = zip(*of_each, strict=True)
    return KernelRow(table, label, name, kernels, launches, flop, shares, per_step)


def _ordered(rows: Iterable[KernelRow]) -> tuple[KernelRow, ...]:
    def size(row: KernelRow) -> tuple[float, ...]:
        return tuple(
            -max((value or 0.0 for value in values), default=0.0)
            for values in (row.shares, row.flop, row.launches)
        )

    return tuple(sorted(rows, key=lambda row: (*size(row), row.family, row.name or "")))


_INNER = re.compile(r"\(anonymous namespace\)::|\w+::|<…> ?")


def short_names(names: Sequence[str], longest: int = _LONGEST) -> list[str]:
    """:func:`short_name` of each, but cut where they begin to differ where two would be the
    same."""
    short = [short_name(name, longest) for name in names]
    for alike in grouped((each, at) for at, each in enumerate(short)).values():
        whole = [_INNER.sub("", short_name(names[at], len(names[at]))) for at in alike]
        if len({*whole}) < len({names[at] for at in alike}):  # they differ in what it leaves out
            whole = [_INNER.sub("", names[at].removeprefix("void ")) for at in alike]
        letters = zip(*{*whole}, strict=False)
        begin = len([*itertools.takewhile(lambda each: len({*each}) == 1, letters)])
        for at, name in zip(alike, whole, strict=True):
            head = max(longest // 3, longest - 1 - len(name[begin:]))
            if head < begin < len(name):
                short[at] = cut(f"{name[:head]}…{name[begin:]}", longest)
    return short


def short_name(name: str, longest: int = _LONGEST) -> str:
    """A kernel's name without return type, torch's namespaces, arguments and nested template
    parameters.

    A long name goes without all namespaces, and keeps its beginning and its end, where kernels of
    one family differ.
    """
    text = name.removeprefix("void ").strip()
    if text.endswith(")"):
        text = _before_arguments(text)
    text = text.replace("(anonymous namespace)::", "").replace("at::native::", "")
    text = _shallow(text)
    if len(text) > longest:
        text = _INNER.sub("", text)
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
