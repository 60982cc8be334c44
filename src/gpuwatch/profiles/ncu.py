"""CSV of Nsight Compute: ``ncu --csv``, page details (one row a metric) or raw (one a launch).

Executed FLOP of a launch are 2 FMA + ADD + MUL thread instructions by precision, the formula of
Nsight Compute's own table for users of nvprof (flop_count_sp, _dp, _hp), and the operations of the
tensor pipes where the metrics that count them (``sm__ops_path_tensor_src_*``) are there.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gpuwatch.profiles.base import (
    KERNELS,
    Entry,
    Found,
    Kernel,
    Text,
    added,
    cells,
    count,
    number,
)

_TOOL = "ncu"
_SECTOR_BYTES = 32
_PRECISIONS = {"f": "sp", "d": "dp", "h": "hp"}
_SASS = re.compile(r"sms?p?__sass_thread_inst_executed_op_([fdh])(add|mul|fma)_pred_on\.sum")
_TENSOR = re.compile(
    r"sm__ops_path_tensor_src_([a-z0-9_]+?)(?:_dst_([a-z0-9_]+?))?(?:_sparsity_(on|off))?\.sum"
)
_TENSOR_INSTRUCTIONS = re.compile(r"sms?p?__inst_executed_pipe_tensor\w*\.sum")
_DRAM = re.compile(r"dram__(bytes|sectors)(?:_op)?_(read|write)\.sum")
_DURATION = ("gpu__time_duration.sum", "gpu__time_duration.avg", "Duration")
_UNIT = re.compile(r"([KMGT]?)(byte|inst|sector|op|)s?")
_PREFIX = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_NS = {"nsecond": 1.0, "usecond": 1e3, "msecond": 1e6, "second": 1e9}
_NS |= {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_NONE = ("", "n/a", "N/A", "nan", "-nan")
_SAYS_NO_UNIT = "{} is left out: its unit {!r} is not known"


@dataclass
class _Launch:
    """One launch, or several of one kernel of which only averages are printed."""

    kernel: str
    launches: int = 1
    values: dict[str, float | None] = field(default_factory=dict)
    """By metric: of one launch; ns, bytes, counts."""


@dataclass
class _Report:
    launches: dict[tuple[str, ...], _Launch] = field(default_factory=dict)
    capabilities: dict[str, None] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)
    seen: bool = False


def read(text: Text) -> Found | None:
    """The launches of the file, by kernel; ``None`` if there is no header of ncu in it.

    Raises:
        UsageError: a row is damaged, or launches are of GPUs of different kinds.
    """
    report, at = _Report(), 0
    while at < len(text.lines):
        line = text.lines[at]
        header = cells(line) if '"Kernel Name"' in line else None
        if header is None:
            at += 1
            continue
        if "Metric Name" in header:
            at = _details(text, at, header, report)
        elif any("__" in title for title in header):
            at = _raw(text, at, header, report)
        else:
            raise text.error(at, "a table of launches without any metric", _TOOL)
    if not report.seen:
        return None
    if not report.launches:
        raise text.error(0, "no launch of a kernel was profiled", _TOOL)
    if len(report.capabilities) > 1:
        listed = " and ".join(report.capabilities)
        raise text.error(0, f"GPUs of compute capability {listed} in one file", _TOOL)
    launches = list(report.launches.values())
    times = _times(launches)
    kernels = added([_kernel(launch, report.notes) for launch in launches])
    return Found(
        _TOOL,
        None,
        {KERNELS: times} if any(row.total is not None for row in times) else {},
        kernels,
        capability=next(iter(report.capabilities), None),
        notes=tuple(report.notes),
    )


def _rows(
    text: Text, at: int, header: Sequence[str], report: _Report
) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows under a header. The program's own output may stand between them."""
    others = 0
    for line_at in range(at, len(text.lines)):
        line = text.lines[line_at]
        if not line.startswith('"'):
            others += bool(line.strip()) and not line.startswith("==")
            continue
        row = cells(line)
        if row is None or len(row) != len(header):
            raise text.error(line_at, "a row that ends early: the file is cut off", _TOOL)
        if row == list(header):
            raise text.error(line_at, "a second header: import each run by itself", _TOOL)
        yield line_at, dict(zip(header, row, strict=True))
    if others:
        report.notes[f"{others} lines between the rows are not ncu's and are left out"] = None


def _details(text: Text, at: int, header: Sequence[str], report: _Report) -> int:
    """One row a metric; with ``--print-summary`` one for all launches of a kernel."""
    summary = "Average" in header and "Invocations" in header
    needed = {"Kernel Name", "Metric Name", "Metric Unit"}
    needed |= {"Invocations", "Average"} if summary else {"ID", "Metric Value"}
    if missing := needed - set(header):
        raise text.error(at, f"the header lacks {', '.join(sorted(missing))}", _TOOL)
    report.seen = True
    for line_at, row in _rows(text, at + 1, header, report):
        many = count(row["Invocations"]) if summary else 1
        if many is None:
            raise text.error(line_at, "a row without a number of invocations", _TOOL)
        launch = _launch(report, row, many)
        metric = row["Metric Name"]
        raw = row["Average" if summary else "Metric Value"]
        if _wanted(metric):
            launch.values[metric] = _value(
                text, line_at, metric, row["Metric Unit"], raw, report.notes
            )
    return len(text.lines)


