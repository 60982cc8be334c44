"""Opens a session file for reading, whatever state its writer left it in.

A file from elsewhere counts as hostile until checked: it is opened read-only, its tables must match
the schema exactly, and sizes are limited. So are the files beside it, before SQLite acts on them:
it trusts a journal, sets the file to the length in it, and removes another file that the journal
names at its end; it opens a pipe, and waits. Anyone who can write to the file, its journal or their
folder can swap them after the check, so it counts only if nobody else can.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

from gpuwatch.core.errors import GpuwatchError, NewerSchema, NotASession, StorageError
from gpuwatch.core.installation import update_command
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.paths import read_regular
from gpuwatch.core.text import shell
from gpuwatch.session import schema
from gpuwatch.session.reading.bounded_connection import BoundedConnection, connect

_HEADER = b"SQLite format 3\x00"
_MAGIC = bytes.fromhex("d9d505f920a163d7")
_MORE = 64 << 20
"""Bytes by which a session may have been longer than now: a copy may be truncated."""
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


@dataclass
class OpenedSession:
    """A read-only connection, and a notice on what is missing in the file."""

    connection: BoundedConnection
    notice: str | None = None

    def close(self) -> None:
        self.connection.close()


CUT = (
    "never closed, and its journal is missing: unless SQLite's backup copied it, its last "
    "transaction may be incomplete"
)
"""For a file copied without its journal during recording; SQLite cannot always detect that."""
WriterAlive = Callable[[BoundedConnection], bool]


def open_session(path: Path, writer_alive: WriterAlive) -> OpenedSession:
    """Open ``path`` read-only and check that it is a session.

    If a recorder was killed during a transaction, its journal is rolled back. Of a file that
    another user can write to none is: that user could swap it after the check. Without a journal
    such a file is read ignoring what lies beside it.

    Raises:
        NotASession, NewerSchema, StorageError: with what the file is and a hint.
    """
    real = _real(path)
    _check_header(real, path)
    journal, shared = _beside(real)
    if journal is not None:
        if shared:
            raise _to_copy(path, "others may write to it, and it was not closed")
        _check_journal(journal, real)
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
        if journal is None:
            raise _damaged(path, str(error)) from error
    try:
        _recover(real, writer_alive)
        with contextlib.suppress(FileExistsError):
            # SQLite removes the journal, and without one the file looks cut.
            journal.touch(0o600, exist_ok=False)
        return _checked(OpenedSession(connect(real, "ro")), path)
    except (OSError, sqlite3.OperationalError) as error:
        raise _to_copy(path, "its last transaction cannot be rolled back here") from error
    except sqlite3.Error as error:
        raise _damaged(path, str(error)) from error


def _real(path: Path) -> Path:
    """Resolve all links. Raises StorageError if one disappears meanwhile."""
    try:
        return Path(os.path.realpath(path))
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error


def _beside(real: Path) -> tuple[Path | None, bool]:
    """The journal of a session, and whether another user can write to either of them."""
    try:
        journal = _journal_of(real)
        try:
            return journal, _is_shared(real, journal)
        except FileNotFoundError:  # its recorder closed the session just now
            return None, _is_shared(real, None)
    except OSError as error:
        raise StorageError(f"cannot read {real}: {error.strerror}") from error


def _journal_of(real: Path) -> Path | None:
    """The rollback journal of a session, or ``None``.

    ``real`` is the session's path with links resolved; a journal is never reached through a link.

    Raises:
        NotASession: the file beside it was not written by a recorder.
        StorageError: it cannot be read.
    """
    wal, journal = (real.with_name(f"{real.name}-{end}") for end in ("wal", "journal"))
    if os.path.lexists(wal):
        raise NotASession(f"{wal} was not written by a recorder", "move it elsewhere")
    try:
        status = journal.lstat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(journal, error) from error
    if not stat.S_ISREG(status.st_mode):
        raise NotASession(f"{journal} is not a regular file", "move it elsewhere")
    return journal


def _check_journal(journal: Path, session: Path) -> None:
    """Refuse a journal that no recorder wrote.

    Raises:
        NotASession: it names another file, or a length that the session never had.
        StorageError: it cannot be read.
    """
    try:
        fd = os.open(journal, _FLAGS)
    except OSError as error:
        raise _unreadable(journal, error) from error
    try:
        length = os.fstat(fd).st_size
        head, tail = os.pread(fd, 28, 0), os.pread(fd, 8, max(0, length - 8))
    finally:
        os.close(fd)
    if head.startswith(_MAGIC) and len(head) == 28:
        pages, page = int.from_bytes(head[16:20], "big"), int.from_bytes(head[24:28], "big")
        if pages * page > session.stat().st_size + _MORE or (length > 28 and tail == _MAGIC):
            raise NotASession(f"{journal} is not a recorder's journal", "move it elsewhere")


def _is_shared(real: Path, journal: Path | None) -> bool:
    """Whether another user can write to a session, its journal or their folder.

    Root, who can write anywhere, does not count.

    Raises:
        FileNotFoundError: one of them is gone by now.
    """
    ours = (0, os.geteuid())
    found = [path.lstat() for path in (real, real.parent, journal) if path is not None]
    return any(status.st_uid not in ours or status.st_mode & _OTHERS for status in found)


def _unreadable(journal: Path, error: OSError) -> StorageError:
    return StorageError(f"cannot read {journal}: {error.strerror}", "check who owns the folder")


def _is_cut(opened: OpenedSession, writer_alive: WriterAlive) -> bool:
    """Whether a journal is missing: a session has one from its first commit until it is closed."""
    keys = {key for (key,) in opened.connection.rows("SELECT key FROM meta LIMIT 1000")}
    return "recorder" in keys and "closed" not in keys and not writer_alive(opened.connection)


def _to_copy(path: Path, reason: str) -> StorageError:
    return StorageError(
        f"{path} is not read in place: {reason}",
        f"copy it first: sqlite3 {shell(path)} '.backup COPY{schema.SUFFIX}', or with its journal "
        "to a folder of your own",
    )


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
        if len(rows) != expected or not all(
            kind == "table" and schema.is_expected(str(name), str(sql)) for kind, name, sql in rows
        ):
            raise NotASession(
                f"{path} does not have the tables of a gpuwatch session",
                "it may have been tampered with",
            )
    except BaseException:
        opened.close()
        raise
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
        if journal is not None and not shared:
            _check_journal(journal, real)
            _recover(real, lambda _: False)
    except sqlite3.OperationalError as error:
        raise OSError(errno.EIO, str(error), str(path)) from error
    except (GpuwatchError, sqlite3.DatabaseError):
        pass


def _recover(path: Path, writer_alive: WriterAlive) -> None:
    """Let SQLite roll back the journal, unless its writer lives and will do so itself."""
    with contextlib.closing(connect(path, "rw")) as connection:
        if not writer_alive(connection):
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("COMMIT")
