"""Logs of nvprof: summaries of time, and metrics and events, as text and as CSV.

A metric's total is the number of invocations times the average of one: nvprof prints the average.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from gpuwatch.profiles.base import (
    API,
    COPY_TIME,
    KERNELS,
    Entry,
    Found,
    Kernel,
    Text,
    added,
    cells,
    count,
    merged,
    number,
)

_TOOL = "nvprof"
_TRANSACTION_BYTES = 32
"""Of a transaction with DRAM and of a sector: CUDA Profiler User's Guide, metrics reference."""

_PARTS: dict[str, tuple[str, float]] = {
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
"""Metrics and events that are read: the part they give and its factor."""

_PREFERRED = (
    ("dram_{}_bytes",),
    ("dram_{}_transactions",),
    ("fb_subp0_{}_sectors", "fb_subp1_{}_sectors"),
)
"""Several ways to the same bytes, best first: only one of them counts."""

_ROUNDED = 0.01
"""How far the printed average may lie outside the printed range: each is rounded by itself."""

_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_RATES = {"B/s": 1.0, "KB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12}
_VALUE = re.compile(r"([0-9.]+(?:[eE][+-]?\d+)?)([A-Za-z/]*)", re.ASCII)

_TALK = re.compile(r"==(\d+|=+)==")
_COMMAND = re.compile(r"==(?:\d+|=+)== .*?(?:process \d+, command|application): (.*)")
_SUMMARY = re.compile(r"\s*(Type\s+)?Time\(%\)\s+Time\s+Calls\s+Avg\s+Min\s+Max\s+Name\s*")
_METRICS = re.compile(r"Invocations\s+(Metric|Event) Name\s")
_SUMMARY_CSV = ["Time(%)", "Time", "Calls", "Avg", "Min", "Max", "Name"]
_METRICS_CSV = ["Device", "Kernel", "Invocations"]
_TRACE = re.compile(r'\s*"?Start"?(\s+|,)"?Duration"?(\s+|,)')
_ROW = re.compile(
    r"\s*(?:([A-Z][A-Za-z() ]*):)?\s+([\d.]+)%\s+(\S+)\s+(\d+)\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S.*)"
)
_ROW_BEGINS = re.compile(r"\s*(?:[A-Z][A-Za-z() ]*:)?\s+[\d.]+%\s")
_DEVICE = re.compile(r"(.*\S) \(\d+\)")
_METRIC_ROW = re.compile(r"\s+(\d+)\s+(\w+)\s+(\S.*)")
_COPIES = ("[CUDA memcpy", "[CUDA memset")


@dataclass
class _Log:
    """What was read so far."""

    text: Text
    times: dict[str, list[Entry]] = field(default_factory=dict)
    kernels: list[Kernel] = field(default_factory=list)
    devices: dict[str, None] = field(default_factory=dict)
    seen: bool = False
    notes: dict[str, None] = field(default_factory=dict)


def read(text: Text) -> Found | None:
    """All sections of the log; ``None`` if there is no header of nvprof in it.

    Raises:
        UsageError: a line of a section is damaged, or the log holds a trace alone.
    """
    log, at, command = _Log(text), 0, None
    section, trace = "GPU activities", None
    while at < len(text.lines):
        line = text.lines[at]
        if _TALK.match(line):
            found = _COMMAND.match(line[:4096])
            command = command or (found.group(1).strip() if found else None)
            section = "API calls" if "API calls:" in line else "GPU activities"
        if _SUMMARY.fullmatch(line):
            at = _summary(log, at + 1, section)
        elif _METRICS.match(line):
            at = _metrics(log, at + 1)
        elif '"Time(%)"' in line and (cells(line) or [])[-7:] == _SUMMARY_CSV:
            at = _summary_csv(log, at, section)
        elif '"Kernel"' in line and (cells(line) or [])[:3] == _METRICS_CSV:
            at = _metrics_csv(log, at)
        else:
            trace = at if trace is None and _TRACE.match(line) else trace
            at += 1
    if not log.seen:
        if trace is not None:
            raise text.error(trace, "a trace of single launches is not read, a summary is", _TOOL)
        return None
    if not log.times and not log.kernels:
        why = f"no kernel was timed, and none of the metrics {', '.join(_PARTS)} is there"
        raise text.error(0, why, _TOOL)
    tables = {name: merged(rows) for name, rows in log.times.items()}
    return Found(
        _TOOL,
        None,
        tables,
        added(log.kernels),
        tuple(log.devices),
        command=command,
        notes=tuple(log.notes),
    )


def _summary(log: _Log, at: int, section: str) -> int:
    """The rows of a text summary from line ``at`` on; returns the line behind them."""
    while at < len(log.text.lines):
        line = log.text.lines[at]
        row = _ROW.fullmatch(line)
        if row is None:
            if _ROW_BEGINS.match(line):
                raise log.text.error(at, "a row that ends early: the log is cut off", _TOOL)
            break
        section = row.group(1) or section
        _time(log, at, section, row.group(4), row.group(3, 5, 6, 7), row.group(8))
        at += 1
    log.seen = True
    return at


def _summary_csv(log: _Log, at: int, section: str) -> int:
    header = cells(log.text.lines[at]) or []
    units = (cells(log.text.lines[at + 1]) or []) if at + 1 < len(log.text.lines) else []
    times = [len(header) + offset for offset in (-6, -4, -3, -2)]
    if len(units) != len(header) or any(units[each] not in _NS for each in times):
        raise log.text.error(at, "a header without the line of units under it", _TOOL)
    at += 2
    while at < len(log.text.lines):
        line = log.text.lines[at]
        if not line.strip() or _TALK.match(line) or not (line[0] == '"' or line[0].isdigit()):
            break
        row = cells(line)
        if row is None or len(row) != len(header):
            raise log.text.error(at, "a row that ends early: the log is cut off", _TOOL)
        section = row[0] if len(header) == 8 else section
        _time(log, at, section, row[-5], [row[each] + units[each] for each in times], row[-1])
        at += 1
    log.seen = True
    return at


def _time(log: _Log, at: int, section: str, calls: str, values: Sequence[str], name: str) -> None:
    total, average, low, high = (_scaled(value, _NS) for value in values)
    many = count(calls)
    if many is None or None in (total, average, low, high):
        raise log.text.error(at, "a row whose times cannot be read", _TOOL)
    if section == "API calls":
        table = API
    elif section == "GPU activities":
        table = COPY_TIME if name.startswith(_COPIES) else KERNELS
    else:
        log.notes[f"the section {section[:40]} is left out"] = None
        return
    entry = Entry(name.strip(), many, total, average, minimum=low, maximum=high)
    log.times.setdefault(table, []).append(entry)


def _metrics(log: _Log, at: int) -> int:
    """The rows of text metrics or events from line ``at`` on; returns the line behind them."""
    kernel: str | None = None
    values: list[tuple[str, int, str]] = []

    def close() -> None:
        if kernel is not None and values:
            log.kernels.append(_kernel(kernel, values))
        values.clear()

    while at < len(log.text.lines):
        line = log.text.lines[at]
        row = _METRIC_ROW.fullmatch(line)
        if line.startswith('Device "'):
            close()
            kernel = None
            _device(log, line[8:].rstrip().rstrip('"'))
        elif line.startswith("    Kernel: "):
            close()
            kernel = line[12:].strip()
        elif row is None or kernel is None:
            break
        elif row.group(2) in _PARTS:
            words = row.group(3).split()
            # Metrics: description, Min, Max, Avg. Events: Min, Max, Avg, and since CUDA 9 Total.
            three = words[:3] if row.group(2).startswith("fb_") else words[-3:]
            values.append(_value(log, at, row.group(2), row.group(1), three))
        at += 1
    close()
    log.seen = True
    return at


def _metrics_csv(log: _Log, at: int) -> int:
    header = cells(log.text.lines[at]) or []
    name = next((each for each in ("Metric Name", "Event Name") if each in header), None)
    if name is None or "Avg" not in header:
        raise log.text.error(at, "a header without the names of metrics or averages", _TOOL)
    name_at, average_at = header.index(name), header.index("Avg")
    kernels: dict[tuple[str, str], list[tuple[str, int, str]]] = {}
    at += 1
    while at < len(log.text.lines):
        line = log.text.lines[at]
        if not line.startswith('"'):
            break
        row = cells(line)
        if row is None or len(row) != len(header):
            raise log.text.error(at, "a row that ends early: the log is cut off", _TOOL)
        _device(log, row[0])
        values = kernels.setdefault((row[0], row[1]), [])
        if row[name_at] in _PARTS:
            three = row[average_at - 2 : average_at + 1]
            values.append(_value(log, at, row[name_at], row[2], three))
        at += 1
    log.kernels += [_kernel(kernel, values) for (_, kernel), values in kernels.items() if values]
    log.seen = True
    return at


def _value(
    log: _Log, at: int, metric: str, invocations: str, three: Sequence[str]
) -> tuple[str, int, str]:
    """Metric, invocations and average of a row; ``three`` are its minimum, maximum, average.

    Where the tool has no number it prints a word in angle brackets.
    """
    many = count(invocations)
    if many is None or len(three) < 3:
        raise log.text.error(at, "a row that ends early: the log is cut off", _TOOL)
    low, high, average = (_average(metric, each) for each in three)
    if not three[2].startswith("<"):
        if low is None or high is None or average is None:
            raise log.text.error(at, f"a row of {metric} that cannot be read", _TOOL)
        if not low * (1 - _ROUNDED) <= average <= high * (1 + _ROUNDED):
            raise log.text.error(at, f"an average of {metric} outside its own range", _TOOL)
    return metric, many, three[2]


def _average(metric: str, text: str) -> float | None:
    return _scaled(text, _RATES) if metric.endswith("_throughput") else number(text)


def _kernel(name: str, values: Sequence[tuple[str, int, str]]) -> Kernel:
    """What the metrics of one kernel on one device come to."""
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
        part, factor = _PARTS[metric]
        many, text = by_metric[metric]
        average = _average(metric, text)
        times = 1 if part.endswith("_rate") else many
        value = None if average is None else average * times * factor
        known = parts.get(part, 0)
        parts[part] = None if value is None or known is None else known + value
    return Kernel(name, max(many for many, _ in by_metric.values()), parts)


def _device(log: _Log, text: str) -> None:
    found = _DEVICE.fullmatch(text)
    log.devices[found.group(1) if found else text] = None


def _scaled(text: str, units: dict[str, float]) -> float | None:
    split = _VALUE.fullmatch(text.strip()) if len(text) < 60 else None
    value = number(split.group(1)) if split else None
    if split is None or value is None or split.group(2) not in units:
        return None
    return value * units[split.group(2)]
