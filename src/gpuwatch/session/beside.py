"""What lies beside a session file, looked at before SQLite acts on it.

SQLite believes a journal: it gives the file the length that the journal tells, and removes another
file whose name stands at the journal's end. It opens a pipe, and waits.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from gpuwatch.errors import NotASession, StorageError

_MAGIC = bytes.fromhex("d9d505f920a163d7")
_MORE = 64 << 20
"""Bytes that a session may have had more than it has now: a copy may have been cut off."""
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW


def journal_of(path: Path) -> Path | None:
    """The rollback journal of a session, checked; ``None``: there is none. Links are followed to
    the session, not to its journal.

    Raises:
        NotASession: what lies there no recorder writes.
        StorageError: it cannot be read.
    """
    real = path.resolve()
    ahead = real.with_name(f"{real.name}-wal")
    if os.path.lexists(ahead):
        raise NotASession(f"no recorder writes {ahead}", "move it elsewhere")
    journal = real.with_name(f"{real.name}-journal")
    try:
        found = journal.lstat()
        if not stat.S_ISREG(found.st_mode):
            raise NotASession(f"{journal} is no regular file", "move it elsewhere")
        fd = os.open(journal, _FLAGS)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(
            f"cannot read {journal}: {error.strerror}", "see who owns the folder"
        ) from error
    try:
        length = os.fstat(fd).st_size
        head, tail = os.pread(fd, 28, 0), os.pread(fd, 8, max(0, length - 8))
    finally:
        os.close(fd)
    if head.startswith(_MAGIC) and len(head) == 28:
        pages, page = int.from_bytes(head[16:20], "big"), int.from_bytes(head[24:28], "big")
        if pages * page > real.stat().st_size + _MORE or (length > 28 and tail == _MAGIC):
            raise NotASession(f"no recorder writes a journal like {journal}", "move it elsewhere")
    return journal
