"""Opens a session file for reading, whatever state its writer left it in.

A file from elsewhere counts as hostile until checked: it is opened read-only, its tables must match
the schema exactly, and sizes are limited.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sqlite3
import stat
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from gpuwatch.core.errors import GpuwatchError, NewerSchema, NotASession, StorageError
from gpuwatch.core.installation import update_command
from gpuwatch.core.paths import read_regular
from gpuwatch.core.text import shell
from gpuwatch.session import schema
from gpuwatch.session.reading.bounded_connection import BoundedConnection, connect
from gpuwatch.session.reading.journal import check, is_movable, is_shared, journal_of
from gpuwatch.session.reading.private_copy import copy

_HEADER = b"SQLite format 3\x00"
_PADDING = 64 << 20
"""Bytes by which a copy may be shorter than its header says."""
_RENEW_SECONDS, _REST = 1.0, 20
"""How long a private copy of a growing session is used: at least the seconds, and at least this
multiple of the time that copying took."""


class OpenedSession:
    """A read-only connection, a notice on how it was obtained, and its cleanup."""

    def __init__(
        self,
        connection: BoundedConnection,
        notice: str | None = None,
        folder: str | None = None,
        renewal: Callable[[], OpenedSession | None] = lambda: None,
    ) -> None:
        self.connection = connection
        self.notice = notice
        self._folder = folder
        self._renewal = renewal
        """Makes a new private copy if the file has changed since."""

    def renew(self) -> None:
        """If this is a private copy and the file has changed since, switch to a new copy.

        Raises:
            NotASession, NewerSchema, StorageError: as :func:`open_session`.
        """
        newer = None if self.connection.in_transaction else self._renewal()
        if newer is not None:
            self.close()
            self.connection, self._folder, self._renewal = (
                newer.connection,
                newer._folder,
                newer._renewal,
            )

    def close(self) -> None:
        self.connection.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


CUT = (
    "never closed, and its journal is missing: unless SQLite's backup copied it, its last "
    "transaction may be incomplete"
)
"""For a file copied without its journal during recording; SQLite cannot always detect that."""
WriterAlive = Callable[[BoundedConnection], bool]


def open_session(path: Path, writer_alive: WriterAlive) -> OpenedSession:
    """Open ``path`` read-only and check that it is a session.

    If a recorder was killed during a transaction, the journal must be rolled back: in place if the
    file is ours and its writer dead, otherwise in a private copy.

    A file that another user can write to is copied first if it has a journal, and the copy is
    checked and read. Without a journal it is read in place, ignoring the files beside it; root
    copies that too, since root could open any device put in its place.

    Raises:
        NotASession, NewerSchema, StorageError: with what the file is and a hint.
    """
    real = _real(path)
    _check_header(real, path)
    journal, shared = _beside(real)
    if shared and (journal is not None or os.geteuid() == 0):
        return _open_copy(path, real, journal, writer_alive)
    if journal is not None:
        check(journal, real, journal)
    try:
        opened = _checked(OpenedSession(connect(real, "ro", alone=shared)), path)
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
        if os.access(real, os.W_OK) and not is_movable(real):
            with contextlib.suppress(sqlite3.Error):
                _recover(real, writer_alive)
                with contextlib.suppress(FileExistsError):
                    # SQLite removes the journal, and without one the file looks cut.
                    journal.touch(0o600, exist_ok=False)
                return _checked(OpenedSession(connect(real, "ro")), path)
        return _open_copy(path, real, journal, writer_alive)
    if 0 < _lacking(real) <= _PADDING:
        return _open_copy(path, real, None, writer_alive)
    raise _damaged(path, reason)


def _real(path: Path) -> Path:
    """Resolve all links. Raises StorageError if one disappears meanwhile."""
    try:
        return Path(os.path.realpath(path))
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error


def _beside(real: Path) -> tuple[Path | None, bool]:
    """The journal of a session, and whether another user can write to either of them."""
    try:
        journal = journal_of(real)
        try:
            return journal, is_shared(real, journal)
        except FileNotFoundError:  # its recorder closed the session just now
            return None, is_shared(real, None)
    except OSError as error:
        raise StorageError(f"cannot read {real}: {error.strerror}") from error


def _is_cut(opened: OpenedSession, writer_alive: WriterAlive) -> bool:
    """Whether a journal is missing: a session has one from its first commit until it is closed."""
    keys = {key for (key,) in opened.connection.rows("SELECT key FROM meta LIMIT 1000")}
    return "recorder" in keys and "closed" not in keys and not writer_alive(opened.connection)


def _damaged(path: Path, reason: str) -> NotASession:
    return NotASession(
        f"{path} is damaged: {reason}",
        "copy it again together with the file of the same name ending in -journal",
    )


def _check_header(real: Path, path: Path) -> None:
    """Check type, size, format and version; errors name the file ``path``."""
    try:
        mode = os.lstat(real).st_mode
        if stat.S_ISDIR(mode):
            raise NotASession(f"{path} is a folder", "name a session file in it")
        if not stat.S_ISREG(mode):
            raise NotASession(f"{path} is not a regular file", "see `gpuwatch sessions`")
        head = read_regular(real, 99)
    except FileNotFoundError as error:
        raise StorageError(f"no such file: {path}", "see `gpuwatch sessions`") from error
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
            f"if it is your own: sqlite3 {shell(path)} 'PRAGMA journal_mode=DELETE'",
        )
    version = int.from_bytes(head[60:64], "big")
    if version > schema.VERSION:
        raise NewerSchema(
            f"{path} has session schema {version}; this gpuwatch reads {schema.VERSION}",
            f"read it with a newer one: {update_command()}",
        )
    if version < schema.VERSION:
        raise NotASession(
            f"{path} has session schema {version}, of before the first release; this gpuwatch "
            f"reads {schema.VERSION}",
            "record the run again",
        )


def _checked(opened: OpenedSession, path: Path) -> OpenedSession:
    """Refuse any table, index, view or trigger that is not in the schema."""
    try:
        expected = len(schema.TABLES) + 1
        rows = opened.connection.rows(
            "SELECT type, name, sql FROM sqlite_master LIMIT ?", (expected + 1,)
        )
    except BaseException:
        opened.close()
        raise
    matches = (
        len(rows) == expected
        and all(kind == "table" for kind, _, _ in rows)
        and all(schema.is_expected(str(name), str(sql)) for _, name, sql in rows)
    )
    if not matches:
        opened.close()
        raise NotASession(
            f"{path} does not have the tables of a gpuwatch session",
            "it may have been tampered with",
        )
    return opened


def roll_back(path: Path) -> None:
    """Roll back the unfinished transaction of a dead writer.

    Does nothing if ``path`` is not a session, or another user can write to it.

    Raises:
        OSError: it cannot be written.
    """
    try:
        real = _real(path)
        _check_header(real, path)  # for any other file SQLite would delete the journal
        journal, shared = _beside(real)
        if journal is not None and not shared and not is_movable(real):
            check(journal, real, journal)
            _recover(real, lambda _: False)
    except sqlite3.OperationalError as error:
        raise OSError(errno.EIO, str(error), str(path)) from error
    except (GpuwatchError, sqlite3.DatabaseError):
        pass


def _recover(path: Path, writer_alive: WriterAlive) -> None:
    """Let SQLite roll back the journal, unless its writer lives and will do so itself."""
    connection = connect(path, "rw")
    try:
        if not writer_alive(connection):
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("COMMIT")
    finally:
        connection.close()


def _open_copy(
    path: Path, real: Path, journal: Path | None, writer_alive: WriterAlive
) -> OpenedSession:
    """Open a private copy, with its journal rolled back, or padded if it has none."""
    renewal = _Renewal(path, real, writer_alive)
    folder = tempfile.mkdtemp(prefix="gpuwatch-")
    opened = None
    try:
        copied, copied_journal = copy(real, journal, Path(folder))
        _check_header(copied, path)
        is_torn = copied_journal is not None and check(copied_journal, copied, journal or path)
        lacking = _lacking(copied) if journal is None else 0
        padded = 0 < lacking <= _PADDING
        if padded:
            os.truncate(copied, copied.stat().st_size + lacking)
        if is_torn:
            _recover(copied, lambda _: False)
        opened = _checked(OpenedSession(connect(copied, "ro"), None, folder, renewal), path)
        if padded:
            opened.notice = "its journal is missing: the last transaction may be lost"
        elif is_torn and not writer_alive(opened.connection):
            opened.notice = "read from a private copy: its last transaction was cut off"
        elif journal is None and path.suffix == schema.SUFFIX and _is_cut(opened, writer_alive):
            opened.notice = CUT
        return opened
    except BaseException as error:
        if opened is not None:
            opened.connection.close()
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, sqlite3.Error):
            raise _damaged(path, str(error)) from error
        if isinstance(error, OSError):
            raise StorageError(
                f"cannot copy {path}: {error.strerror}",
                f"free some space in {tempfile.gettempdir()}, or set TMPDIR to another folder"
                if error.errno in (errno.ENOSPC, errno.EDQUOT)
                else None,
            ) from error
        raise
    finally:
        renewal.copied()


class _Renewal:
    """Copies and opens a session again when a copy is due and the file has changed."""

    def __init__(self, path: Path, real: Path, writer_alive: WriterAlive) -> None:
        self._path, self._real, self._writer_alive = path, real, writer_alive
        self._mark = self._version()
        self._began = self._due = time.monotonic()

    def copied(self) -> None:
        """Copying is done: schedule the next copy after a multiple of the time it took."""
        now = time.monotonic()
        self._due = now + max(_RENEW_SECONDS, _REST * (now - self._began))

    def __call__(self) -> OpenedSession | None:
        if time.monotonic() < self._due or self._version() in (None, self._mark):
            return None
        return open_session(self._path, self._writer_alive)

    def _version(self) -> tuple[int, int, int] | None:
        """Identifies the state of the file: mtime, size, inode; ``None`` if it is gone."""
        try:
            status = self._real.lstat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino


def _lacking(path: Path) -> int:
    """Bytes by which a file is shorter than its header says."""
    with path.open("rb") as file:
        head = file.read(100)
    page_field = int.from_bytes(head[16:18], "big")
    page = 65536 if page_field == 1 else page_field
    return page * int.from_bytes(head[28:32], "big") - path.stat().st_size
