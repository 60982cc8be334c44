"""Checks the files beside a session before SQLite acts on them.

SQLite trusts a journal: it sets the file to the length in the journal, and removes another
file that the journal names at its end. It opens a pipe, and waits. Anyone who can write to the
file, its journal or their folder can swap them after the check, so it counts only if nobody else
can.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from gpuwatch.core.errors import NotASession, StorageError

_MAGIC = bytes.fromhex("d9d505f920a163d7")
_MORE = 64 << 20
"""Bytes by which a session may have been longer than now: a copy may be truncated."""
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def journal_of(real: Path) -> Path | None:
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


def check(journal: Path, session: Path) -> None:
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


def is_shared(real: Path, journal: Path | None) -> bool:
    """Whether another user can write to a session, its journal or their folder.

    Root, who can write anywhere, does not count.

    Raises:
        FileNotFoundError: one of them is gone by now.
    """
    return any(
        _is_anothers(path.lstat()) for path in (real, real.parent, journal) if path is not None
    )


def _is_anothers(status: os.stat_result) -> bool:
    return status.st_uid not in (0, os.geteuid()) or bool(status.st_mode & _OTHERS)


def _unreadable(journal: Path, error: OSError) -> StorageError:
    return StorageError(f"cannot read {journal}: {error.strerror}", "check who owns the folder")
