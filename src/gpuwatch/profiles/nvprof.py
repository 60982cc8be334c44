"""nvprof's logs: time summaries, metrics and events, as text and as CSV."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.profiles.base import (
    API,
    COPY_TIME,
    KERNELS,
    ROUNDED,
    Entry,
    Kernel,
    Report,
    Text,
    added,
    cells,
    count,
    merged,
    not_the_total,
    outside,
)
from gpuwatch.profiles.nvprof_metrics import NS, PARTS, average_of, kernel_of, scaled

_TOOL = "nvprof"

_TALK = re.compile(r"==(\d+|=+)==")
_COMMAND = re.compile(r"==(?:\d+|=+)== .*?(?:process \d+, command|application): (.*)")
_SUMMARY = re.compile(r"\s*(Type\s+)?Time\(%\)\s+Time\s+Calls\s+Avg\s+Min\s+Max\s+Name\s*")
_METRICS = re.compile(r"Invocations\s+(Metric|Event) Name\s")
_SUMMARY_CSV = ["Time(%)", "Time", "Calls", "Avg", "Min", "Max", "Name"]
_METRICS_CSV = ["Device", "Kernel", "Invocations"]
_TRACE = re.compile(r'\s*"?Start"?(\s+|,)"?Duration"?(\s+|,)')
_SECTION = re.compile(r"([A-Z][A-Za-z() ]{0,40}):")
_ROW = re.compile(r"([\d.]+)%\s+(\S+)\s+(\d+)\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S.*)")
_ROW_BEGINS = re.compile(r"[\d.]+%(\s|$)")
_DEVICE = re.compile(r"(.*\S) \(\d+\)")
_METRIC_ROW = re.compile(r"\s+(\d+)\s+(\w+)\s+(\S.*)")
_COPIES = ("[CUDA memcpy", "[CUDA memset")


@dataclass
class _Log:
    """The data read so far."""

    text: Text
    times: dict[str, list[Entry]] = field(default_factory=dict)
    kernels: list[Kernel] = field(default_factory=list)
    devices: dict[str, None] = field(default_factory=dict)
    seen: bool = False
    notes: dict[str, None] = field(default_factory=dict)


def read(text: Text) -> Report | None:
    """All sections of the log; ``None`` if it has no header of nvprof.

    Raises:
        UsageError: a line of a section is damaged, or the log has only a trace.
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
        why = f"no kernel was timed, and none of the metrics {', '.join(PARTS)} is there"
        raise text.error(0, why, _TOOL)
    tables = {name: merged(rows) for name, rows in log.times.items()}
    return Report(
        _TOOL,
        None,
        tables,
        added(log.kernels),
        tuple(log.devices),
        command=command,
        notes=tuple(log.notes),
    )


def _summary(log: _Log, at: int, section: str) -> int:
    """Read a text summary from line ``at`` on; returns the line after it."""
    while at < len(log.text.lines):
        line = log.text.lines[at]
        named = _SECTION.match(line.lstrip())
        rest = line.lstrip()[named.end() if named else 0 :].strip()
        if not (named or line[:1].isspace()) or not _ROW_BEGINS.match(rest):
            break
        row = _ROW.fullmatch(rest)
        if row is None:
            raise log.text.error(at, "a row that ends early: the log is cut off", _TOOL)
        section = named.group(1) if named else section
        _time(log, at, section, row.group(3), row.group(2, 4, 5, 6), row.group(7))
        at += 1
    log.seen = True
    return at


def _summary_csv(log: _Log, at: int, section: str) -> int:
    header = cells(log.text.lines[at]) or []
    units = (cells(log.text.lines[at + 1]) or []) if at + 1 < len(log.text.lines) else []
    times = [len(header) + offset for offset in (-6, -4, -3, -2)]
    if len(units) != len(header) or any(units[each] not in NS for each in times):
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
    total, average, low, high = (scaled(value, NS) for value in values)
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
    if wrong := outside(entry):
        raise log.text.error(at, wrong, _TOOL)
    if doubt := not_the_total(entry):
        log.notes[doubt] = None
    log.times.setdefault(table, []).append(entry)


def _metrics(log: _Log, at: int) -> int:
    """Read text metrics or events from line ``at`` on; returns the line after them."""
    kernel: str | None = None
    values: list[tuple[str, int, str]] = []

    def close() -> None:
        if kernel is not None and values:
            log.kernels.append(kernel_of(kernel, values))
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
        elif row.group(2) in PARTS:
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
        if row[name_at] in PARTS:
            three = row[average_at - 2 : average_at + 1]
            values.append(_value(log, at, row[name_at], row[2], three))
        at += 1
    log.kernels += [kernel_of(kernel, values) for (_, kernel), values in kernels.items() if values]
    log.seen = True
    return at


def _value(
    log: _Log, at: int, metric: str, invocations: str, three: Sequence[str]
) -> tuple[str, int, str]:
    """Metric, invocations and average of a row; ``three`` are its minimum, maximum, average.

    Instead of a missing number the tool prints a word in angle brackets.
    """
    many = count(invocations)
    if many is None or len(three) < 3:
        raise log.text.error(at, "a row that ends early: the log is cut off", _TOOL)
    low, high, average = (average_of(metric, each) for each in three)
    if not three[2].startswith("<"):
        if low is None or high is None or average is None:
            raise log.text.error(at, f"a row of {metric} that cannot be read", _TOOL)
        if not low * (1 - ROUNDED) <= average <= high * (1 + ROUNDED):
            raise log.text.error(at, f"an average of {metric} outside its own range", _TOOL)
    return metric, many, three[2]


def _device(log: _Log, text: str) -> None:
    found = _DEVICE.fullmatch(text)
    log.devices[found.group(1) if found else text] = None
