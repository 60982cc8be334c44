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
"""Bytes that a copy may lack of what its header promises."""
_RENEW_SECONDS, _REST = 1.0, 20
"""A private copy of a session that goes on is used for so long, and for so many times as long as
copying took."""


class OpenedSession:
    """A read-only connection, what had to be done to get it, and how to clean up after it."""

    def __init__(
        self,
        connection: BoundedConnection,
        notice: str | None = None,
        folder: str | None = None,
        again: Callable[[], OpenedSession | None] = lambda: None,
    ) -> None:
        self.connection = connection
        self.notice = notice
        self._folder = folder
        self._again = again
        """Opens a private copy anew where the file was written since."""

    def renew(self) -> None:
        """Go over to a new copy where this is one, and the file was written since.

        Raises:
            NotASession, NewerSchema, StorageError: as of :func:`open_session`.
        """
        newer = None if self.connection.in_transaction else self._again()
        if newer is not None:
            self.close()
            self.connection, self._folder, self._again = (
                newer.connection,
                newer._folder,
                newer._again,
            )

    def close(self) -> None:
        self.connection.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


CUT = (
    "never closed, and no journal lies beside it: unless SQLite's backup copied it, its last "
    "transaction may be there in part"
)
"""Of a file that was copied alone while it was written: SQLite cannot always see that."""
WriterAlive = Callable[[BoundedConnection], bool]


def open_session(path: Path, writer_alive: WriterAlive) -> OpenedSession:
    """Open ``path`` read-only and check that it is a session.

    After a recorder was killed in mid-transaction the file needs its journal rolled back. If the
    file is ours and its writer dead, that is done in place; otherwise in a private copy.

    What another user may write to is copied first if it has a journal, and the copy checked and
    read. Without one it is read in place, and nothing beside it looked at; root, who may open any
    device that is put there meanwhile, copies that too.

    Raises:
        NotASession, NewerSchema, StorageError: with what the file is and what helps.
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
                    # SQLite removes it, and without it the file looks cut.
                    journal.touch(0o600, exist_ok=False)
                return _checked(OpenedSession(connect(real, "ro")), path)
        return _open_copy(path, real, journal, writer_alive)
    if 0 < _lacking(real) <= _PADDING:
        return _open_copy(path, real, None, writer_alive)
    raise _damaged(path, reason)


def _real(path: Path) -> Path:
    """Where a path leads. Raises StorageError where a link in it was just taken away."""
    try:
        return Path(os.path.realpath(path))
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error


def _beside(real: Path) -> tuple[Path | None, bool]:
    """The journal of a session, and whether another user may write to one of them."""
    try:
        journal = journal_of(real)
        try:
            return journal, is_shared(real, journal)
        except FileNotFoundError:  # its recorder closed the session just now
            return None, is_shared(real, None)
    except OSError as error:
        raise StorageError(f"cannot read {real}: {error.strerror}") from error


def _is_cut(opened: OpenedSession, writer_alive: WriterAlive) -> bool:
    """Whether a file without a journal should have one, as all have from their first commit until
    they are closed."""
    known = {key for (key,) in opened.connection.rows("SELECT key FROM meta LIMIT 1000")}
    return "recorder" in known and "closed" not in known and not writer_alive(opened.connection)


def _damaged(path: Path, reason: str) -> NotASession:
    return NotASession(
        f"{path} is damaged: {reason}",
        "copy it again together with the file of the same name ending in -journal",
    )


def _check_header(real: Path, path: Path) -> None:
    """``path`` is what the file is called in errors."""
    try:
        mode = os.lstat(real).st_mode
        if stat.S_ISDIR(mode):
            raise NotASession(f"{path} is a folder", "name a session file in it")
        if not stat.S_ISREG(mode):
            raise NotASession(f"{path} is no regular file", "see `gpuwatch sessions`")
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
            f"{path} has session schema {version}; this gpuwatch reads up to {schema.VERSION}",
            f"read it with a newer one: {update_command()}",
        )


def _checked(opened: OpenedSession, path: Path) -> OpenedSession:
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
    """Undo what a writer that is gone left half written; nothing where ``path`` is no session, or
    another user may write to it.

    Raises:
        OSError: it cannot be written.
    """
    try:
        real = _real(path)
        _check_header(real, path)  # of anything else SQLite would throw the journal away
        journal, shared = _beside(real)
        if journal is not None and not shared and not is_movable(real):
            check(journal, real, journal)
            _recover(real, lambda _: False)
    except sqlite3.OperationalError as error:
        raise OSError(errno.EIO, str(error), str(path)) from error
    except (GpuwatchError, sqlite3.DatabaseError):
        pass


def _recover(path: Path, writer_alive: WriterAlive) -> None:
    """Let SQLite roll the journal back, unless a living writer will do so itself."""
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
    """Read a private copy: its journal rolled back, or padded where there is none."""
    again = _Again(path, real, writer_alive)
    folder = tempfile.mkdtemp(prefix="gpuwatch-")
    opened = None
    try:
        copied, beside = copy(real, journal, Path(folder))
        _check_header(copied, path)
        torn = beside is not None and check(beside, copied, journal or path)
        lacking = _lacking(copied) if journal is None else 0
        padded = 0 < lacking <= _PADDING
        if padded:
            os.truncate(copied, copied.stat().st_size + lacking)
        if torn:
            _recover(copied, lambda _: False)
        opened = _checked(OpenedSession(connect(copied, "ro"), None, folder, again), path)
        if padded:
            opened.notice = "its journal is missing: the last transaction may be lost"
        elif torn and not writer_alive(opened.connection):
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
        again.copied()


class _Again:
    """Opens a session that was copied once more, when it is due and the file has changed."""

    def __init__(self, path: Path, real: Path, writer_alive: WriterAlive) -> None:
        self._path, self._real, self._writer_alive = path, real, writer_alive
        self._mark = self._now()
        self._began = self._due = time.monotonic()

    def copied(self) -> None:
        """Copying is done: the next one is due after many times as long."""
        now = time.monotonic()
        self._due = now + max(_RENEW_SECONDS, _REST * (now - self._began))

    def __call__(self) -> OpenedSession | None:
        if time.monotonic() < self._due or self._now() in (None, self._mark):
            return None
        return open_session(self._path, self._writer_alive)

    def _now(self) -> tuple[int, int, int] | None:
        """By which a file that changed is known; ``None``: there is none."""
        try:
            found = self._real.lstat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


def _lacking(path: Path) -> int:
    """Bytes that a file lacks of the length that its header promises."""
    with path.open("rb") as file:
        head = file.read(100)
    size = int.from_bytes(head[16:18], "big")
    page = 65536 if size == 1 else size
    return page * int.from_bytes(head[28:32], "big") - path.stat().st_size
