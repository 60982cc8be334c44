"""Reports of ``nsys stats``, as CSV and as its default text table.

Includes the names and headers of 2020 to 2022 (``gpukernsum``, ``Time(%)``, ``Average``), and times
in the unit given in the header. Tables are recognised by their headers; a file may have several.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.profiles import base

_TOOL = "nsys"
_NANOSECONDS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_MEGABYTES = {"B": 1e-6, "bytes": 1e-6, "KB": 1e-3, "MB": 1, "GB": 1e3}
_MEGABYTES |= {"KiB": 1024e-6, "MiB": 1024**2 * 1e-6, "GiB": 1024**3 * 1e-6}

_HEADER = re.compile(r'\s*"?(Time ?\(%\)|Total( \([KMG]?i?B\))?)"?(,|\s{2,})"?(Total|Count|Oper)')
_CAPTION = re.compile(r"^\s*\*\* .*\(\w+\):\s*$|\[[^\]]*?(\w+)(\.py)?\]\.\.\.\s*$")
_CAPTION_WITHIN = 1000
_TALK = ("Processing [", "SKIPPED:", "Generating ", "NOTICE:", "Exporting ", "Using ", "WARNING:")
_VERSION = re.compile(r"nsight-systems(?:-cli)?[-/](\d{4}\.\d+\.\d+)")
_COLUMN = re.compile(r"([A-Za-z ]+?) ?(?:\(([^)]*)\))?")
_TITLES = {
    "average": ("avg", "average"),
    "median": ("med", "median"),
    "minimum": ("min", "minimum"),
    "maximum": ("max", "maximum"),
    "deviation": ("stddev",),
    "total": ("total", "total time", "total size"),
    "count": ("instances", "num calls", "calls", "operations", "count"),
    "name": ("name", "operation"),
}
"""What columns are called, by what they hold."""
_MEANING = {title: meaning for meaning, titles in _TITLES.items() for title in titles}
_ROW_BEGINS = re.compile(r'\s*"?[\d.,]+"?(,|\s{2,}|\s*$)')
_TEXT_COLUMN = re.compile(r"(?<=\s\s)[\d.,]+(?=\s\s)")
_MAY_LACK = 2
"""Columns that a line may lack and still be taken for a row."""
_GRID = "GridXYZ"
_API_NAME = re.compile(r"cu(da)?[A-Z]")


@dataclass(frozen=True)
class _Layout:
    """Column positions of one table, with each column's factor to ns or MB."""

    table: str
    columns: dict[str, int]
    factors: dict[str, float | None]


def read(text: base.Text) -> base.Report | None:
    """All tables of the file; ``None`` if it has no header of ``nsys stats``.

    Raises:
        UsageError: a line under a header is not a row of its table.
    """
    tables: dict[str, tuple[base.Entry, ...]] = {}
    notes: list[str] = []
    version, at, seen = None, 0, False
    while at < len(text.lines):
        line = text.lines[at]
        known = _VERSION.search(line[:1000]) if line.startswith("Processing [") else None
        version = known.group(1) if known else version
        if not _HEADER.match(line):
            at += 1
            continue
        seen = True
        header, split, first = _open(text, at)
        layout = _layout(header)
        if layout is None:
            at = first
            continue
        doubts: list[str] = []
        rows, behind = _rows(text, first, len(header), split, layout, doubts)
        at, header_at = behind, at
        if not rows:
            raise text.error(header_at, "a header without rows", _TOOL)
        if layout.table == base.API and not all(_API_NAME.match(row.name) for row in rows):
            continue  # ``osrt_sum`` has the same header
        if layout.table in tables:
            if _GRID in header:
                continue  # ``cuda_gpu_kern_gb_sum``: the same kernels, by their grids
            why = f"a second table {layout.table}: import each run by itself"
            raise text.error(header_at, why, _TOOL)
        tables[layout.table] = base.merged(rows)
        notes += doubts
        if layout.table == base.COPY_SIZE and layout.factors["total"] is None:
            notes.append("the sizes of the copies are left out: the file does not say their unit")
    if not seen:
        return None
    if not tables:
        raise text.error(0, "it has none of the reports that gpuwatch reads", _TOOL)
    return base.Report(_TOOL, version, tables, notes=tuple(notes))


def _open(text: base.Text, at: int) -> tuple[list[str], Callable[[str], list[str] | None], int]:
    """Column names, a function that splits a row into columns, and the line of the first row."""
    line = text.lines[at]
    if "," in line:
        return base.cells(line) or [], base.cells, at + 1
    rule = text.lines[at + 1] if at + 1 < len(text.lines) else ""
    spans = [match.span() for match in re.finditer(r"-+", rule)]
    if len(spans) < 3 or rule.strip("- "):
        raise text.error(at, "a table without the line of dashes under its header", _TOOL)
    spans[-1] = (spans[-1][0], -1)

    def split(row: str) -> list[str] | None:
        padded = row.ljust(spans[-1][0])
        gaps = pairwise(spans)
        if any(padded[left[1] : right[0]].strip() for left, right in gaps):
            return None
        return [padded[a : len(padded) if b < 0 else b].strip() for a, b in spans]

    return split(line) or [], split, at + 2


