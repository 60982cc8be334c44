"""What was committed to a session since a copy of it was made. Reads the file, and never writes."""

from __future__ import annotations

import os
from pathlib import Path

from gpuwatch.core.models import JSON
from gpuwatch.session import schema
from gpuwatch.session.mirror import tables
from gpuwatch.session.mirror.content import row_digest
from gpuwatch.session.mirror.cursor import (
    Cursor,
    Piece,
    keyed_rows,
    log_pieces,
    session_id,
    without,
)
from gpuwatch.session.reading.open import open_session
from gpuwatch.session.reading.parsed import bytes_of
from gpuwatch.session.reading.status import writer_alive

MOST_ROWS, MOST_BYTES = 5_000, 1 << 20
"""Of one batch: what is read at once holds up a recorder's commit."""
_BYTES_OF_NUMBER = 12
_LOCK_MILLISECONDS = 200
"""Longest wait for a recorder's commit; then the file is read a little later."""
_LOOK_AT_LOG = 10_000
"""Lines after which the log is searched for dropped ones: a recorder drops 20,000 or 3 MiB."""


class Changes:
    """One session file, read piece by piece."""

    def __init__(self, path: Path, cursor: Cursor | None) -> None:
        """``cursor``: of the copy; ``None``: there is none.

        Raises:
            GpuwatchError: the file cannot be read.
        """
        self.path = path
        self._opened = open_session(path, writer_alive)
        self.version = identity(path)
        """Which file it is, if its name is given to another."""
        self.cursor = cursor
        self._read: JSON = None
        """The version of its content that was read last."""
        self._lines = _LOOK_AT_LOG
        """Lines since the log was searched."""
        self._known: dict[str, list[tables.Row]] = {}
        """The rows of keyed tables when they were last compared."""
        self._is_closed = False
        self.more = True
        """Whether there is more than the last batch had room for."""
        self.closed = False
        """Whether its recorder has closed it, so that nothing more comes."""

    @property
    def replaced(self) -> bool:
        """Whether the file has been removed, or another stands in its place."""
        return identity(self.path) != self.version

    def read(self, *, last: bool = False) -> tables.Batch | None:
        """The next changes; ``None``: there are none. ``last``: nobody writes it any more, so that
        nothing may be left out.

        Raises:
            GpuwatchError: the file cannot be read.
            sqlite3.Error: it cannot be read just now, or is damaged.
        """
        connection = self._opened.connection
        connection.execute(f"PRAGMA busy_timeout={_LOCK_MILLISECONDS}")
        ((version,),) = connection.rows("PRAGMA data_version")
        now = id(connection), version
        if now == self._read and not self.more and not last:
            return None
        connection.execute("BEGIN")
        try:
            batch = self._batch(last=last)
        finally:
            connection.execute("COMMIT")
        self._read = now
        return batch

    def close(self) -> None:
        """Let go of the file."""
        self._opened.close()

    def _batch(self, *, last: bool) -> tables.Batch | None:
        connection = self._opened.connection
        ((version,),) = connection.rows("PRAGMA user_version")
        session = session_id(connection)
        if session is None or version != schema.VERSION:
            self.more = False
            return None
        cursor = self.cursor
        is_new = cursor is None or cursor.session != session
        if cursor is None or is_new:
            cursor = Cursor(session)
        room = _Room()
        channels = connection.rows(
            "SELECT * FROM channel WHERE id >= ? ORDER BY id", (cursor.channels,)
        )
        put, gone, closing = self._keyed(cursor, room)
        rows = {
            table: found
            for table in tables.NUMBERED
            if not room.is_full and (found := self._numbered(table, cursor, room))
        }
        removed = self._removed(cursor, rows.get("log", []), last=last)
        self.more = room.is_full
        if not self.more and closing:
            put.setdefault("meta", []).extend(closing)
        self.closed = not self.more and self._is_closed
        if not (is_new or channels or removed or rows or put or gone):
            return None
        batch = tables.Batch(self.path.name, session, is_new, channels, removed, rows, put, gone)
        cursor.advance(batch)
        self.cursor = cursor
        return batch

    def _keyed(
        self, cursor: Cursor, room: _Room
    ) -> tuple[dict[str, list[tables.Row]], dict[str, list[tables.Key]], list[tables.Row]]:
        """New and changed rows, keys that are gone, and the rows that may only come last."""
        put: dict[str, list[tables.Row]] = {}
        gone: dict[str, list[tables.Key]] = {}
        closing: list[tables.Row] = []
        for table, keys in tables.KEYED.items():
            rows = keyed_rows(self._opened.connection, table)
            if rows == self._known.get(table):
                continue
            known = cursor.keyed[table]
            waiting = False
            if table == "meta":
                self._is_closed = any(row[0] == "closed" for row in rows)
            for row in rows:
                if known.get(row[: len(keys)]) == row_digest([row]):
                    continue
                if table == "meta" and row[0] in tables.CLOSING:
                    closing.append(row)
                elif room.is_full and row[0] != "session":  # with which a copy begins
                    waiting = True
                elif bytes_of(row) <= tables.LONGEST_VALUE:
                    put.setdefault(table, []).append(room.take(row))
            missing = known.keys() - {row[: len(keys)] for row in rows}
            if missing:
                gone[table] = list(missing)
            if not waiting and not closing:
                self._known[table] = rows
        return put, gone, closing

    def _numbered(self, table: str, cursor: Cursor, room: _Room) -> list[tables.Row]:
        """The next rows of a numbered table."""
        n = cursor.last.get(table)
        again = table in tables.REPLACED
        bound = -(1 << 63) if n is None else n if again else n + 1
        rows = self._opened.connection.rows(
            f"SELECT * FROM {table} WHERE n >= ? ORDER BY n LIMIT ?",  # noqa: S608
            (bound, room.rows_of(cursor.channels if again else 1)),
            cut=True,
            most=max(1, room.bytes),
        )
        taken: list[tables.Row] = []
        for row in rows:
            if room.is_full and taken:
                break
            if bytes_of(row) <= tables.LONGEST_VALUE:
                taken.append(room.take(row))
        if again and n is not None:
            newest = [row for row in taken if row[0] == n]
            if newest and row_digest(newest) == cursor.newest.get(table):
                return taken[len(newest) :]
        return taken

    def _removed(self, cursor: Cursor, new: list[tables.Row], *, last: bool) -> list[Piece]:
        """Lines of the log that the copy has and the file has no more."""
        self._lines += len(new)
        if self._lines < _LOOK_AT_LOG and not last:
            return []
        self._lines = 0
        return without(cursor.log, log_pieces(self._opened.connection))


class _Room:
    """How much more a batch may take."""

    def __init__(self) -> None:
        self.rows, self.bytes = MOST_ROWS, MOST_BYTES

    @property
    def is_full(self) -> bool:
        return self.rows <= 0 or self.bytes <= 0

    def rows_of(self, numbers: int) -> int:
        """How many rows of so many numbers."""
        most = self.bytes // (_BYTES_OF_NUMBER * (numbers + 2))
        return max(1, min(self.rows, most))

    def take(self, row: tables.Row) -> tables.Row:
        self.rows -= 1
        self.bytes -= sum(
            len(value) if isinstance(value, (str, bytes)) else _BYTES_OF_NUMBER for value in row
        )
        return row


def identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of a file; ``None`` if it is not there."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
