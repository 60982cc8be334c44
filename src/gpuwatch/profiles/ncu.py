"""Nsight Compute's CSV: ``ncu --csv``, page details (a row per metric) or raw (one per launch)."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from gpuwatch.core.aggregate import grouped, total_of
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.profiles import base

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
            parts[precision] = total_of([kinds["fma"], kinds["fma"], kinds["add"], kinds["mul"]])
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
        total = total_of(counted)
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


_TOOL = "ncu"
_UNIT = re.compile(r"([KMGTP]?)(byte|b|inst|sector|op|)s?", re.IGNORECASE)
_PREFIX = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_NS = {"nsecond": 1.0, "usecond": 1e3, "msecond": 1e6, "second": 1e9}
_NS |= {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_NONE = ("", "n/a", "N/A", "nan", "-nan")
_SAYS_NO_UNIT = "{} is left out: its unit {!r} is not known"


@dataclass
class _Launch:
    """One launch, or several of one kernel if only averages are printed."""

    kernel: str
    launches: int = 1
    values: dict[str, float | None] = field(default_factory=dict)
    """Values of one launch by metric, in ns, bytes or counts."""


@dataclass
class _Report:
    launches: dict[tuple[str, ...], _Launch] = field(default_factory=dict)
    capabilities: dict[str, None] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)
    foreign: int = 0
    unread: int = 0


def read(text: base.Text) -> base.Report | None:
    """The launches of the file, by kernel; ``None`` if it has no header of ncu.

    Raises:
        UsageError: a row is damaged, or launches are from different kinds of GPUs.
    """
    lines = enumerate(text.lines)
    headers = ((at, base.cells(line)) for at, line in lines if '"Kernel Name"' in line)
    at, header = next((each for each in headers if each[1] is not None), (0, None))
    if header is None:
        return None
    report = _Report()
    if "Metric Name" in header:
        _details(text, at, header, report)
    elif any("__" in title for title in header):
        _raw(text, at, header, report)
    else:
        raise text.error(at, "a table of launches without any metric", _TOOL)
    if not report.launches:
        raise text.error(0, "no launch of a kernel was profiled", _TOOL)
    if len(report.capabilities) > 1:
        listed = " and ".join(report.capabilities)
        raise text.error(0, f"GPUs of compute capability {listed} in one file", _TOOL)
    launches = list(report.launches.values())
    times = _times(launches)
    kernels = base.added([_kernel(launch, report.notes) for launch in launches])
    return base.Report(
        _TOOL,
        None,
        {base.KERNELS: times} if any(row.total is not None for row in times) else {},
        kernels,
        capability=next(iter(report.capabilities), None),
        notes=(*report.notes, *base.line_notes(_TOOL, report.foreign, report.unread)),
        unread=report.unread,
    )


def _rows(
    text: base.Text, at: int, header: Sequence[str], report: _Report
) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows under a header, which may be mixed with the program's own output."""
    between = 0
    for line_at in range(at, len(text.lines)):
        line = text.lines[line_at]
        if not line.startswith('"'):
            is_row = line.count('","') >= len(header) // 2
            report.unread += is_row
            between += bool(line.strip()) and not is_row and not line.startswith("==")
            continue
        row = base.cells(line)
        if row is None or len(row) != len(header):
            raise text.error(line_at, "a row that ends early: the file is cut off", _TOOL)
        if row == list(header):
            raise text.error(line_at, "a second header: import each run by itself", _TOOL)
        report.foreign, between = report.foreign + between, 0
        yield line_at, dict(zip(header, row, strict=True))


