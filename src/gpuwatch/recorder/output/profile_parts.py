"""Joins a profile from several step lines, each with a part of a table."""

from __future__ import annotations

from collections.abc import Mapping

from gpuwatch.core.models import JSON, mapping

MOST_TABLES = 20
MOST_ROWS = 1_000
"""Most rows kept of a table; the others are counted."""

_OF_A_TABLE = ("table", "columns", "rows", "rows_left_out")


def add_part(profile: Mapping[str, JSON], part: Mapping[str, JSON]) -> dict[str, JSON]:
    """``profile`` with another ``profile`` event: later values win, and rows are appended.

    A part with different columns starts its table anew.
    """
    tables = dict(mapping(profile.get("tables")))
    name, columns, rows = (part.get(key) for key in ("table", "columns", "rows"))
    if (
        isinstance(name, str)
        and isinstance(columns, list)
        and isinstance(rows, list)
        and (name in tables or len(tables) < MOST_TABLES)
    ):
        table = tables.get(name)
        if table is None or table["columns"] != columns:
            table = {"rows": [], "rows_left_out": 0}
        all_rows = [*table["rows"], *rows]
        part_left_out = part.get("rows_left_out")
        left_out = table["rows_left_out"] + (part_left_out if isinstance(part_left_out, int) else 0)
        tables[name] = {
            "columns": columns,
            "rows": all_rows[:MOST_ROWS],
            "rows_left_out": left_out + len(all_rows[MOST_ROWS:]),
        }
    scalars = {key: value for key, value in part.items() if key not in _OF_A_TABLE}
    return {**profile, **scalars, "tables": tables}
