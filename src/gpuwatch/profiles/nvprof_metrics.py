"""The supported metrics and events of nvprof, and their totals.

nvprof prints averages, so a metric's total is its average times the number of invocations.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpuwatch.profiles.base import Kernel, number

_TRANSACTION_BYTES = 32
"""Size of a DRAM transaction and of a sector: CUDA Profiler User's Guide, metrics reference."""

PARTS: dict[str, tuple[str, float]] = {
    "flop_count_sp": ("sp", 1),
    "flop_count_dp": ("dp", 1),
    "flop_count_hp": ("hp", 1),
    "dram_read_bytes": ("read", 1),
    "dram_write_bytes": ("write", 1),
    "dram_read_transactions": ("read", _TRANSACTION_BYTES),
    "dram_write_transactions": ("write", _TRANSACTION_BYTES),
    "fb_subp0_read_sectors": ("read", _TRANSACTION_BYTES),
    "fb_subp1_read_sectors": ("read", _TRANSACTION_BYTES),
    "fb_subp0_write_sectors": ("write", _TRANSACTION_BYTES),
    "fb_subp1_write_sectors": ("write", _TRANSACTION_BYTES),
    "dram_read_throughput": ("read_rate", 1),
    "dram_write_throughput": ("write_rate", 1),
}
"""Supported metrics and events, each with its part and factor."""

_PREFERRED = (
    ("dram_{}_bytes",),
    ("dram_{}_transactions",),
    ("fb_subp0_{}_sectors", "fb_subp1_{}_sectors"),
)
"""Alternative metrics for the same bytes, best first; only one counts."""

NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_RATES = {"B/s": 1.0, "KB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12}
_VALUE = re.compile(r"([0-9.]+(?:[eE][+-]?\d+)?)([A-Za-z/]*)", re.ASCII)


def average_of(metric: str, text: str) -> float | None:
    return scaled(text, _RATES) if metric.endswith("_throughput") else number(text)


def kernel_of(name: str, values: Sequence[tuple[str, int, str]]) -> Kernel:
    """The counts of one kernel on one device from its metrics."""
    by_metric = {metric: (many, average) for metric, many, average in values}
    used = set(by_metric)
    for direction in ("read", "write"):
        ways = [[each.format(direction) for each in way] for way in _PREFERRED]
        complete = [way for way in ways if used.issuperset(way)]
        used -= {each for way in ways for each in way if way not in complete[:1]}
    parts: dict[str, float | None] = {}
    for metric in by_metric:
        if metric not in used:
            continue
        part, factor = PARTS[metric]
        many, text = by_metric[metric]
        average = average_of(metric, text)
        times = 1 if part.endswith("_rate") else many
        value = None if average is None else average * times * factor
        known = parts.get(part, 0)
        parts[part] = None if value is None or known is None else known + value
    return Kernel(name, max(many for many, _ in by_metric.values()), parts)


def scaled(text: str, units: dict[str, float]) -> float | None:
    split = _VALUE.fullmatch(text.strip()) if len(text) < 60 else None
    value = number(split.group(1)) if split else None
    if split is None or value is None or split.group(2) not in units:
        return None
    return value * units[split.group(2)]
