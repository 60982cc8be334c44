"""Converts a trace of torch's profiler to tables with the names and columns of ``nsys stats``."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

Config = tuple[int, ...]
MOST_ROWS = 300
LONGEST_NAME = 500

_TIMES = ("Avg (ns)", "Med (ns)", "Min (ns)", "Max (ns)", "StdDev (ns)")
_SIZES = ("Avg (MB)", "Med (MB)", "Min (MB)", "Max (MB)", "StdDev (MB)")
_COPIES = {
    "HtoD": "[CUDA memcpy Host-to-Device]",
    "DtoH": "[CUDA memcpy Device-to-Host]",
    "DtoD": "[CUDA memcpy Device-to-Device]",
    "PtoP": "[CUDA memcpy Peer-to-Peer]",
    "HtoH": "[CUDA memcpy Host-to-Host]",
}


class Event(NamedTuple):
    """A timed event: an operator, a call, a kernel, a copy. Times in nanoseconds."""

    category: str
    name: str
    thread: tuple[object, object]
    start: int
    duration: int
    bytes: int | None
    config: Config = ()
    """Of a kernel: grid and block."""


class Traced(NamedTuple):
    """A launch of a kernel."""

    name: str
    config: Config
    """Grid and block."""
    duration_ns: int


@dataclass(frozen=True)
class Table:
    """Rows of a table, by falling total; ``left_out`` counts those beyond the limit."""

    name: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Any]]
    left_out: int


def read(path: Path) -> list[Event]:
    """The events of a trace written by ``export_chrome_trace``.

    Raises:
        OSError, ValueError: the file cannot be read, or is not a trace.
    """
    with path.open(encoding="utf-8", errors="replace") as file:
        trace = json.load(file, parse_float=Decimal)
    return [_event(entry) for entry in trace["traceEvents"] if entry.get("ph") == "X"]


def grouped(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, list[Any]]:
    """The values of each key, both in the order in which they come."""
    groups: dict[Any, list[Any]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def tables(events: Sequence[Event]) -> list[Table]:
    """All tables that have rows: kernels, calls, memory operations by time and size, operators."""

    def in_categories(*categories: str) -> list[Event]:
        return [event for event in events if event.category in categories]

    copies = [
        event._replace(name=_operation(event.name))
        for event in in_categories("gpu_memcpy", "gpu_memset")
    ]
    result = [
        _times("cuda_gpu_kern_sum", "Instances", "Name", _by_name(in_categories("kernel"))),
        _times(
            "cuda_api_sum",
            "Num Calls",
            "Name",
            _by_name(in_categories("cuda_runtime", "cuda_driver")),
        ),
        _times("cuda_gpu_mem_time_sum", "Count", "Operation", _by_name(copies)),
        _sizes(copies),
        _operators(in_categories("cpu_op")),
    ]
    return [table for table in result if table.rows]


def launches(events: Iterable[Event], steps: int) -> list[Traced]:
    """The kernels of the last of ``steps`` steps that are alike, in order."""
    kernels = [event for event in events if event.category == "kernel"]
    kernels.sort(key=lambda event: event.start)
    last = kernels[len(kernels) - len(kernels) // steps :]
    return [Traced(event.name, event.config, event.duration) for event in last]


def self_times(events: Iterable[Event]) -> dict[str, list[int]]:
    """Nanoseconds that each call spent in the operator itself, by its name.

    Excludes the operators that it called on the same thread.
    """
    times: dict[str, list[int]] = {}
    for listed in grouped((event.thread, event) for event in events).values():
        open_calls: list[tuple[Event, list[int]]] = []
        for event in sorted(listed, key=lambda other: (other.start, -other.duration)):
            while (
                open_calls and event.start >= open_calls[-1][0].start + open_calls[-1][0].duration
            ):
                _close(times, *open_calls.pop())
            if open_calls:
                open_calls[-1][1].append(event.duration)
            open_calls.append((event, []))
        while open_calls:
            _close(times, *open_calls.pop())
    return times


def _event(entry: Mapping[str, Any]) -> Event:
    arguments = entry.get("args") or {}
    size = arguments.get("bytes")
    return Event(
        str(entry.get("cat", "")),
        str(entry.get("name", ""))[:LONGEST_NAME],
        (entry.get("pid"), entry.get("tid")),
        round(entry["ts"] * 1000),
        round(entry.get("dur", 0) * 1000),
        None if size is None else int(size),
        tuple(int(each) for name in ("grid", "block") for each in arguments.get(name) or ()),
    )


def _close(times: dict[str, list[int]], event: Event, children: list[int]) -> None:
    times.setdefault(event.name, []).append(max(0, event.duration - sum(children)))


def _by_name(events: Iterable[Event]) -> dict[str, list[int]]:
    return grouped((event.name, event.duration) for event in events)


def _operation(name: str) -> str:
    """nsys's name for a memory operation; CUPTI has ``Memcpy HtoD (Pinned -> Device)``."""
    if name.startswith("Memset"):
        return "[CUDA memset]"
    return next((named for kind, named in _COPIES.items() if kind in name), name)


def _times(name: str, count: str, last: str, durations: Mapping[str, Sequence[int]]) -> Table:
    total = sum(map(sum, durations.values()))
    rows = [
        [_percent(sum(times), total), sum(times), len(times), *_spread(times), named]
        for named, times in durations.items()
    ]
    columns = ("Time (%)", "Total Time (ns)", count, *_TIMES, last)
    return _table(name, columns, rows, by=1)


def _sizes(events: Iterable[Event]) -> Table:
    sizes = grouped((each.name, each.bytes / 1e6) for each in events if each.bytes is not None)
    rows = [
        [_rounded(sum(bytes_)), len(bytes_), *_spread(bytes_), named]
        for named, bytes_ in sizes.items()
    ]
    columns = ("Total (MB)", "Count", *_SIZES, "Operation")
    return _table("cuda_gpu_mem_size_sum", columns, rows, by=0)


def _operators(events: Iterable[Event]) -> Table:
    durations = self_times(events)
    total = sum(map(sum, durations.values()))
    rows = [
        [
            _percent(sum(times), total),
            sum(times),
            len(times),
            _rounded(sum(times) / len(times)),
            named,
        ]
        for named, times in durations.items()
    ]
    columns = ("Time (%)", "Total Time (ns)", "Calls", "Avg (ns)", "Name")
    return _table("cpu_op_sum", columns, rows, by=1)


def _table(name: str, columns: tuple[str, ...], rows: list[list[Any]], by: int) -> Table:
    rows.sort(key=lambda row: (-row[by], row[-1]))
    return Table(name, columns, rows[:MOST_ROWS], max(0, len(rows) - MOST_ROWS))


def _spread(values: Sequence[float]) -> list[float | None]:
    """Mean, median, minimum, maximum, sample standard deviation (None for a single value)."""
    deviation = statistics.stdev(values) if len(values) > 1 else None
    middle = (statistics.fmean(values), statistics.median(values))
    return [*map(_rounded, middle), min(values), max(values), _rounded(deviation)]


def _percent(part: float, total: float) -> float | None:
    return _rounded(100 * part / total) if total else None


def _rounded(value: float | None) -> float | None:
    """Percent, nanoseconds or megabytes, rounded to a byte or a femtosecond."""
    return None if value is None else round(value, 6)
