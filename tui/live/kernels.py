"""The kernels of a run as rows of text: the tables of its profile."""

from __future__ import annotations

from gpuwatch.analysis.hardware.kernels import short_name
from gpuwatch.analysis.hardware.profile import Cell, Table, all_tables, source, title
from gpuwatch.core.models import number
from gpuwatch.core.text import clean
from gpuwatch.core.units import UNKNOWN, digits, milliseconds, si
from gpuwatch.tui.feed.snapshot import Snapshot
from gpuwatch.tui.widgets.line import pad
from gpuwatch.tui.widgets.page import Row, counter_rows, wrapped

_COLUMNS = {
    "Time (%)": ("time", 8),
    "Total Time (ns)": ("total", 9),
    "Total (MB)": ("total MB", 9),
    "Instances": ("count", 8),
    "Num Calls": ("count", 8),
    "Count": ("count", 8),
    "Calls": ("count", 8),
    "Invocations": ("count", 8),
    "Avg (ns)": ("mean", 9),
    "Avg (MB)": ("mean MB", 9),
    "Med (ns)": ("median", 9),
    "Min (ns)": ("min", 9),
    "Max (ns)": ("max", 9),
    "FLOP": ("FLOP", 9),
    "DRAM Read (bytes)": ("read", 9),
    "DRAM Write (bytes)": ("written", 9),
}
"""Heading and width of each column; the name is the last column."""
_WIDE_COLUMNS = ("Med (ns)", "Min (ns)", "Max (ns)")
"""Columns of a wide screen."""
_NAMES = ("Name", "Operation")
_TIME, _SIZE = "Total Time (ns)", "Total (MB)"

Cells = tuple[Cell, ...]


def kernel_rows(snapshot: Snapshot, width: int) -> list[Row]:
    """All tables, sorted by time or size, or the reason why there are none."""
    profile, counters = snapshot.profile, snapshot.counters
    known = profile is not None and bool(profile.tables or profile.reason)
    rows: list[Row] = []
    if profile is not None and known:
        rows += wrapped(source(profile), width, role="strong")
        if profile.reason:
            rows += wrapped(profile.reason, width, mark="!", role="text")
        for note in profile.notes:
            rows += wrapped(note, width)
    tables = all_tables(profile, counters)
    if counters is not None:
        rows += [*([(("", "text"),)] if rows else []), *counter_rows(counters, width)]
    if not tables and not known:
        reason, hint = snapshot.no_profile
        mend = wrapped(hint, width, mark="→", role="text") if hint else []
        rows = [*wrapped(reason, width, role="text"), *mend, *rows]
    for table in tables.values():
        rows += [(("", "text"),), *_table(table, width)]
    return rows


def _table(table: Table, width: int) -> list[Row]:
    shown = [
        column
        for column in table.columns
        if column in _COLUMNS and (width >= 120 or column not in _WIDE_COLUMNS)
    ]
    name = next((column for column in _NAMES if column in table.columns), None)
    head = "".join(f"{_COLUMNS[column][0]:>{_COLUMNS[column][1]}}" for column in shown)
    rows: list[Row] = [
        ((f" {clean(title(table))}", "strong"),),
        ((f"{head}  {(name or '').lower()}", "muted"),),
    ]
    for cells in _sorted(table):
        values = dict(zip(table.columns, cells, strict=True))
        numbers = "".join(
            pad(_cell(values[column], column), _COLUMNS[column][1], ">") for column in shown
        )
        kernel = UNKNOWN if name is None or values[name] is None else clean(str(values[name]))
        columns_left = max(20, width - len(numbers) - 3)
        rows.append(((numbers, "text"), (f"  {short_name(kernel, columns_left)}", "strong")))
    if table.rows_left_out:
        rows.append(((f"   and {table.rows_left_out:,} more, not kept", "muted"),))
    return rows


def _sorted(table: Table) -> list[Cells]:
    """Rows by time or size, the largest first and unknown ones last."""
    by = _TIME if _TIME in table.columns else _SIZE if _SIZE in table.columns else None
    if by is None:
        return list(table.rows)
    at = table.columns.index(by)

    def size(cells: Cells) -> float:
        known = number(cells[at])
        return -1.0 if known is None else known

    return sorted(table.rows, key=size, reverse=True)


def _cell(value: Cell, column: str) -> str:
    known = number(value)
    if known is None:
        return UNKNOWN
    if column.endswith("(ns)"):
        return milliseconds(known / 1e9)
    if column.endswith("(%)"):
        return f"{known:.1f} %"
    if column == "FLOP" or column.endswith("(bytes)"):
        return si(known, "B" if column.endswith("(bytes)") else "")
    return digits(known) if column.endswith("(MB)") else f"{known:,.0f}"
