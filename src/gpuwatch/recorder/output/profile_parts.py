"""A profile comes in several step lines, each a part of a table; here they become one again."""

from __future__ import annotations

from collections.abc import Mapping

from gpuwatch.core.models import JSON, mapping

MOST_TABLES = 20
MOST_ROWS = 1_000
"""Rows of a table that are kept; the others are counted."""

_OF_A_TABLE = ("table", "columns", "rows", "rows_left_out")


def add_part(profile: Mapping[str, JSON], part: Mapping[str, JSON]) -> dict[str, JSON]:
    """``profile`` with another ``profile`` event: what it says last holds, and rows are appended.

    A part whose columns are not those of its table starts the table anew.
    """
    tables = dict(mapping(profile.get("tables")))
    name, columns, rows = (part.get(key) for key in ("table", "columns", "rows"))
    if (
        isinstance(name, str)
        and isinstance(columns, list)
        and isinstance(rows, list)
        and (name in tables or len(tables) < MOST_TABLES)
    ):
        before = tables.get(name)
        if before is None or before["columns"] != columns:
            before = {"rows": [], "rows_left_out": 0}
        together = [*before["rows"], *rows]
        told = part.get("rows_left_out")
        left_out = before["rows_left_out"] + (told if isinstance(told, int) else 0)
        tables[name] = {
            "columns": columns,
            "rows": together[:MOST_ROWS],
            "rows_left_out": left_out + len(together[MOST_ROWS:]),
        }
    said = {key: value for key, value in part.items() if key not in _OF_A_TABLE}
    return {**profile, **said, "tables": tables}
