"""The result of a profile reader, and the errors it may raise."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import field

from gpuwatch.core.aggregate import grouped, total_of
from gpuwatch.core.errors import UsageError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.text import clean
from gpuwatch.core.units import counted

MAKE = {
    "nsys": "nsys stats --report cuda_gpu_kern_sum --format csv REPORT.nsys-rep > FILE",
    "ncu": "ncu --csv --page raw --import REPORT.ncu-rep > FILE",
    "nvprof": "nvprof --csv --log-file FILE COMMAND",
}
"""Commands that print importable output, by tool."""

RECOGNISED = (
    "what is recognised: `nsys stats` reports, `ncu --csv` pages details and raw, and nvprof's "
    "summaries, metrics and events"
)

KERNELS = "cuda_gpu_kern_sum"
API = "cuda_api_sum"
COPY_TIME = "cuda_gpu_mem_time_sum"
COPY_SIZE = "cuda_gpu_mem_size_sum"

COUNT_COLUMN = {KERNELS: "Instances", API: "Num Calls", COPY_TIME: "Count", COPY_SIZE: "Count"}
"""Name of each table's count column."""

NAME_COLUMN = {KERNELS: "Name", API: "Name", COPY_TIME: "Operation", COPY_SIZE: "Operation"}

DERIVED = "derived from DRAM transactions x 32 B / DRAM throughput"
"""How a kernel's time is known that no summary of times holds."""

ROUNDED = 0.01
"""Relative tolerance between the figures of one row, which are rounded independently."""

_NUMBER = re.compile(r"(\d{1,3}(,\d{3})+|\d+)(\.\d*)?([eE][+-]?\d{1,3})?", re.ASCII)
_LONGEST_NUMBER = 60
_LARGEST = 1e30
"""Far beyond any real time or count; products of such numbers stay finite."""


@dataclass(frozen=True)
class Text:
    """A file's lines without line ends. ``name`` is the file's name in messages."""

    name: str
    lines: Sequence[str]

    def error(self, line: int, why: str, tool: str) -> UsageError:
        """The error that ``line`` (from 0) is not output of ``tool``."""
        where = f"{clean(self.name, 200)}, line {line + 1}"
        return UsageError(f"{where}: {why}; {RECOGNISED}", f"print it again: {MAKE[tool]}")


@dataclass(frozen=True)
class Entry:
    """One row of a table: times in nanoseconds, sizes in MB (10^6 bytes); ``None`` is unknown."""

    name: str
    count: int | None
    total: float | None
    average: float | None = None
    median: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    deviation: float | None = None


@dataclass(frozen=True)
class Kernel:
    """Counts of one kernel over all its launches.

    Names in ``parts``: ``sp``, ``dp``, ``hp``, ``tensor`` (FLOP), ``read``, ``write`` (bytes of
    DRAM), ``read_rate``, ``write_rate`` (bytes per second, mean over the launches), ``duration``
    (ns), ``derived`` (the same, by :data:`DERIVED`). A missing part was not measured; ``None``
    means that the tool had no value.
    """

    name: str
    launches: int
    parts: Mapping[str, float | None]
    why_no_time: str | None = None
    """Why ``derived`` is ``None``."""


@dataclass(frozen=True)
class Report:
    """The contents of one file."""

    tool: str
    """``nsys``, ``ncu`` or ``nvprof``."""
    version: str | None = None
    tables: Mapping[str, tuple[Entry, ...]] = field(default_factory=dict)
    """Tables by the name of the ``nsys stats`` report."""
    kernels: tuple[Kernel, ...] = ()
    devices: tuple[str, ...] = ()
    """Distinct GPU names in the file."""
    capability: str | None = None
    """The GPU's compute capability, such as ``7.0``."""
    command: str | None = None
    """The profiled command."""
    notes: tuple[str, ...] = ()
    unread: int = 0
    """Rows of its tables that could not be read: no total is known."""