def _layout(header: Sequence[str]) -> _Layout | None:
    """The layout for a header; ``None`` for an unsupported report (``nvtx_sum``, ...)."""
    columns: dict[str, int] = {}
    units: dict[str, str | None] = {}
    titles: dict[str, str] = {}
    for at, title in enumerate(header):
        split = _COLUMN.fullmatch(title.strip())
        meaning = _MEANING.get(split.group(1).strip().lower()) if split else None
        if split and meaning and meaning not in columns:
            columns[meaning], units[meaning] = at, split.group(2)
            titles[meaning] = split.group(1).strip().lower()
    if not {"total", "count", "name"} <= columns.keys():
        return None
    timed = header[0].strip().startswith("Time") and titles["total"] == "total time"
    if "Category" in header or "Range" in header:
        return None
    if titles["name"] == "operation":
        table = base.COPY_TIME if timed else base.COPY_SIZE
    elif timed and titles["count"] == "instances":
        table = base.KERNELS
    elif timed and titles["count"] in ("num calls", "calls"):
        table = base.API
    else:
        return None
    scale = _MEGABYTES if table == base.COPY_SIZE else _NANOSECONDS
    whole = units["total"]
    factors: dict[str, float | None] = {
        meaning: scale.get(units[meaning] or whole or "")
        for meaning in columns
        if meaning not in ("name", "count")
    }
    return _Layout(table, columns, factors)


def _rows(
    text: base.Text,
    first: int,
    width: int,
    split: Callable[[str], list[str] | None],
    layout: _Layout,
    doubts: list[str],
) -> tuple[list[base.Entry], int]:
    """The rows from line ``first`` to the next header, and its line; adds notes to ``doubts``.

    Lines that are not rows are left out, and behind an empty line or one of nsys's own so are the
    rows of a report that is not read.
    """
    rows: list[base.Entry] = []
    at, foreign, between, behind_gap = first, 0, 0, False
    misfit: int | None = None
    while at < len(text.lines) and not _HEADER.match(text.lines[at]):
        line = text.lines[at]
        fields = _fitting(split(line), width, layout)
        if fields is not None:
            if misfit is not None:
                raise text.error(misfit, "a row that cannot be read, with others under it", _TOOL)
            rows.append(_entry(text, at, fields, layout))
            if doubt := base.not_the_total(rows[-1], _step(fields, layout)):
                doubts.append(doubt)
            foreign, between, behind_gap = foreign + between, 0, False
        elif _is_gap(line):
            behind_gap = True
        elif _is_like_a_row(line, width):
            if not behind_gap:
                raise text.error(at, "a row that ends early: the file is cut off or damaged", _TOOL)
            misfit = at if misfit is None else misfit
        else:
            between += 1
        at += 1
    doubts += base.line_notes(_TOOL, foreign, 0)
    return rows, at


def _fitting(fields: list[str] | None, width: int, layout: _Layout) -> list[str] | None:
    """The fields of a line that is a row of this table, else ``None``."""
    if fields is None or len(fields) != width:
        return None
    numbers = (base.number(fields[layout.columns[meaning]]) for meaning in ("count", "total"))
    return fields if any(each is not None for each in numbers) else None


def _is_like_a_row(line: str, width: int) -> bool:
    """Whether a line begins with a number and ends a column, or holds most of a table's columns."""
    columns = max(line.count(","), len(_TEXT_COLUMN.findall(line)))
    return _ROW_BEGINS.match(line) is not None or columns >= width - _MAY_LACK


def _is_gap(line: str) -> bool:
    """Whether it is empty or a line that nsys prints between its reports."""
    caption = _CAPTION.search(line[:_CAPTION_WITHIN])
    return not line.strip() or line.startswith(_TALK) or caption is not None


def _step(fields: Sequence[str], layout: _Layout) -> float:
    """The last printed digit of the total and of the average, whichever is coarser."""
    return max(
        (layout.factors[meaning] or 0.0)
        * 10.0 ** -len(fields[layout.columns[meaning]].partition(".")[2])
        for meaning in ("total", "average")
        if meaning in layout.columns
    )


def _entry(text: base.Text, at: int, fields: Sequence[str], layout: _Layout) -> base.Entry:
    many = base.count(fields[layout.columns["count"]])
    name = fields[layout.columns["name"]].strip()
    if many is None or not name:
        raise text.error(at, "a row without a count or without a name", _TOOL)
    values: dict[str, float | None] = {}
    for meaning, factor in layout.factors.items():
        raw = fields[layout.columns[meaning]]
        value = base.number(raw)
        if value is None and raw.strip():
            raise text.error(at, f"{raw[:40]!r} is not a number", _TOOL)
        values[meaning] = None if value is None or factor is None else value * factor
    entry = base.Entry(name, many, values.pop("total"), **values)
    if wrong := base.outside(entry):
        raise text.error(at, wrong, _TOOL)
    return entry
