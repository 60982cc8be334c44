"""nvprof's logs: time summaries, metrics and events, as text and as CSV."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field

from gpuwatch.core import units
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.profiles import base

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
    return scaled(text, _RATES) if metric.endswith("_throughput") else base.number(text)


def kernel_of(name: str, values: Sequence[tuple[str, int, str]]) -> base.Kernel:
    """The counts of one kernel on one device from its metrics."""
    by_metric = {metric: (many, average) for metric, many, average in values}
    used = set(by_metric)
    for direction in ("read", "write"):
        ways = [[each.format(direction) for each in way] for way in _PREFERRED]
        complete = [way for way in ways if used.issuperset(way)]
        used -= {each for way in ways for each in way if way not in complete[:1]}
    parts: dict[str, float | None] = {}
    for metric, (many, text) in by_metric.items():
        if metric not in used:
            continue
        part, factor = PARTS[metric]
        average = average_of(metric, text)
        times = 1 if part.endswith("_rate") else many
        value = None if average is None else average * times * factor
        known = parts.get(part, 0)
        parts[part] = None if value is None or known is None else known + value
    launches = max(many for many, _ in by_metric.values())
    averages = {metric: text for metric, (_, text) in by_metric.items()}
    if not _derivable(averages):
        return base.Kernel(name, launches, parts)
    time, why_none = _derived(averages)
    parts["derived"] = None if time is None else time * launches
    return base.Kernel(name, launches, parts, why_none)


def _derivable(averages: Mapping[str, str]) -> list[tuple[str, str]]:
    """Average transactions and throughput of the directions that have both, as printed."""
    names = [(f"dram_{each}_transactions", f"dram_{each}_throughput") for each in ("read", "write")]
    return [
        (averages[many], averages[rate]) for many, rate in names if {many, rate} <= averages.keys()
    ]


def _derived(averages: Mapping[str, str]) -> tuple[float | None, str | None]:
    """Mean time of a launch in ns, its DRAM bytes over their throughput, or why there is none.

    nvprof's average throughput is the average number of bytes over the average time, so this holds
    for any number of launches. Of reads and writes the one that was rounded less counts.
    """
    times = []
    for printed_count, printed_rate in _derivable(averages):
        transactions, rate = base.number(printed_count), scaled(printed_rate, _RATES)
        if transactions and rate:
            time = transactions * _TRANSACTION_BYTES / rate * 1e9
            times.append((_rounding(printed_count) + _rounding(printed_rate), time))
    if not times:
        return None, "no DRAM transactions were counted"
    (slack, time), (other_slack, other) = min(times), max(times)
    if abs(time - other) > slack * time + (other_slack + _SAME) * other:
        one, two = (units.milliseconds(each / 1e9) for _, each in times)
        return None, f"its DRAM reads give {one} a launch, its writes {two}"
    if slack > base.ROUNDED:
        return None, "too few DRAM transactions were counted"
    return time, None


def _rounding(printed: str) -> float:
    """One of the last printed digit, relative to the figure."""
    digits = _VALUE.fullmatch(printed.strip())
    mantissa = re.split("[eE]", digits.group(1))[0] if digits else ""
    return 10.0 ** -len(mantissa.partition(".")[2]) / (base.number(mantissa) or 1.0)


def scaled(text: str, units: dict[str, float]) -> float | None:
    split = _VALUE.fullmatch(text.strip()) if len(text) < 60 else None
    value = base.number(split.group(1)) if split else None
    if split is None or value is None or split.group(2) not in units:
        return None
    return value * units[split.group(2)]


_TOOL = "nvprof"

_TALK = re.compile(r"==(\d+|=+)==")
_COMMAND = re.compile(r"==(?:\d+|=+)== .*?(?:process \d+, command|application): (.*)")
_SUMMARY = re.compile(r"\s*(Type\s+)?Time\(%\)\s+Time\s+Calls\s+Avg\s+Min\s+Max\s+Name\s*")
_METRICS = re.compile(r"\s*Invocations\s+(Metric|Event) Name\s")
_SUMMARY_CSV = ["Time(%)", "Time", "Calls", "Avg", "Min", "Max", "Name"]
_METRICS_CSV = ["Device", "Kernel", "Invocations"]
_TRACE = re.compile(r'\s*"?Start"?(\s+|,)"?Duration"?(\s+|,)')
_SECTION = re.compile(r"([A-Z][A-Za-z() ]{0,40}):")
_ROW = re.compile(r"([\d.]+)%\s+(\S+)\s+(\d+)\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S.*)")
_ROW_BEGINS = re.compile(r"[\d.]+%(\s+\d|\s*$)")
_DEVICE = re.compile(r"(.*\S) \(\d+\)")
_KERNEL = "    Kernel: "
_METRIC_ROW = re.compile(r"\s+(\d+)\s+(\w+)\s+(\S.*)")
_COPIES = ("[CUDA memcpy", "[CUDA memset")
_LIKE_A_ROW = re.compile(
    r"(?<![\d.])[\d.]+%\s+[\d.]+[num]?s\s+\d+\s+[\d.]+[num]?s\s"
    r'|"(GPU activities|API calls)",|^[\d.]+,[\d.]+,\d+,[\d.]+,'
    rf"|(^|\d)\s+({'|'.join(PARTS)})\s+\S"
    rf'|,"({"|".join(PARTS)})",'
)
"""A row of any table, wherever in a line it begins."""
_CUT_OFF = "a row that ends early: the log is cut off"


@dataclass
class _Log:
    """The data read so far."""

    text: base.Text
    times: dict[str, list[base.Entry]] = field(default_factory=dict)
    kernels: list[base.Kernel] = field(default_factory=list)
    devices: dict[str, None] = field(default_factory=dict)
    section: str = "GPU activities"
    notes: dict[str, None] = field(default_factory=dict)
    unread: int = 0
    """Rows that could not be read."""

    def is_last(self, at: int) -> bool:
        """Whether only empty lines follow line ``at``."""
        lines = self.text.lines
        return not any(lines[after].strip() for after in range(at + 1, len(lines)))

    def cells(self, at: int, line: str, width: int) -> list[str] | None:
        """The fields of a row of a CSV table; ``None`` if it is none."""
        row = base.cells(line)
        if row is not None and len(row) == width:
            return row
        if self.is_last(at):
            raise self.text.error(at, _CUT_OFF, _TOOL)
        return None


class _Table:
    csv = False

    def row(self, at: int, line: str) -> bool:
        """Read line ``at``; whether it is part of the table."""
        raise NotImplementedError

    def close(self) -> None:
        """End the table."""


def read(text: base.Text) -> base.Report | None:
    """All tables of the log; ``None`` if it has no header of nvprof.

    The program's own lines between the rows are left out and counted.

    Raises:
        UsageError: a line of a table is damaged, or the log has only a trace.
    """
    log, command = _Log(text), None
    table: _Table | None = None
    trace: int | None = None
    between, foreign, seen = 0, 0, False
    for at, line in enumerate(text.lines):
        if _TALK.match(line):
            found = _COMMAND.match(line[:4096])
            command = command or (found.group(1).strip() if found else None)
            log.section = "API calls" if "API calls:" in line else "GPU activities"
        elif (begun := _begun(log, at, line)) is not None:
            if table is not None:
                table.close()
            table, seen, between = begun, True, 0
        elif table is not None and table.row(at, line):
            foreign, between = foreign + between, 0
        elif _LIKE_A_ROW.search(line) or (table is not None and table.csv and line[:1] == '"'):
            log.unread += 1
        else:
            trace = at if trace is None and _TRACE.match(line) else trace
            between += bool(line.strip())
    if table is not None:
        table.close()
    if not seen:
        if trace is not None:
            raise text.error(trace, "a trace of single launches is not read, a summary is", _TOOL)
        return None
    if not log.times and not log.kernels:
        why = f"no kernel was timed, and none of the metrics {', '.join(PARTS)} is there"
        raise text.error(0, why, _TOOL)
    tables = {name: base.merged(rows) for name, rows in log.times.items()}
    return base.Report(
        _TOOL,
        None,
        tables,
        base.added(log.kernels),
        tuple(log.devices),
        command=command,
        notes=(*log.notes, *base.line_notes(_TOOL, foreign, log.unread)),
        unread=log.unread,
    )


def _begun(log: _Log, at: int, line: str) -> _Table | None:
    """The table whose header is line ``at``."""
    if _SUMMARY.fullmatch(line):
        return _Summary(log)
    if _METRICS.match(line):
        return _Metrics(log)
    if '"Time(%)"' in line and (base.cells(line) or [])[-7:] == _SUMMARY_CSV:
        return _SummaryCsv(log, at)
    if '"Kernel"' in line and (base.cells(line) or [])[:3] == _METRICS_CSV:
        return _MetricsCsv(log, at)
    return None


class _Summary(_Table):
    """A summary of times as text."""

    def __init__(self, log: _Log) -> None:
        self._log = log
        self._section = log.section

    def row(self, at: int, line: str) -> bool:
        text = line.lstrip()
        named = _SECTION.match(text)
        rest = text[named.end() if named else 0 :].strip()
        if not (named or line[:1].isspace()) or not _ROW_BEGINS.match(rest):
            return False
        row = _ROW.fullmatch(rest)
        if row is None:
            if self._log.is_last(at):
                raise self._log.text.error(at, _CUT_OFF, _TOOL)
            self._log.unread += 1
            return True
        self._section = named.group(1) if named else self._section
        values = row.group(2, 4, 5, 6)
        _time(self._log, at, self._section, row.group(3), values, row.group(7))
        return True


class _SummaryCsv(_Table):
    """A summary of times as CSV; the line under the header has the units."""

    csv = True

    def __init__(self, log: _Log, at: int) -> None:
        lines = log.text.lines
        header = base.cells(lines[at]) or []
        units = (base.cells(lines[at + 1]) or []) if at + 1 < len(lines) else []
        times = [len(header) + offset for offset in (-6, -4, -3, -2)]
        if len(units) != len(header) or any(units[each] not in NS for each in times):
            raise log.text.error(at, "a header without the line of units under it", _TOOL)
        self._log, self._section, self._units_at = log, log.section, at + 1
        self._width, self._times, self._units = len(header), times, units

    def row(self, at: int, line: str) -> bool:
        if at == self._units_at:
            return True
        if not (line[:1] == '"' or line[:1].isdigit()):
            return False
        row = self._log.cells(at, line, self._width)
        if row is None:
            return False
        section = row[0] if self._width == 8 else self._section
        values = [row[each] + self._units[each] for each in self._times]
        _time(self._log, at, section, row[-5], values, row[-1])
        return True


def _time(log: _Log, at: int, section: str, calls: str, values: Sequence[str], name: str) -> None:
    total, average, low, high = (scaled(value, NS) for value in values)
    many = base.count(calls)
    if many is None or None in (total, average, low, high):
        raise log.text.error(at, "a row whose times cannot be read", _TOOL)
    if section == "API calls":
        table = base.API
    elif section == "GPU activities":
        table = base.COPY_TIME if name.startswith(_COPIES) else base.KERNELS
    else:
        log.notes[f"the section {section[:40]} is left out"] = None
        return
    entry = base.Entry(name.strip(), many, total, average, minimum=low, maximum=high)
    if wrong := base.outside(entry):
        raise log.text.error(at, wrong, _TOOL)
    if doubt := base.not_the_total(entry):
        log.notes[doubt] = None
    log.times.setdefault(table, []).append(entry)


class _Metrics(_Table):
    """Metrics or events as text: under the name of each kernel a row for each of them."""

    def __init__(self, log: _Log) -> None:
        self._log = log
        self._kernel: str | None = None
        self._rows = 0
        self._values: list[tuple[str, int, str]] = []

    def row(self, at: int, line: str) -> bool:
        if line.startswith('Device "'):
            self._begin(None)
            _device(self._log, line[8:].rstrip().rstrip('"'))
            return True
        if _KERNEL in line:
            known = line.startswith(_KERNEL)
            self._begin(line[len(_KERNEL) :].strip() if known else None)
            return known
        row = _METRIC_ROW.fullmatch(line)
        if row is None:
            return False
        self._rows += 1
        metric = row.group(2)
        if metric not in PARTS:
            return True
        if any(metric == each for each, _, _ in self._values):
            self._begin(None)  # the line that names the next kernel is missing
        if self._kernel is None:
            return False
        words = row.group(3).split()
        if len(words) < 3 and not self._log.is_last(at):
            return False
        # Metrics: description, Min, Max, Avg. Events: Min, Max, Avg, and since CUDA 9 Total.
        three = words[:3] if metric.startswith("fb_") else words[-3:]
        self._values.append(_value(self._log, at, metric, row.group(1), three))
        return True

    def close(self) -> None:
        self._begin(None)

    def _begin(self, kernel: str | None) -> None:
        """End the kernel before, and begin the next."""
        if self._kernel is not None and self._values:
            self._log.kernels.append(kernel_of(self._kernel, self._values))
        self._log.unread += self._kernel is not None and not self._rows
        self._kernel, self._rows, self._values = kernel, 0, []


class _MetricsCsv(_Table):
    """Metrics or events as CSV: a row for each kernel and metric."""

    csv = True

    def __init__(self, log: _Log, at: int) -> None:
        header = base.cells(log.text.lines[at]) or []
        name = next((each for each in ("Metric Name", "Event Name") if each in header), None)
        if name is None or "Avg" not in header:
            raise log.text.error(at, "a header without the names of metrics or averages", _TOOL)
        self._log, self._width = log, len(header)
        self._name, self._average = header.index(name), header.index("Avg")
        self._kernels: dict[tuple[str, str], list[tuple[str, int, str]]] = {}

    def row(self, at: int, line: str) -> bool:
        if not line.startswith('"'):
            return False
        row = self._log.cells(at, line, self._width)
        if row is None:
            return False
        _device(self._log, row[0])
        metric = row[self._name]
        values = self._kernels.setdefault((row[0], row[1]), [])
        if metric in PARTS:
            three = row[self._average - 2 : self._average + 1]
            values.append(_value(self._log, at, metric, row[2], three))
        return True

    def close(self) -> None:
        self._log.kernels += [
            kernel_of(kernel, values) for (_, kernel), values in self._kernels.items() if values
        ]


def _value(
    log: _Log, at: int, metric: str, invocations: str, three: Sequence[str]
) -> tuple[str, int, str]:
    """Metric, invocations and average of a row; ``three`` are its minimum, maximum, average.

    Instead of a missing number the tool prints a word in angle brackets.
    """
    many = base.count(invocations)
    if many is None or len(three) < 3:
        raise log.text.error(at, _CUT_OFF, _TOOL)
    low, high, average = (average_of(metric, each) for each in three)
    if not three[2].startswith("<"):
        if low is None or high is None or average is None:
            raise log.text.error(at, f"a row of {metric} that cannot be read", _TOOL)
        if not low * (1 - base.ROUNDED) <= average <= high * (1 + base.ROUNDED):
            raise log.text.error(at, f"an average of {metric} outside its own range", _TOOL)
    return metric, many, three[2]


def _device(log: _Log, text: str) -> None:
    found = _DEVICE.fullmatch(text)
    log.devices[found.group(1) if found else text] = None
