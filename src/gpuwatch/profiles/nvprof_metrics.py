"""The supported metrics and events of nvprof, and their totals.

nvprof prints averages, so a metric's total is its average times the number of invocations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from gpuwatch.core import units
from gpuwatch.profiles.base import ROUNDED, Kernel, number

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
_RATES = {f"{prefix}B/s": 1024.0**power for power, prefix in enumerate(("", "K", "M", "G", "T"))}
"""nvprof's prefixes are powers of 1024: only so do reads in GB/s and writes in MB/s give the same
time, and the one that nvprof measures itself (docs/validation.md)."""
_SAME = 1e-4
"""Relative difference of a kernel's times by its reads and by its writes beyond their rounding."""
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
    launches = max(many for many, _ in by_metric.values())
    averages = {metric: text for metric, (_, text) in by_metric.items()}
    if not _derivable(averages):
        return Kernel(name, launches, parts)
    time, why_none = _derived(averages)
    parts["derived"] = None if time is None else time * launches
    return Kernel(name, launches, parts, why_none)


def _derivable(averages: Mapping[str, str]) -> list[tuple[str, str]]:
    """Average transactions and throughput of the directions that have both, as printed."""
    pairs = [
        (
            averages.get(f"dram_{direction}_transactions"),
            averages.get(f"dram_{direction}_throughput"),
        )
        for direction in ("read", "write")
    ]
    return [(many, rate) for many, rate in pairs if many is not None and rate is not None]


def _derived(averages: Mapping[str, str]) -> tuple[float | None, str | None]:
    """Mean time of a launch in ns, its DRAM bytes over their throughput, or why there is none.

    nvprof's average throughput is the average number of bytes over the average time, so this holds
    for any number of launches. Of reads and writes the one that was rounded less counts.
    """
    times = []
    for printed_count, printed_rate in _derivable(averages):
        transactions, rate = number(printed_count), scaled(printed_rate, _RATES)
        if transactions and rate:
            time = transactions * _TRANSACTION_BYTES / rate * 1e9
            times.append((_rounding(printed_count) + _rounding(printed_rate), time))
    if not times:
        return None, "no DRAM transactions were counted"
    (slack, time), (other_slack, other) = min(times), max(times)
    if abs(time - other) > slack * time + (other_slack + _SAME) * other:
        one, two = (units.milliseconds(each / 1e9) for _, each in times)
        return None, f"its DRAM reads give {one} a launch, its writes {two}"
    if slack > ROUNDED:
        return None, "too few DRAM transactions were counted"
    return time, None


def _rounding(printed: str) -> float:
    """One of the last printed digit, relative to the figure."""
    digits = _VALUE.fullmatch(printed.strip())
    mantissa = re.split("[eE]", digits.group(1))[0] if digits else ""
    return 10.0 ** -len(mantissa.partition(".")[2]) / (number(mantissa) or 1.0)


def scaled(text: str, units: dict[str, float]) -> float | None:
    split = _VALUE.fullmatch(text.strip()) if len(text) < 60 else None
    value = number(split.group(1)) if split else None
    if split is None or value is None or split.group(2) not in units:
        return None
    return value * units[split.group(2)]