def _details(text: base.Text, at: int, header: Sequence[str], report: _Report) -> None:
    """One row per metric; with ``--print-summary``, for all launches of a kernel together."""
    summary = "Average" in header and "Invocations" in header
    needed = {"Kernel Name", "Metric Name", "Metric Unit"}
    needed |= {"Invocations", "Average"} if summary else {"ID", "Metric Value"}
    if missing := needed - set(header):
        raise text.error(at, f"the header lacks {', '.join(sorted(missing))}", _TOOL)
    for line_at, row in _rows(text, at + 1, header, report):
        many = base.count(row["Invocations"]) if summary else 1
        if many is None:
            raise text.error(line_at, "a row without a number of invocations", _TOOL)
        launch = _launch(report, row, many)
        metric = row["Metric Name"]
        raw = row["Average" if summary else "Metric Value"]
        if summary and wanted(metric):
            figures = (base.number(row.get(name, "")) for name in ("Average", "Minimum", "Maximum"))
            average, low, high = figures
            entry = base.Entry(metric, many, None, average, minimum=low, maximum=high)
            if wrong := base.outside(entry):
                raise text.error(line_at, wrong, _TOOL)
        if wanted(metric):
            launch.values[metric] = _value(
                text, line_at, metric, row["Metric Unit"], raw, report.notes
            )


def _raw(text: base.Text, at: int, header: Sequence[str], report: _Report) -> None:
    """One row per launch; the row under the header has the units."""
    rows = _rows(text, at + 1, header, report)
    line_at, units = next(rows, (at, {}))
    if units.get("ID", "-").strip() or not units:
        raise text.error(line_at, "a header without the row of units under it", _TOOL)
    metrics = [title for title in header if wanted(title)]
    for line_at, row in rows:
        launch = _launch(report, row, 1)
        for metric in metrics:
            launch.values[metric] = _value(
                text, line_at, metric, units[metric], row[metric], report.notes
            )


def _launch(report: _Report, row: Mapping[str, str], many: int) -> _Launch:
    if row.get("CC"):
        report.capabilities[row["CC"]] = None
    titles = ("Host Name", "Process ID", "Device", "Context", "Stream", "ID", "Kernel Name")
    key = tuple(row.get(title, "") for title in titles)
    return report.launches.setdefault(key, _Launch(row["Kernel Name"], many))


def _value(
    text: base.Text, at: int, metric: str, unit: str, raw: str, notes: dict[str, None]
) -> float | None:
    """A metric of one launch in ns, bytes or counts; ``None`` if ncu has no value."""
    if raw.strip() in _NONE:
        return None
    value = base.number(raw)
    if value is None:
        raise text.error(at, f"{raw[:40]!r} is not a value of {metric[:80]}", _TOOL)
    if metric in DURATION:
        factor = _NS.get(unit.strip())
    else:
        split = _UNIT.fullmatch(unit.strip())
        factor = _PREFIX[split.group(1).upper()] if split else None
    if factor is None:
        notes[_SAYS_NO_UNIT.format(metric, unit[:20])] = None
        return None
    return value * factor


def _kernel(launch: _Launch, notes: dict[str, None]) -> base.Kernel:
    """The parts of one launch, times the launches that it represents."""
    one = parts_of(launch.values, notes)
    if (duration := _duration(launch)) is not None:
        one["duration"] = duration
    parts = {part: None if v is None else v * launch.launches for part, v in one.items()}
    return base.Kernel(launch.kernel, launch.launches, parts)


def _duration(launch: _Launch) -> float | None:
    known = (launch.values.get(metric) for metric in DURATION)
    return next((value for value in known if value is not None), None)


def _times(launches: Sequence[_Launch]) -> tuple[base.Entry, ...]:
    """The table of kernels, as ``nsys stats`` would print it for these launches."""
    rows = []
    for name, each in grouped((launch.kernel, launch) for launch in launches).items():
        many = sum(launch.launches for launch in each)
        known = [(_duration(launch), launch.launches) for launch in each]
        times = [(time, times_run) for time, times_run in known if time is not None]
        if len(times) < len(known) or not many:
            rows.append(base.Entry(name, many, None))
            continue
        total = sum(time * times_run for time, times_run in times)
        row = base.Entry(name, many, total, total / many)
        if all(times_run == 1 for _, times_run in times):
            values = [time for time, _ in times]
            deviation = statistics.stdev(values) if len(values) > 1 else 0.0
            row = replace(
                row,
                median=statistics.median(values),
                minimum=min(values),
                maximum=max(values),
                deviation=deviation,
            )
        rows.append(row)
    return tuple(rows)
