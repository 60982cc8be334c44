"""The tables of a profile as rows of text."""

from __future__ import annotations

from gpuwatch.analysis.kernels import short_name
from gpuwatch.analysis.profile import TABLES, Cell, Profile, Table
from gpuwatch.models import number
from gpuwatch.text import clean
from gpuwatch.tui.cells import pad, wrap
from gpuwatch.tui.page import Row
from gpuwatch.units import UNKNOWN, digits, milliseconds

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
    "Min (ns)": ("least", 9),
    "Max (ns)": ("most", 9),
}
"""Columns that are shown, their heading and width; a name comes last."""
_WIDE = ("Med (ns)", "Min (ns)", "Max (ns)")
"""Shown only where there is room."""
_NAMES = ("Name", "Operation")
_TIME, _SIZE = "Total Time (ns)", "Total (MB)"

Cells = tuple[Cell, ...]


def kernel_rows(profile: Profile, width: int) -> list[Row]:
    """All tables, each sorted by its time or size; or the reason why there is none."""
    rows = _about(profile, width)
    order = {name: index for index, name in enumerate(TABLES)}
    for table in sorted(profile.tables.values(), key=lambda each: order.get(each.name, len(order))):
        if table.rows:
            rows += [(("", "text"),), *_table(table, width)]
    return rows


def absent_rows(*, live: bool, width: int) -> list[Row]:
    """A session that says nothing of a profile."""
    texts = ["this session has no profile"]
    if live:
        texts = [
            "no profile yet: a workload of gpuwatch's own profiles some steps after its last one"
        ]
    else:
        texts.append(
            "gpuwatch's own workloads profile some steps after the timed window (--profile N); "
            "`gpuwatch import` makes a session of a profile by nsys, ncu or nvprof"
        )
    return [((f" {line}", "text"),) for text in texts for line in wrap(text, width - 2, 3)]


def _about(profile: Profile, width: int) -> list[Row]:
    tool = " ".join(filter(None, (clean(profile.tool), clean(profile.version or ""))))
    if profile.steps is None:
        what = f"imported from {tool}"
    else:
        steps = f"{profile.steps:,} step{'' if profile.steps == 1 else 's'}"
        what = f"{tool}, {steps} after the timed window"
        if profile.step_seconds is not None:
            what += f", {milliseconds(profile.step_seconds)} each"
    rows: list[Row] = [((f" {what}", "strong"),)]
    if profile.reason:
        lines = wrap(clean(profile.reason), width - 4, 4)
        rows += [
            ((" ! " if n == 0 else "   ", "warn"), (text, "text")) for n, text in enumerate(lines)
        ]
    for note in profile.notes:
        rows += [((f" {line}", "muted"),) for line in wrap(clean(note), width - 2, 3)]
    return rows


def _table(table: Table, width: int) -> list[Row]:
    shown = [
        column
        for column in table.columns
        if column in _COLUMNS and (width >= 120 or column not in _WIDE)
    ]
    name = next((column for column in _NAMES if column in table.columns), None)
    title = TABLES.get(table.name)
    heading = f" {clean(table.name)}" + (f": {title}" if title else "")
    head = "".join(f"{_COLUMNS[column][0]:>{_COLUMNS[column][1]}}" for column in shown)
    rows: list[Row] = [((heading, "strong"),), ((f"{head}  {(name or '').lower()}", "muted"),)]
    for cells in _sorted(table):
        of = dict(zip(table.columns, cells, strict=True))
        figures = "".join(
            pad(_cell(of[column], column), _COLUMNS[column][1], ">") for column in shown
        )
        what = UNKNOWN if name is None or of[name] is None else clean(str(of[name]))
        room = max(20, width - len(figures) - 3)
        rows.append(((figures, "text"), (f"  {short_name(what, room)}", "strong")))
    if table.rows_left_out:
        rows.append(((f"   and {table.rows_left_out:,} more, not kept", "muted"),))
    return rows


def _sorted(table: Table) -> list[Cells]:
    """The largest first; rows whose figure is unknown last."""
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
    return digits(known) if column.endswith("(MB)") else f"{known:,.0f}"
