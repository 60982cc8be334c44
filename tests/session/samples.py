"""The samples of a session as rows."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.writing.statements import Row, insert
from gpuwatch.session.writing.writer import OpenMinute


def rows_of(reader: SessionReader, channels: Sequence[int] = ()) -> list[tuple[float | None, ...]]:
    """``(t, value, ...)`` of each sample, a value for each of ``channels``; ``None`` is unknown."""
    read = reader.samples(channels)
    known: list[list[float | None]] = [
        [None if value != value else value for value in each] for each in read.values
    ]
    return list(zip(read.t, *known, strict=True))


def times_of(reader: SessionReader) -> list[int]:
    """The time of each sample, in nanoseconds."""
    return reader.samples(()).t.tolist()


def fill(path: Path, samples: Iterable[tuple[int, Sequence[float | None]]]) -> None:
    """Give the session these samples, ``(t, values)``, in place of its own."""
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        ((channels,),) = db.execute("SELECT count(*) FROM channel")
        for table in ("tick", "minute", "sample"):
            db.execute(f"DELETE FROM {table}")
        sql, minute = insert("tick", channels, "n", "t"), OpenMinute(channels)
        open_: list[Row] = []
        for n, (t, values) in enumerate(samples):
            if rows := minute.add(n, t, values):
                open_.clear()
            for row in rows:
                db.execute(*row)
            open_.append((sql, (n, t, *values)))
        for row in open_:
            db.execute(*row)
