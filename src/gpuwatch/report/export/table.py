"""A table for export: columns, rows in batches, and its CSV and JSON lines."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

from gpuwatch.core.json_schema import JSON_SCHEMA
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON
from gpuwatch.core.text import spreadsheet

Value = float | int | bool | str | None
Row = tuple[Value, ...]
_LONGEST_TEXT = 64 * 1024


@dataclass(frozen=True)
class Column:
    """One column: type and unit of its values, and how they were obtained."""

    name: str
    """The heading, unique in its table."""
    type: Literal["float", "int", "bool", "text"] = "float"
    unit: str = ""
    key: bool = False
    """Whether it identifies the row: the run, the time."""
    device: str | None = None
    metric: str | None = None
    method: str = ""
    source: str = ""
    reason: str | None = None
    """Why there are no values, if there are none."""


@dataclass(frozen=True)
class Export:
    """A table that may not fit into memory."""

    what: str
    columns: tuple[Column, ...]
    batches: Callable[[], Iterator[Sequence[Row]]]
    """Reads the rows from the start, some thousands at a time; ``None`` means unknown."""


def as_csv(export: Export) -> Iterator[str]:
    """A line of headings, then a line per row; an empty cell is unknown."""
    yield csv_text([[spreadsheet(column.name) for column in export.columns]])
    for batch in export.batches():
        yield csv_text([_cell(value) for value in row] for row in batch)


def as_json_lines(export: Export) -> Iterator[str]:
    """A first line that names the columns, then a list per row: keys first, then the columns.

    Unknown values and numbers that are not finite are null.
    """
    keys = [column.name for column in export.columns if column.key]
    columns = [_described(column) for column in export.columns if not column.key]
    yield json.dumps({"schema": JSON_SCHEMA, "keys": keys, "columns": columns}) + "\n"
    for batch in export.batches():
        for row in batch:
            finite = (
                None if isinstance(value, float) and not math.isfinite(value) else value
                for value in row
            )
            yield json.dumps([*finite]) + "\n"


def _described(column: Column) -> dict[str, JSON]:
    if column.metric is None:
        return {"name": column.name, "unit": column.unit or None}
    return {"device": column.device, "metric": column.metric, "unit": column.unit}


def _cell(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return spreadsheet(value, _LONGEST_TEXT) if isinstance(value, str) else repr(value)


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Rows as CSV, their ends as everywhere here."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()
