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
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from gpuwatch.errors import GpuwatchError, NewerSchema, NotASession, StorageError
from gpuwatch.session import schema

_HEADER = b"SQLite format 3\x00"
_LONGEST_VALUE = 16 * 1024 * 1024


class Opened:
    """A read-only connection, what had to be done to get it, and how to clean up after it."""

    def __init__(
        self, connection: sqlite3.Connection, notice: str | None = None, folder: str | None = None
    ) -> None:
        self.connection = connection
        self.notice = notice
        self._folder = folder

    def close(self) -> None:
        self.connection.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def open_session(path: Path, writer_alive: Callable[[sqlite3.Connection], bool]) -> Opened:
    """Open ``path`` read-only and check that it is a session.

    After a recorder was killed in mid-transaction the file needs its journal rolled back. If the
    file is ours and its writer dead, that is done in place; otherwise in a private copy.

    Raises:
        NotASession, NewerSchema, StorageError: with what the file is and what helps.
    """
    _check_header(path)
    try:
        return _checked(Opened(_read_only(path)), path)
    except sqlite3.Error as error:
        if "locked" in str(error):
            raise StorageError(f"{path} is busy: {error}", "try again") from error
    journal = Path(f"{path}-journal")
    if journal.exists():
        if os.access(path, os.W_OK) and path.stat().st_uid == os.geteuid():
            with contextlib.suppress(sqlite3.Error):
                _recover(path, writer_alive)
                return _checked(Opened(_read_only(path)), path)
        return _open_copy(path, "read from a private copy: its last transaction was cut off")
    return _open_copy(path, "its journal is missing: the last transaction may be lost")


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
    version = int.from_bytes(head[60:64], "big")
    if version > schema.VERSION:
        raise NewerSchema(
            f"{path} has session schema {version}; this gpuwatch reads up to {schema.VERSION}",
            "open it with the gpuwatch that wrote it, or a newer one",
        )


def _read_only(path: Path) -> sqlite3.Connection:
    uri = f"file:{quote(str(path.resolve()))}?mode=ro"
    connection = sqlite3.connect(uri, uri=True, timeout=2.0, check_same_thread=False)
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.execute("PRAGMA cell_size_check=ON")
    connection.execute("PRAGMA mmap_size=0")
    if sys.version_info >= (3, 11):
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    return connection


def _checked(opened: Opened, path: Path) -> Opened:
    """Refuse every table, index, view or trigger that the schema does not name."""
    try:
        ((version,),) = opened.connection.execute("PRAGMA user_version").fetchall()
        most = len(schema.tables(version)) + 2
        rows = opened.connection.execute(
            "SELECT type, name, sql FROM sqlite_master LIMIT ?", (most + 1,)
        ).fetchall()
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
        _recover(path, lambda _: False)
    except sqlite3.OperationalError as error:
        raise OSError(errno.EIO, str(error), str(path)) from error
    except (GpuwatchError, sqlite3.DatabaseError):
        pass


def _recover(path: Path, writer_alive: Callable[[sqlite3.Connection], bool]) -> None:
    """Let SQLite roll the journal back, unless a living writer will do so itself."""
    connection = sqlite3.connect(path, timeout=2.0)
    try:
        connection.execute("PRAGMA trusted_schema=OFF")
        if not writer_alive(connection):
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("COMMIT")
    finally:
        connection.close()


def _open_copy(path: Path, notice: str) -> Opened:
    folder = tempfile.mkdtemp(prefix="gpuwatch-")
    try:
        copy = Path(folder) / "session.gpuwatch"
        shutil.copyfile(path, copy)
        journal = Path(f"{path}-journal")
        if journal.exists():
            shutil.copyfile(journal, f"{copy}-journal")
        else:
            _pad(copy)
        connection = sqlite3.connect(copy)
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        finally:
            connection.close()
        return _checked(Opened(_read_only(copy), notice, folder), path)
    except sqlite3.Error as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise NotASession(
            f"{path} is damaged: {error}",
            "copy it again together with the file of the same name ending in -journal",
        ) from error
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise StorageError(f"cannot copy {path}: {error.strerror}") from error
    except GpuwatchError:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _pad(copy: Path) -> None:
    """Give a file that was cut in mid-transaction the length that its header promises."""
    with copy.open("r+b") as file:
        head = file.read(100)
        size = int.from_bytes(head[16:18], "big")
        page = 65536 if size == 1 else size
        pages = int.from_bytes(head[28:32], "big")
        length = page * pages
        if copy.stat().st_size < length <= copy.stat().st_size + 64 * 1024 * 1024:
            file.truncate(length)
