"""Opening a session file for reading, whatever state its writer left it in.

A file from elsewhere is hostile until checked: it is opened read-only, its tables must be exactly
those of the schema, and sizes are limited.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path

from gpuwatch.errors import GpuwatchError, NewerSchema, NotASession, StorageError
from gpuwatch.session import schema
from gpuwatch.session.beside import journal_of
from gpuwatch.session.limited import Limited, connect

_HEADER = b"SQLite format 3\x00"
_PADDING = 64 << 20
"""Bytes that a copy may lack of what its header promises."""


class Opened:
    """A read-only connection, what had to be done to get it, and how to clean up after it."""

    def __init__(
        self, connection: Limited, notice: str | None = None, folder: str | None = None
    ) -> None:
        self.connection = connection
        self.notice = notice
        self._folder = folder

    def close(self) -> None:
        self.connection.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


CUT = (
    "never closed, and no journal lies beside it: unless SQLite's backup copied it, its last "
    "transaction may be there in part"
)
"""Of a file that was copied alone while it was written: SQLite cannot always see that."""


def open_session(path: Path, writer_alive: Callable[[Limited], bool]) -> Opened:
    """Open ``path`` read-only and check that it is a session.

    After a recorder was killed in mid-transaction the file needs its journal rolled back. If the
    file is ours and its writer dead, that is done in place; otherwise in a private copy.

    Raises:
        NotASession, NewerSchema, StorageError: with what the file is and what helps.
    """
    _check_header(path)
    journal = journal_of(path)
    try:
        opened = _checked(Opened(connect(path, "ro")), path)
        try:
            if journal is None and path.suffix == schema.SUFFIX and _is_cut(opened, writer_alive):
                opened.notice = CUT
        except BaseException:
            opened.close()
            raise
        return opened
    except sqlite3.Error as error:
        if "locked" in str(error):
            raise StorageError(f"{path} is busy: {error}", "try again") from error
        reason = str(error)
    if journal is not None:
        if os.access(path, os.W_OK) and path.stat().st_uid == os.geteuid():
            with contextlib.suppress(sqlite3.Error):
                _recover(path, writer_alive)
                with contextlib.suppress(FileExistsError):
                    # SQLite removes it, and without it the file looks cut.
                    journal.touch(0o600, exist_ok=False)
                return _checked(Opened(connect(path, "ro")), path)
        return _open_copy(
            path, journal, "read from a private copy: its last transaction was cut off"
        )
    if 0 < _lacking(path) <= _PADDING:
        return _open_copy(path, None, "its journal is missing: the last transaction may be lost")
    raise _damaged(path, reason)


def _is_cut(opened: Opened, writer_alive: Callable[[Limited], bool]) -> bool:
    """Whether a file without a journal should have one, as all have from their first commit until
    they are closed."""
    known = {key for (key,) in opened.connection.rows("SELECT key FROM meta LIMIT 1000")}
    return "recorder" in known and "closed" not in known and not writer_alive(opened.connection)


def _damaged(path: Path, reason: str) -> NotASession:
    return NotASession(
        f"{path} is damaged: {reason}",
        "copy it again together with the file of the same name ending in -journal",
    )


def _check_header(path: Path) -> None:
    if path.exists() and not path.is_file() and not path.is_dir():
        raise NotASession(f"{path} is no regular file", "see `gpuwatch sessions`")
    try:
        with path.open("rb") as file:
            head = file.read(100)
    except FileNotFoundError as error:
        raise StorageError(f"no such file: {path}", "see `gpuwatch sessions`") from error
    except IsADirectoryError as error:
        raise NotASession(f"{path} is a folder", "name a session file in it") from error
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error
    if len(head) < 100 or not head.startswith(_HEADER):
        raise NotASession(f"{path} is not a gpuwatch session", "see `gpuwatch sessions`")
    if int.from_bytes(head[68:72], "big") != schema.APPLICATION_ID:
        raise NotASession(
            f"{path} is an SQLite database, but not a gpuwatch session", "see `gpuwatch sessions`"
        )
    if head[18:20] != b"\x01\x01":
        raise NotASession(
            f"{path} was changed by another program: it has a write-ahead log",
            f"sqlite3 {path} 'PRAGMA journal_mode=DELETE'",
        )
    version = int.from_bytes(head[60:64], "big")
    if version > schema.VERSION:
        raise NewerSchema(
            f"{path} has session schema {version}; this gpuwatch reads up to {schema.VERSION}",
            "read it with a newer one: pip install --upgrade gpuwatch",
        )


def _checked(opened: Opened, path: Path) -> Opened:
    """Refuse every table, index, view or trigger that the schema does not name."""
    try:
        ((version,),) = opened.connection.rows("PRAGMA user_version")
        most = len(schema.tables(version)) + 2
        rows = opened.connection.rows(
            "SELECT type, name, sql FROM sqlite_master LIMIT ?", (most + 1,)
        )
    except BaseException:
        opened.close()
        raise
    good = (
        len(rows) == most
        and all(kind == "table" for kind, _, _ in rows)
        and all(schema.is_expected(str(name), str(sql), version) for _, name, sql in rows)
    )
    if not good:
        opened.close()
        raise NotASession(
            f"{path} does not have the tables of a gpuwatch session",
            "it may have been tampered with",
        )
    return opened


def roll_back(path: Path) -> None:
    """Undo what a writer that is gone left half written; nothing where ``path`` is no session.

    Raises:
        OSError: it cannot be written.
    """
    try:
        _check_header(path)  # of anything else SQLite would throw the journal away
        journal_of(path)
        _recover(path, lambda _: False)
    except sqlite3.OperationalError as error:
        raise OSError(errno.EIO, str(error), str(path)) from error
    except (GpuwatchError, sqlite3.DatabaseError):
        pass


def _recover(path: Path, writer_alive: Callable[[Limited], bool]) -> None:
    """Let SQLite roll the journal back, unless a living writer will do so itself."""
    connection = connect(path, "rw")
    try:
        if not writer_alive(connection):
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("COMMIT")
    finally:
        connection.close()


def _open_copy(path: Path, journal: Path | None, notice: str) -> Opened:
    folder = tempfile.mkdtemp(prefix="gpuwatch-")
    try:
        copied = Path(folder) / "session.gpuwatch"
        _copy(path, copied)
        if journal is not None:
            _copy(journal, Path(f"{copied}-journal"))
        else:
            os.truncate(copied, copied.stat().st_size + max(0, _lacking(copied)))
        connection = connect(copied, "rw")
        try:
            connection.rows("SELECT name FROM sqlite_master LIMIT 1")
        finally:
            connection.close()
        return _checked(Opened(connect(copied, "ro"), notice, folder), path)
    except sqlite3.Error as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise _damaged(path, str(error)) from error
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise StorageError(f"cannot copy {path}: {error.strerror}") from error
    except GpuwatchError:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _copy(source: Path, target: Path) -> None:
    """Copy what is in a file; where it has holes, so has the copy."""
    with source.open("rb") as old, target.open("xb") as new:
        size, at = os.fstat(old.fileno()).st_size, 0
        while at < size:
            try:
                at = os.lseek(old.fileno(), at, os.SEEK_DATA)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
                break  # nothing but a hole is left
            end = os.lseek(old.fileno(), at, os.SEEK_HOLE)
            while at < end and (piece := os.pread(old.fileno(), min(1 << 20, end - at), at)):
                os.pwrite(new.fileno(), piece, at)
                at += len(piece)
            if at < end:
                break  # it became shorter meanwhile
        new.truncate(size)


def _lacking(path: Path) -> int:
    """Bytes that a file lacks of the length that its header promises."""
    with path.open("rb") as file:
        head = file.read(100)
    size = int.from_bytes(head[16:18], "big")
    page = 65536 if size == 1 else size
    return page * int.from_bytes(head[28:32], "big") - path.stat().st_size
