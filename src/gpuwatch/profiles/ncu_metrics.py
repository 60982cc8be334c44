"""Executed FLOP and DRAM bytes of one launch, from the metrics of Nsight Compute.

Executed FLOP are 2 FMA + ADD + MUL thread instructions per precision, the sums that NVIDIA's Nsight
Compute CLI guide gives for nvprof's flop_count_sp, _dp and _hp, plus the operations of the tensor
pipes if the metrics that count them (``sm__ops_path_tensor_*``) are present.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

DURATION = ("gpu__time_duration.sum", "gpu__time_duration.avg", "Duration")
"""Metrics of a launch's time, best first; ``Duration`` is on the page details."""

_SECTOR_BYTES = 32
_PRECISIONS = {"f": "sp", "d": "dp", "h": "hp"}
_SASS = re.compile(r"sms?p?__sass_thread_inst_executed_op_([fdh])(add|mul|fma)_pred_on\.sum")
_TENSOR = re.compile(
    r"sm__ops_path_tensor_(?:op_(?P<op>[a-z]+)_)?src_(?P<source>(?:fp|bf|tf)\d+)"
    r"(?:_dst_(?P<to>[a-z]+\d+))?(?:_sparsity_(?P<sparsity>on|off))?\.sum"
)
_INSTRUCTIONS = re.compile(r"sm__inst_executed_pipe_tensor(_(op|subpipe)_\w+)?\.sum")
_DRAM = re.compile(r"dram__(bytes|sectors)(?:_op)?_(read|write)\.sum")


def wanted(metric: str) -> bool:
    """Whether a metric is used."""
    return metric in DURATION or any(
        pattern.fullmatch(metric) for pattern in (_SASS, _TENSOR, _INSTRUCTIONS, _DRAM)
    )


def parts_of(values: Mapping[str, float | None], notes: dict[str, None]) -> dict[str, float | None]:
    """The parts of a :class:`~gpuwatch.profiles.base.Kernel` from the metrics of one launch.

    ``None`` means that the metric has no value. Unusable metrics are reported in ``notes``.
    """
    parts: dict[str, float | None] = {}
    for metric, value in values.items():
        if (found := _DRAM.fullmatch(metric)) is None:
            continue
        if found.group(1) == "bytes":
            parts[found.group(2)] = value
        elif found.group(2) not in parts:
            parts[found.group(2)] = None if value is None else value * _SECTOR_BYTES
    instructions: dict[str, dict[str, float | None]] = {}
    for metric, value in values.items():
        if found := _SASS.fullmatch(metric):
            instructions.setdefault(found.group(1), {})[found.group(2)] = value
    for letter, kinds in instructions.items():
        precision = _PRECISIONS[letter]
        if len(kinds) == 3:
            parts[precision] = _sum([kinds["fma"], kinds["fma"], kinds["add"], kinds["mul"]])
        else:
            why = f"{precision} operations are left out: add, mul and fma were not all counted"
            notes[why] = None
    return {**parts, **_tensor(values)}


def _tensor(values: Mapping[str, float | None]) -> dict[str, float | None]:
    """The operations of the tensor pipes; empty if no metric mentions them.

    Instruction counts alone do not give the operations, unless they are zero.
    """
    ran = [value for metric, value in values.items() if _INSTRUCTIONS.fullmatch(metric)]
    if ran and all(value == 0 for value in ran):
        return {"tensor": 0}
    counted = _operations(values)
    if counted:
        total = _sum(counted)
        return {"tensor": None if total == 0 and any(ran) else total}
    return {"tensor": None} if ran else {}


def _operations(values: Mapping[str, float | None]) -> list[float | None]:
    """Non-overlapping counts: a metric with fewer parts in its name covers those with more."""
    counts = [(match, v) for m, v in values.items() if (match := _TENSOR.fullmatch(m))]
    for part, same in (("op", ()), ("to", ("op",)), ("sparsity", ("op", "to"))):
        keys = ("source", *same)
        whole = {match.group(*keys) for match, _ in counts if match[part] is None}
        counts = [(m, v) for m, v in counts if m[part] is None or m.group(*keys) not in whole]
    return [value for _, value in counts]


def _sum(values: Sequence[float | None]) -> float | None:
    return None if None in values else sum(value for value in values if value is not None)
