"""Mutations of the schema: what else SQLite would run when a table is read."""

from __future__ import annotations

import contextlib
import random
import sqlite3
from pathlib import Path

ENDLESS = "WITH RECURSIVE a(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM a) SELECT i FROM a"
_MORE = (
    f"CREATE VIEW more AS {ENDLESS}",
    "CREATE TRIGGER more AFTER INSERT ON log BEGIN DELETE FROM step; END",
    "CREATE TEMP TRIGGER more AFTER INSERT ON log BEGIN DELETE FROM step; END",
    "CREATE TABLE more (a)",
    "CREATE INDEX more ON log (t)",
    "CREATE INDEX more ON log (abs(randomblob(1000000000)))",
    "CREATE VIRTUAL TABLE more USING fts5(a)",
    "CREATE VIRTUAL TABLE more USING rtree(a, b, c)",
    "CREATE TABLE more (a, b AS (zeroblob(1000000000)))",
    "CREATE TABLE more (a PRIMARY KEY) WITHOUT ROWID",
    "CREATE TABLE sqlite_more (a)",
    "ANALYZE",
    "ALTER TABLE log ADD COLUMN more AS (zeroblob(1000000000))",
    "ALTER TABLE log RENAME TO log_",
    "ALTER TABLE tick ADD COLUMN c99 DEFAULT (1)",
    "ALTER TABLE tick ADD COLUMN c99",
    "DROP TABLE event",
    "DROP TABLE tick",
    "PRAGMA application_id = 1",
    "PRAGMA user_version = 0",
    "PRAGMA user_version = -1",
    "PRAGMA user_version = 1",
    "PRAGMA user_version = 3",
    "PRAGMA user_version = 4",
    "PRAGMA user_version = 5",
    "PRAGMA journal_mode = WAL",
    "PRAGMA auto_vacuum = 1; VACUUM",
    "PRAGMA encoding = 'UTF-16'; VACUUM",
)
_INSTEAD = (
    f"CREATE VIEW {{0}} AS {ENDLESS}",
    "CREATE VIEW {0} AS SELECT load_extension('/tmp/x.so') AS n",
    "CREATE VIEW {0} AS SELECT writefile('/tmp/x', 'x') AS n",
    "CREATE VIEW {0} AS SELECT * FROM pragma_journal_mode",
    "CREATE VIRTUAL TABLE {0} USING fts5(n, t, text)",
    "CREATE TABLE {0} (n INTEGER PRIMARY KEY, t AS (zeroblob(1000000000)))",
    "CREATE TABLE {0} (n INTEGER PRIMARY KEY)",
    "CREATE TABLE {0} (n, t) WITHOUT ROWID",
    "ATTACH '/tmp/x' AS {0}",
    "{0}",
    "",
    "\x00",
)


def mutate(rng: random.Random, path: Path) -> str:
    """Change the file in place; says how."""
    Path(f"{path}-journal").unlink(missing_ok=True)
    file = sqlite3.connect(path, isolation_level=None)
    try:
        with contextlib.suppress(sqlite3.Error):
            if rng.random() < 0.5:
                sql = rng.choice(_MORE)
                file.executescript(sql)
                return sql
            return _rewritten(rng, file)
        return "nothing"
    finally:
        file.close()
        for left in ("-wal", "-shm"):
            Path(f"{path}{left}").unlink(missing_ok=True)


def _rewritten(rng: random.Random, file: sqlite3.Connection) -> str:
    """A row of ``sqlite_master`` that says something else."""
    names = [row[0] for row in file.execute("SELECT name FROM sqlite_master ORDER BY 1")]
    name, other = rng.choice(names), rng.choice(names)
    file.execute("PRAGMA writable_schema = ON")
    kind = rng.randrange(6)
    if kind == 0:
        sql, values = "sql = ?", (rng.choice(_INSTEAD).format(name),)
    elif kind == 1:
        sql, values = "rootpage = ?", (rng.choice((0, 1, 2, 99, -1, 2**40)),)
    elif kind == 2:
        sql, values = "rootpage = (SELECT rootpage FROM sqlite_master WHERE name = ?)", (other,)
    elif kind == 3:
        sql, values = "type = ?", (rng.choice(("view", "index", "trigger", "TABLE")),)
    elif kind == 4:
        sql, values = "name = ?", (rng.choice((other, "sqlite_autoindex_log_1", "log\x00", "")),)
    else:
        sql, values = "sql = replace(sql, 'INTEGER', ?)", (rng.choice(("TEXT", "BLOB", "")),)
    if rng.random() < 0.3 and kind == 0:
        sql, values = "sql = ?, type = 'view'", values
    file.execute(f"UPDATE sqlite_master SET {sql} WHERE name = ?", (*values, name))
    file.execute("PRAGMA writable_schema = OFF")
    return f"{name}: {sql} {values}"
