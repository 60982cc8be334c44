"""Input and output of ``ncu`` (Nsight Compute): metrics to request, its CSV, the totals."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from .traces import grouped

MOST_KERNELS = 60
LONGEST_NAME = 500

# A fused multiply-add is two operations; a packed half instruction counts once per thread
# operation, as in nvprof's flop_count_hp. NVIDIA's Nsight Compute CLI guide gives these same sums
# for nvprof's metrics (flop_count_sp, _dp, _hp).
_WEIGHTS = {
    f"smsp__sass_thread_inst_executed_op_{precision}{operation}_pred_on.sum": weight
    for precision in "fhd"
    for operation, weight in (("add", 1), ("mul", 1), ("fma", 2))
}
_DURATION = "gpu__time_duration.sum"
_READ = ("dram__bytes_read.sum", "dram__bytes_op_read.sum")
_WRITE = ("dram__bytes_write.sum", "dram__bytes_op_write.sum")
_TENSOR_OPS = re.compile(
    r"sm__ops_path_tensor_(?:op_(?P<op>[a-z]+)_)?src_(?P<src>(?:fp|bf|tf)\d+)"
    r"(?:_dst_(?P<dst>[a-z]+\d+))?(?:_sparsity_(?P<sparsity>on|off))?"
)
_TENSOR_INSTRUCTIONS = re.compile(r"sm__inst_executed_pipe_tensor(_(op|subpipe)_\w+)?")
_PACKED_HALVES = "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2"
"""HFMA2.MMA of A100 and Hopper runs on the tensor pipe, and is no matrix product. Compilers load
constants with it, so that most kernels have some; what it computes is in the scalar counts."""
_NAME = re.compile(r"^([a-z]+__\w+)\s", re.MULTILINE)
_UNIT = re.compile(r"(?P<prefix>[KMGTP]?)(?P<unit>byte|B|inst|op)s?", re.IGNORECASE)
_TIMES = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_PREFIXES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}


class Launch(NamedTuple):
    """A launch, or several alike."""

    name: str
    values: Mapping[str, float | None]
    """Metrics by name in bytes, counts and nanoseconds."""
    config: tuple[int, ...] = ()
    """Grid and block."""
    launches: float = 1.0

    def times_more(self, factor: float) -> Launch:
        """So many launches alike."""
        values = {k: None if v is None else v * factor for k, v in self.values.items()}
        return self._replace(values=values, launches=self.launches * factor)


@dataclass(frozen=True)
class Kernel:
    """Sums over the launches of one kernel; None if unknown."""

    name: str
    launches: int
    flop: float | None
    dram_read_bytes: float | None
    dram_write_bytes: float | None
    duration_ns: float | None


@dataclass(frozen=True)
class Counted:
    """Sums over all launches, the largest kernels, and notes."""

    launches: int
    flop: float | None
    dram_read_bytes: float | None
    dram_write_bytes: float | None
    kernels: tuple[Kernel, ...]
    notes: tuple[str, ...]


def metrics(query: str) -> list[str]:
    """The metrics to request on the GPU for which ``ncu --query-metrics`` printed ``query``.

    Counts of tensor core operations have other names on each architecture, and only listed ones can
    be requested. No operation is requested twice: for one source type, the metric without a pipe,
    destination or sparsity in its name covers those with one.
    """
    names = set(_NAME.findall(query))
    dram = [
        next((name for name in pair if name.removesuffix(".sum") in names), pair[0])
        for pair in (_READ, _WRITE)
    ]
    counts = sorted(name for name in names if _TENSOR_INSTRUCTIONS.fullmatch(name))
    if "sm__inst_executed_pipe_tensor" in counts:
        counts = [n for n in counts if n in ("sm__inst_executed_pipe_tensor", _PACKED_HALVES)]
    tensor = [*_tensor_operations(names), *counts]
    return [*_WEIGHTS, *dram, _DURATION, *(f"{name}.sum" for name in tensor)]


def parse(text: str) -> list[Launch]:
    """The launches in ncu's CSV (``--page raw``), which may be mixed with other lines: one column
    per metric, and a row of units. A value with an unknown unit is None.
    """
    lines = [line for line in text.splitlines() if line.startswith('"')]
    start = next((at for at, line in enumerate(lines) if '"Kernel Name"' in line), len(lines))
    rows = list(csv.reader(lines[start:]))
    if len(rows) < 2:
        return []
    head, rest = rows[0], [row for row in rows[1:] if len(row) == len(rows[0])]
    units = rest.pop(0) if rest else ()
    at = head.index("Kernel Name")
    sizes = [head.index(name) for name in ("Grid Size", "Block Size") if name in head]
    columns = [i for i, name in enumerate(head) if "__" in name]
    return [
        Launch(
            row[at],
            {head[i]: _value(row[i], units[i]) for i in columns},
            tuple(int(size) for i in sizes for size in re.findall(r"\d+", row[i])),
        )
        for row in rest
    ]


def count(launches: Sequence[Launch]) -> Counted:
    """Sums over the launches; an unknown value in one launch makes the sum unknown."""
    by_name = grouped((launch.name, launch) for launch in launches)
    kernels = [_kernel(name, alike) for name, alike in by_name.items()]
    kernels.sort(key=lambda kernel: (-(kernel.duration_ns or 0), kernel.name))
    notes = []
    flop = _total(kernel.flop for kernel in kernels)
    if flop is None and kernels:
        lacking = [kernel.name for kernel in kernels if kernel.flop is None]
        notes.append(_why_unknown(launches, lacking))
    if len(kernels) > MOST_KERNELS:
        notes.append(f"{len(kernels) - MOST_KERNELS} kernels with little time are not listed")
    return Counted(
        round(sum(launch.launches for launch in launches)),
        flop,
        _total(kernel.dram_read_bytes for kernel in kernels),
        _total(kernel.dram_write_bytes for kernel in kernels),
        tuple(kernels[:MOST_KERNELS]),
        tuple(notes),
    )


def _tensor_operations(names: Iterable[str]) -> list[str]:
    """The names that cover every source type without counting an operation twice."""
    found = [match for name in sorted(names) if (match := _TENSOR_OPS.fullmatch(name))]
    for part, same in (("op", ()), ("dst", ("op",)), ("sparsity", ("op", "dst"))):
        keys = ("src", *same)  # a metric without the part covers those that are equal in these
        covering = {match.group(*keys) for match in found if match[part] is None}
        found = [m for m in found if m[part] is None or m.group(*keys) not in covering]
    return [match.string for match in found]


def _kernel(name: str, launches: Sequence[Launch]) -> Kernel:
    values = [launch.values for launch in launches]
    return Kernel(
        name[:LONGEST_NAME],
        round(sum(launch.launches for launch in launches)),
        _total(map(_flop, values)),
        _total(_first(each, _READ) for each in values),
        _total(_first(each, _WRITE) for each in values),
        _total(each.get(_DURATION) for each in values),
    )


def _flop(values: Mapping[str, float | None]) -> float | None:
    scalar = _total(
        None if (value := values.get(name)) is None else weight * value
        for name, weight in _WEIGHTS.items()
    )
    tensor = _tensor_flop(values)
    return None if scalar is None or tensor is None else scalar + tensor


def _tensor_flop(values: Mapping[str, float | None]) -> float | None:
    """Operations of the tensor cores; None if the instructions include more than is counted."""
    operations = [v for k, v in values.items() if _TENSOR_OPS.fullmatch(k.removesuffix(".sum"))]
    executed = _products(values)
    if executed == 0:
        return 0.0
    flop = _total(operations) if operations else None
    return None if flop == 0 and executed is not None else flop


def _products(values: Mapping[str, float | None]) -> float | None:
    """Matrix instructions of the tensor cores; None if unknown."""
    packed = f"{_PACKED_HALVES}.sum"
    listed = [
        value
        for name, value in values.items()
        if _TENSOR_INSTRUCTIONS.fullmatch(name.removesuffix(".sum")) and name != packed
    ]
    total, halves = _total(listed) if listed else None, values.get(packed, 0)
    return None if total is None or halves is None else total - halves


def _why_unknown(launches: Sequence[Launch], lacking: Sequence[str]) -> str:
    """Names the kernels, and the counters of the first one that say so."""
    values = next(
        launch.values
        for launch in launches
        if launch.name[:LONGEST_NAME] == lacking[0] and _flop(launch.values) is None
    )
    unread = [
        name
        for name, value in values.items()
        if value is None and (name in _WEIGHTS or "_tensor" in name)
    ]
    executed = _products(values)
    if unread:
        why = f"ncu gave no {unread[0]}"
    elif executed and any(_TENSOR_OPS.fullmatch(name.removesuffix(".sum")) for name in values):
        why = (
            f"ncu counted {executed:,.0f} instructions of tensor cores, and no operation of theirs"
        )
    else:
        why = "ncu has no count of the tensor cores' operations on this GPU"
    shown = ", ".join(name[:80] for name in lacking[:3])
    return f"executed FLOP are unknown, not the sum of what is known: {why} ({shown})"


def _value(text: str, unit: str) -> float | None:
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    scale = _scale(unit)
    return None if scale is None or not 0 <= value < float("inf") else value * scale


def _scale(unit: str) -> float | None:
    """The factor for ncu's unit: decimal prefixes; times to nanoseconds."""
    if not unit:
        return 1.0
    time = unit.replace("second", "s")
    if time in _TIMES:
        return _TIMES[time]
    match = _UNIT.fullmatch(unit)
    return None if match is None else _PREFIXES[match["prefix"].upper()]


def _first(values: Mapping[str, float | None], names: Iterable[str]) -> float | None:
    return next((values[name] for name in names if name in values), None)


def _total(values: Iterable[Any]) -> float | None:
    """The sum; None if one value is unknown."""
    listed = list(values)
    return None if any(value is None for value in listed) else float(sum(listed))
