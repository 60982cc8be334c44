"""Converts sessions that were recorded before samples were kept by minute.

    python -m tests.data.convert SESSION... --to FOLDER

There was no release before; gpuwatch itself reads none of them.
"""

from __future__ import annotations

import argparse
import sqlite3
from contextlib import closing
from pathlib import Path

from gpuwatch.session import schema
from gpuwatch.session.writing.statements import insert
from gpuwatch.session.writing.writer import OpenMinute


def convert(old: Path, new: Path) -> None:
    """Write the session ``old`` to ``new``, which does not exist yet."""
    source = f"file:{old.absolute()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(source, uri=True)) as past, closing(sqlite3.connect(new)) as db:
        past.text_factory = db.text_factory = bytes
        ((channels,),) = past.execute("SELECT count(*) FROM channel")
        for sql in (*schema.TABLES.values(), schema.tick_table(channels)):
            db.execute(sql)
        tables = {
            bytes(name).decode() for (name,) in past.execute("SELECT name FROM sqlite_master")
        }
        for table in schema.TABLES.keys() & tables:
            _copy(past, db, table)
        minute, sql = OpenMinute(channels), insert("tick", channels, "n", "t")
        for n, t, *values in past.execute("SELECT * FROM tick ORDER BY n").fetchall():
            for statement in (*minute.add(n, t, values), (sql, (n, t, *values))):
                db.execute(*statement)
        if past.execute("SELECT 1 FROM meta WHERE key = 'closed'").fetchall():
            for statement in minute.close():
                db.execute(*statement)
        db.execute(f"PRAGMA application_id={schema.APPLICATION_ID}")
        db.execute(f"PRAGMA user_version={schema.VERSION}")
        db.commit()


def _copy(past: sqlite3.Connection, db: sqlite3.Connection, table: str) -> None:
    def columns(of: sqlite3.Connection) -> list[str]:
        return [bytes(row[1]).decode() for row in of.execute(f"PRAGMA table_info({table})")]

    there = columns(past)
    names = [name for name in columns(db) if name in there]
    types = ", ".join(f"typeof({name})" for name in names)
    listed = ", ".join(names)
    for row in past.execute(f"SELECT {listed}, {types} FROM {table}"):
        kinds = row[len(names) :]
        marks = ", ".join("CAST(? AS TEXT)" if kind == b"text" else "?" for kind in kinds)
        db.execute(f"INSERT INTO {table} ({listed}) VALUES ({marks})", row[: len(names)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sessions", nargs="+", type=Path)
    parser.add_argument("--to", required=True, type=Path)
    arguments = parser.parse_args()
    arguments.to.mkdir(parents=True, exist_ok=True)
    for session in arguments.sessions:
        convert(session, arguments.to / session.name)


if __name__ == "__main__":
    main()
