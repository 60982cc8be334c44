"""Mutations of what stands in the tables: a file that SQLite finds in order."""

from __future__ import annotations

import contextlib
import json
import random
import sqlite3
from pathlib import Path

from tests.fuzz import values

_TABLES = ("meta", "device", "channel", "change", "step", "log", "event", "fact", "gpu_process",
           "process", "process_use", "tick", "minute", "sample")  # fmt: skip
_JSON = (("meta", "value"), ("meta", "value"), ("meta", "value"), ("device", "attributes"),
         ("fact", "value"), ("step", "phases"), ("step", "partial"))  # fmt: skip
_VERBS = ("cells", "column", "json", "json", "json", "gone", "twice", "clock", "many", "texts")


def mutate(rng: random.Random, path: Path) -> str:
    """Change the file in place; says how."""
    Path(f"{path}-journal").unlink(missing_ok=True)
    file = sqlite3.connect(path)
    try:
        told = []
        for _ in range(rng.choice((1, 1, 2, 5))):
            verb = rng.choice(_VERBS)
            with contextlib.suppress(sqlite3.Error, OverflowError), file:
                told.append(f"{verb} {_done(rng, file, verb)}")
        return ", ".join(told)
    finally:
        file.close()


def _done(rng: random.Random, file: sqlite3.Connection, verb: str) -> str:
    table = rng.choice(_TABLES)
    columns = [row[1] for row in file.execute(f"PRAGMA table_info({table})")]
    if not columns:
        return "no such table"
    column = rng.choice(columns)
    if verb == "json":
        return _json(rng, file)
    if verb == "texts":
        return _texts(rng, file)
    key = _key(rng, file, table, columns)
    if verb == "cells":
        value = values.cell(rng)
        file.execute(f"UPDATE OR REPLACE {table} SET {column} = ? WHERE {key}", (value,))
        return f"{table}.{column} = {str(value)[:40]!r}"
    if verb == "column":
        value = values.cell(rng)
        file.execute(f"UPDATE OR IGNORE {table} SET {column} = ?", (value,))
        return f"{table}.{column} = {str(value)[:40]!r}"
    if verb == "gone":
        where = rng.choice((key, "1"))
        file.execute(f"DELETE FROM {table} WHERE {where}")
        return f"{table} {where[:60]}"
    if verb == "twice":
        free = [f"-{each}" if each == columns[0] else each for each in columns]
        file.execute(f"INSERT OR REPLACE INTO {table} SELECT {', '.join(free)} FROM {table}")
        return table
    if verb == "clock":
        how = rng.choice(("-t", "t * 1000003", "0", "t + 9000000000000000000", "t % 7", "1.5 * t"))
        file.execute(f"UPDATE OR IGNORE {table} SET t = {how}")
        return f"{table} {how}"
    row = ", ".join(f"{n} + i" if each in ("n", "id", "t") else f"'{each}' || i"
                    for n, each in enumerate(columns))  # fmt: skip
    count = rng.choice((100, 3000))
    file.execute(
        f"INSERT OR REPLACE INTO {table} WITH RECURSIVE a(i) AS "
        f"(SELECT 0 UNION ALL SELECT i + 1 FROM a WHERE i < {count}) SELECT {row} FROM a"
    )
    return f"{table} {count}"


def _key(rng: random.Random, file: sqlite3.Connection, table: str, columns: list[str]) -> str:
    found = file.execute(f"SELECT quote({columns[0]}) FROM {table} ORDER BY random()").fetchall()
    return f"{columns[0]} = {rng.choice(sorted(found))[0]}" if found else "0"


def _json(rng: random.Random, file: sqlite3.Connection) -> str:
    """One place in one text of JSON."""
    table, column = rng.choice(_JSON)
    key = "n" if table == "step" else {"meta": "key", "device": "id"}.get(table, "key")
    sql = f"SELECT {key}, {column} FROM {table} WHERE {column} IS NOT NULL ORDER BY 1"
    found = file.execute(sql).fetchall()
    if not found:
        return "none"
    name, text = rng.choice(found)
    with contextlib.suppress(ValueError, TypeError, RecursionError):
        text = json.dumps(values.spoilt(rng, json.loads(text)))
    if rng.random() < 0.05:
        text = rng.choice((text[:-1], "[" * 100_000, '{"a":' * 5000 + "1" + "}" * 5000, "9" * 9000))
    file.execute(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", (text, name))
    return f"{table} {name}: {text[:200]}"


def _texts(rng: random.Random, file: sqlite3.Connection) -> str:
    """The same text in every column of text, and in every text of JSON."""
    text = values.text(rng)
    for table in _TABLES:
        for _, column, kind, *_ in file.execute(f"PRAGMA table_info({table})").fetchall():
            if kind == "TEXT" and (table, column) not in _JSON and column not in ("id", "key"):
                file.execute(f"UPDATE OR IGNORE {table} SET {column} = ?", (text,))
    for table, column in sorted(set(_JSON)):
        key = {"meta": "key", "device": "id", "fact": "key"}.get(table, "n")
        sql = f"SELECT {key}, {column} FROM {table}"
        for name, old in file.execute(sql).fetchall():
            with contextlib.suppress(ValueError, TypeError, RecursionError):
                new = json.dumps(_replaced(json.loads(old), text))
                file.execute(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", (new, name))
    return text[:40]


def _replaced(value: object, text: str) -> object:
    if isinstance(value, str):
        return text
    if isinstance(value, list):
        return [_replaced(each, text) for each in value]
    if isinstance(value, dict):
        return {key: _replaced(each, text) for key, each in value.items()}
    return value
