"""Writes the changes of a session into a copy. What arrives may come from anybody."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpuwatch.core.errors import NotASession, StorageError
from gpuwatch.core.metrics import Method
from gpuwatch.session.mirror import tables
from gpuwatch.session.mirror.content import digest_of
from gpuwatch.session.mirror.cursor import Cursor, cursor_of, id_in
from gpuwatch.session.reading import limits
from gpuwatch.session.reading.open import open_session
from gpuwatch.session.study import study_folder
from gpuwatch.session.writing import statements
from gpuwatch.session.writing.store import SessionStore
from gpuwatch.telemetry.base import Channel

LARGEST = 2 << 30
"""Bytes of the largest session that is copied."""
_MOST_SET_ASIDE = 20
_PATIENCE = 10.0
"""Seconds that a reader may hold the file."""
_LONGEST_ID = 64


class Copy:
    """The copy of one session file, which may not exist yet."""

    def __init__(self, path: Path) -> None:
        """
        Raises:
            StorageError: it cannot be read.
        """
        self.path = path
        self._store: SessionStore | None = None
        self.cursor = self._found()

    def _found(self) -> Cursor | None:
        """The cursor of the file; one that is damaged, or no session, is set aside."""
        if not self._is_there():
            return None
        try:
            with contextlib.closing(open_session(self.path, lambda _: False)) as opened:
                return cursor_of(opened.connection)
        except sqlite3.OperationalError as error:
            raise StorageError(f"cannot read {self.path}: {error}", "try again") from error
        except (NotASession, sqlite3.Error) as error:
            try:
                self._set_aside()
            except tables.BadRows:
                raise StorageError(str(error), f"remove {self.path}") from error
            return None

    def _is_there(self) -> bool:
        """
        Raises:
            StorageError: something else has its name.
        """
        try:
            status = self.path.lstat()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StorageError(f"cannot read {self.path}: {error.strerror}") from error
        if not stat.S_ISREG(status.st_mode):
            raise StorageError(f"{self.path} is not a regular file", "move it elsewhere")
        return True

    def take(self, batch: tables.Batch) -> None:
        """Write ``batch`` in one transaction.

        Raises:
            BadRows: no recorder writes such rows; nothing of them is in the file.
            StorageError: the file cannot be written.
        """
        if not 0 < len(batch.session) <= _LONGEST_ID:
            raise tables.BadRows("a session whose id is too long")
        cursor = Cursor(batch.session) if batch.new else self.cursor
        if cursor is None or cursor.session != batch.session:
            raise tables.BadRows(f"rows of another session in {batch.file}")
        channels = _channels(batch.channels, cursor.channels)
        count = cursor.channels + len(channels)
        _check(batch, cursor, count)
        if batch.new:
            self._begin(batch, channels)
        with _writing(self.path):
            self._write([*_statements(batch, count)])
        cursor.advance(batch)
        self.cursor = cursor
        if "closed" in batch.meta and self._store is not None:
            self._store.close()
            self._store = None

    def _write(self, rows: list[statements.Row]) -> None:
        """Write in one transaction, after a reader that holds the file has let go of it."""
        store = self._opened()
        if os.stat(self.path).st_size > LARGEST:
            raise tables.BadRows(f"{self.path.name} is larger than {LARGEST >> 30} GiB")
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                return store.write(rows)
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise

    def _begin(self, batch: tables.Batch, channels: Sequence[tuple[Channel, str, str]]) -> None:
        """Create the file, after a session that it had before was set aside."""
        session = batch.meta.get("session")
        if session is None:
            raise tables.BadRows(f"a session without its id in {batch.file}")
        if self.cursor is not None and self.cursor.session == batch.session:
            raise tables.BadRows(f"a session that begins a second time in {batch.file}")
        if self._is_there():
            self._opened().close()
            self._store = None
            self._set_aside()
        row = "INSERT INTO meta VALUES (?, ?)", ("session", session)
        self._store = SessionStore.create(self.path, channels, [row])

    def _set_aside(self) -> None:
        if os.path.lexists(f"{self.path}.lost-{_MOST_SET_ASIDE}"):
            raise tables.BadRows(f"{self.path.name} begins anew again and again")
        try:
            study_folder.set_aside(self.path)
        except OSError as error:
            raise StorageError(f"cannot write {self.path}: {error.strerror}") from error

    def _opened(self) -> SessionStore:
        if self._store is None:
            if not self._is_there():
                raise StorageError(f"{self.path} was deleted", "it is fetched again")
            self._store = SessionStore.reopen(self.path)
        return self._store

    def digest(self) -> str | None:
        """The digest of its content; ``None``: it is not there, or cannot be read."""
        self.close()
        with contextlib.suppress(NotASession, StorageError, sqlite3.Error):
            return digest_of(self.path) if self._is_there() else None
        return None

    def drop(self) -> None:
        """Remove the file."""
        self.close()
        for path in (self.path, self.path.with_name(f"{self.path.name}-journal")):
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
        self.cursor = None

    def close(self) -> None:
        """Let go of the file; one that may still grow keeps its journal."""
        if self._store is not None:
            self._store.close(whole=False)
            self._store = None


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Tells rows that SQLite refuses from a file that cannot be written."""
    try:
        yield
    except (sqlite3.OperationalError, OSError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StorageError(f"cannot write {path}: {reason}", "free some space") from error
    except (sqlite3.Error, OverflowError, UnicodeEncodeError) as error:
        raise tables.BadRows(f"rows that do not fit into {path.name}: {error}") from error


def _channels(rows: Sequence[tables.Row], start: int) -> list[tuple[Channel, str, str]]:
    """Rows of ``channel`` as a store takes them."""
    tables.check("channel", rows, 0)
    if start + len(rows) > limits.CHANNELS:
        raise tables.BadRows("too many channels")
    found: list[tuple[Channel, str, str]] = []
    for index, (id_, device, metric, unit, kind, method, source, reason) in enumerate(rows, start):
        if id_ != index:
            raise tables.BadRows("channels that are not numbered one by one")
        try:
            found.append((Channel(device, metric, Method(method), source, reason), unit, kind))
        except ValueError as error:
            raise tables.BadRows("a channel with an unknown method") from error
    return found


def _check(batch: tables.Batch, cursor: Cursor, channels: int) -> None:
    """Raise :class:`BadRows` for what no recorder writes into this file."""
    for table, rows in batch.rows.items():
        if table not in tables.NUMBERED or not rows:
            raise tables.BadRows("numbered rows of a table that has none")
        tables.check(table, rows, channels)
    for table, rows in batch.put.items():
        if table not in tables.KEYED or not rows:
            raise tables.BadRows("rows with a key of a table that has none")
        tables.check(table, rows, channels)
        keys = {row[: len(tables.KEYED[table])] for row in rows}
        if len(keys | cursor.keyed[table].keys()) > tables.MOST_KEYS[table]:
            raise tables.BadRows(f"too many rows in {table}")
    for table, gone in batch.gone.items():
        _check_keys(table, gone)
    meta = batch.meta
    if tables.LOCAL & meta.keys():
        raise tables.BadRows("a process of another machine in meta")
    if "session" in meta and id_in(meta["session"]) != batch.session:
        raise tables.BadRows(f"the id of another session in {batch.file}")


def _check_keys(table: str, keys: Sequence[tables.Key]) -> None:
    if table not in tables.KEYED:
        raise tables.BadRows("keys of a table that has none")
    if any(len(key) != len(tables.KEYED[table]) for key in keys):
        raise tables.BadRows(f"a key of {table} of another length")
    if any(type(part) not in (int, str) for key in keys for part in key):
        raise tables.BadRows(f"a key of another type in {table}")
    if table == "meta" and ("session",) in keys:
        raise tables.BadRows("a session without its id")


def _statements(batch: tables.Batch, channels: int) -> Iterator[statements.Row]:
    for row in () if batch.new else batch.channels:
        yield f"ALTER TABLE tick ADD COLUMN c{row[0]}", ()
        yield "INSERT INTO channel VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row
    for first, last in batch.removed:
        yield "DELETE FROM log WHERE n >= ? AND n <= ?", (first, last)
    for table, rows in batch.rows.items():
        verb = "INSERT OR REPLACE" if table in tables.REPLACED else "INSERT"
        yield from _inserted(verb, table, rows, channels)
        if table == "minute":
            yield "DELETE FROM tick WHERE n <= ?", (rows[-1][1],)
    for table, keys in batch.gone.items():
        condition = " AND ".join(f"{key} = ?" for key in tables.KEYED[table])
        yield from ((f"DELETE FROM {table} WHERE {condition}", key) for key in keys)  # noqa: S608
    for table, rows in batch.put.items():
        yield from _inserted("INSERT OR REPLACE", table, rows, channels)


def _inserted(
    verb: str, table: str, rows: Sequence[tables.Row], channels: int
) -> Iterator[statements.Row]:
    marks = ", ".join("?" * tables.width(table, channels))
    return ((f"{verb} INTO {table} VALUES ({marks})", row) for row in rows)
