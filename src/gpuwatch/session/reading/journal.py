"""What lies beside a session file, looked at before SQLite acts on it.

SQLite believes a journal: it gives the file the length that the journal tells, and removes another
file whose name stands at the journal's end. It opens a pipe, and waits. Whoever may write to the
file, its journal or their folder can swap them after the look, so a look counts only where nobody
else may, or for a private copy (``session.copied``).
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from gpuwatch.core.errors import NotASession, StorageError

_MAGIC = bytes.fromhex("d9d505f920a163d7")
_MORE = 64 << 20
"""Bytes that a session may have had more than it has now: a copy may have been cut off."""
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def journal_of(real: Path) -> Path | None:
    """The rollback journal of a session; ``None``: there is none. ``real`` is the session's own
    path: links are followed to the session, not to its journal.

    Raises:
        NotASession: what lies there no recorder writes.
        StorageError: it cannot be looked at.
    """
    ahead, journal = (real.with_name(f"{real.name}-{end}") for end in ("wal", "journal"))
    if os.path.lexists(ahead):
        raise NotASession(f"no recorder writes {ahead}", "move it elsewhere")
    try:
        found = journal.lstat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(journal, error) from error
    if not stat.S_ISREG(found.st_mode):
        raise NotASession(f"{journal} is no regular file", "move it elsewhere")
    return journal


def check(journal: Path, session: Path, name: Path) -> bool:
    """Refuse a journal that no recorder writes; returns whether SQLite would roll it back.

    ``name`` is what it is called in errors.

    Raises:
        NotASession: it names another file, or promises a length that the file never had.
        StorageError: it cannot be read.
    """
    try:
        fd = os.open(journal, _FLAGS)
    except OSError as error:
        raise _unreadable(name, error) from error
    try:
        length = os.fstat(fd).st_size
        head, tail = os.pread(fd, 28, 0), os.pread(fd, 8, max(0, length - 8))
    finally:
        os.close(fd)
    if head.startswith(_MAGIC) and len(head) == 28:
        pages, page = int.from_bytes(head[16:20], "big"), int.from_bytes(head[24:28], "big")
        if pages * page > session.stat().st_size + _MORE or (length > 28 and tail == _MAGIC):
            raise NotASession(f"no recorder writes a journal like {name}", "move it elsewhere")
    return head[:1] not in (b"", b"\0")


def is_shared(real: Path, journal: Path | None) -> bool:
    """Whether another user may write to a session, its journal or their folder. Root may anywhere,
    and is no other user.

    Raises:
        FileNotFoundError: one of them is gone by now.
    """
    return any(
        _is_anothers(each.lstat()) for each in (real, real.parent, journal) if each is not None
    )


def is_movable(real: Path) -> bool:
    """Whether another user may put something else in the place of a session's folder, or of one
    above it."""
    above = [each.lstat() for each in real.parent.parents]
    return any(_is_anothers(each) and not _keeps(each) for each in above)


def _is_anothers(found: os.stat_result) -> bool:
    return found.st_uid not in (0, os.geteuid()) or bool(found.st_mode & _OTHERS)


def _keeps(folder: os.stat_result) -> bool:
    """Whether what is in the folder is renamed by its owner alone, as in ``/tmp``."""
    return folder.st_uid in (0, os.geteuid()) and bool(folder.st_mode & stat.S_ISVTX)


def _unreadable(journal: Path, error: OSError) -> StorageError:
    return StorageError(f"cannot read {journal}: {error.strerror}", "see who owns the folder")