def line_notes(tool: str, foreign: int, unread: int) -> list[str]:
    """Notes on lines between the rows that are not the tool's, and on rows that were not read."""
    notes = []
    if foreign:
        notes.append(f"{counted(foreign, 'line')} between the rows left out: not printed by {tool}")
    if unread:
        rows = counted(unread, "row")
        notes.append(f"{rows} could not be read, mixed with other output: no total is known")
    return notes


def number(text: str) -> float | None:
    """Parse a non-negative number, with or without thousands separators; ``None`` if invalid."""
    text = text.strip()
    if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        return None
    plain = text.replace(",", "")
    value: float = int(plain) if plain.isdecimal() else float(plain)
    return value if value <= _LARGEST else None


def count(text: str) -> int | None:
    """Parse a non-negative integer; ``None`` if invalid."""
    value = number(text)
    return int(value) if value is not None and value == int(value) else None


def outside(entry: Entry) -> str | None:
    """The error in a row whose average or median lies outside its own range.

    Such a number was truncated or altered. ``None`` if the row is fine or has no range.
    """
    low, high = entry.minimum, entry.maximum
    if low is None or high is None:
        return None
    for name, value in (("average", entry.average), ("median", entry.median)):
        if value is not None and not low * (1 - ROUNDED) <= value <= high * (1 + ROUNDED):
            return f"the {name} of {clean(entry.name, 60)} is outside its own range"
    return None


def not_the_total(entry: Entry, step: float = 0.0) -> str | None:
    """A note if count times average differs from the total by more than rounding.

    ``step`` is the last printed digit of the average and of the total.
    """
    if entry.total is None or entry.average is None or entry.count is None:
        return None
    product = entry.count * entry.average
    slack = max(entry.total, product) * ROUNDED + (entry.count + 1) * step
    if abs(product - entry.total) <= slack:
        return None
    return (
        f"{clean(entry.name, 60)}: {entry.count} times its average is {product:g}, "
        f"its total {entry.total:g}: one of them is wrong"
    )


def cells(line: str) -> list[str] | None:
    """The fields of one CSV line; ``None`` if it ends within a quoted field or is not CSV."""
    try:
        rows = list(csv.reader([line], strict=True))
    except csv.Error:
        return None
    return rows[0] if rows else []


def merged(rows: Sequence[Entry]) -> tuple[Entry, ...]:
    """Merge rows by name: sums, smallest, largest; median and deviation are lost."""
    by_name = grouped((row.name, row) for row in rows)
    return tuple(each[0] if len(each) == 1 else _together(each) for each in by_name.values())


def _together(rows: Sequence[Entry]) -> Entry:
    counts = [row.count for row in rows if row.count is not None]
    many = sum(counts) if len(counts) == len(rows) else None
    total = total_of([row.total for row in rows])
    low, high = [row.minimum for row in rows], [row.maximum for row in rows]
    return Entry(
        rows[0].name,
        many,
        total,
        total / many if many and total is not None else None,
        minimum=None if None in low else min(value for value in low if value is not None),
        maximum=None if None in high else max(value for value in high if value is not None),
    )


def added(kernels: Sequence[Kernel]) -> tuple[Kernel, ...]:
    """Merge kernels by name; a part that one of them lacks becomes unknown.

    Rates are weighted by the number of launches.
    """
    found = []
    for name, each in grouped((kernel.name, kernel) for kernel in kernels).items():
        launches = sum(kernel.launches for kernel in each)
        parts: dict[str, float | None] = {}
        for part in dict.fromkeys(part for kernel in each for part in kernel.parts):
            values = [(kernel.parts.get(part), kernel.launches) for kernel in each]
            known = [(value, many) for value, many in values if value is not None]
            rate = part.endswith("_rate")
            total = sum(value * (many if rate else 1) for value, many in known)
            complete = len(known) == len(values) and (launches or not rate)
            parts[part] = (total / launches if rate else total) if complete else None
        whys = (kernel.why_no_time for kernel in each)
        found.append(Kernel(name, launches, parts, next(filter(None, whys), None)))
    return tuple(found)