def _raw(text: Text, at: int, header: Sequence[str], report: _Report) -> int:
    """One row a launch; the row under the header gives the units."""
    rows = _rows(text, at + 1, header, report)
    line_at, units = next(rows, (at, {}))
    if units.get("ID", "-").strip() or not units:
        raise text.error(line_at, "a header without the row of units under it", _TOOL)
    report.seen = True
    wanted = [title for title in header if _wanted(title)]
    for line_at, row in rows:
        launch = _launch(report, row, 1)
        for metric in wanted:
            launch.values[metric] = _value(
                text, line_at, metric, units[metric], row[metric], report.notes
            )
    return len(text.lines)


def _launch(report: _Report, row: Mapping[str, str], many: int) -> _Launch:
    if row.get("CC"):
        report.capabilities[row["CC"]] = None
    titles = ("Host Name", "Process ID", "Device", "Context", "Stream", "ID", "Kernel Name")
    key = tuple(row.get(title, "") for title in titles)
    return report.launches.setdefault(key, _Launch(row["Kernel Name"], many))


def _wanted(metric: str) -> bool:
    return metric in _DURATION or any(
        pattern.fullmatch(metric) for pattern in (_SASS, _TENSOR, _TENSOR_INSTRUCTIONS, _DRAM)
    )


def _value(
    text: Text, at: int, metric: str, unit: str, raw: str, notes: dict[str, None]
) -> float | None:
    """A metric of one launch in ns, bytes or counts; ``None`` where ncu has none."""
    if raw.strip() in _NONE:
        return None
    value = number(raw)
    if value is None:
        raise text.error(at, f"{raw[:40]!r} is not a value of {metric[:80]}", _TOOL)
    if metric in _DURATION:
        factor = _NS.get(unit.strip())
    else:
        split = _UNIT.fullmatch(unit.strip())
        factor = _PREFIX[split.group(1)] if split else None
    if factor is None:
        notes[_SAYS_NO_UNIT.format(metric, unit[:20])] = None
        return None
    return value * factor


def _kernel(launch: _Launch, notes: dict[str, None]) -> Kernel:
    """The parts of one launch, times the launches it stands for."""
    parts: dict[str, float | None] = {}
    duration = _duration(launch)
    if duration is not None:
        parts["duration"] = duration * launch.launches
    instructions: dict[str, dict[str, float | None]] = {}
    tensor: dict[tuple[str, str], dict[str, float | None]] = {}
    for metric, value in launch.values.items():
        total = None if value is None else value * launch.launches
        if found := _SASS.fullmatch(metric):
            instructions.setdefault(found.group(1), {})[found.group(2)] = total
        elif found := _DRAM.fullmatch(metric):
            size = _SECTOR_BYTES if found.group(1) == "sectors" else 1
            if found.group(1) == "bytes" or found.group(2) not in parts:
                parts[found.group(2)] = None if total is None else total * size
        elif found := _TENSOR.fullmatch(metric):
            path = found.group(1), found.group(2) or ""
            tensor.setdefault(path, {})[found.group(3) or "all"] = total
    for letter, kinds in instructions.items():
        precision = _PRECISIONS[letter]
        if len(kinds) < 3:
            notes[f"{precision} operations are left out: add, mul and fma were not all counted"] = (
                None
            )
            continue
        values = [kinds["fma"], kinds["fma"], kinds["add"], kinds["mul"]]
        parts[precision] = _sum(values)
    # A metric of a source alone covers all destinations.
    whole = {source for source, destination in tensor if not destination}
    floating = [
        ways
        for (source, destination), ways in tensor.items()
        if "int" not in source and not (destination and source in whole)
    ]
    if floating:
        parts["tensor"] = _sum(
            [ways["all"] if "all" in ways else _sum(list(ways.values())) for ways in floating]
        )
    elif ran := [v for m, v in launch.values.items() if _TENSOR_INSTRUCTIONS.fullmatch(m)]:
        # Where they ran, how many operations each instruction was is not printed.
        parts["tensor"] = 0 if all(value == 0 for value in ran) else None
    return Kernel(launch.kernel, launch.launches, parts)


def _sum(values: Sequence[float | None]) -> float | None:
    return None if None in values else sum(value for value in values if value is not None)


def _duration(launch: _Launch) -> float | None:
    known = (launch.values.get(metric) for metric in _DURATION)
    return next((value for value in known if value is not None), None)


def _times(launches: Sequence[_Launch]) -> tuple[Entry, ...]:
    """The table of kernels: what ``nsys stats`` would say of these launches."""
    by_name: dict[str, list[_Launch]] = {}
    for launch in launches:
        by_name.setdefault(launch.kernel, []).append(launch)
    rows = []
    for name, each in by_name.items():
        many = sum(launch.launches for launch in each)
        known = [(_duration(launch), launch.launches) for launch in each]
        times = [(time, times_run) for time, times_run in known if time is not None]
        if len(times) < len(known) or not many:
            rows.append(Entry(name, many, None))
            continue
        total = sum(time * times_run for time, times_run in times)
        if any(times_run != 1 for _, times_run in times):
            rows.append(Entry(name, many, total, total / many))
            continue
        values = [time for time, _ in times]
        rows.append(
            Entry(
                name,
                many,
                total,
                total / many,
                statistics.median(values),
                min(values),
                max(values),
                statistics.stdev(values) if len(values) > 1 else 0.0,
            )
        )
    return tuple(rows)
