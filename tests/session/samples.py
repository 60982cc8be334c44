"""The samples of a session as rows, and the numbers of its steps."""

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


def step_numbers(reader: SessionReader) -> list[int]:
    """The number of each step, in the order in which they were reported."""
    return [
        number
        for row in reader.all_steps()
        for number in range(row.step - row.count + 1, row.step + 1)
    ]


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
