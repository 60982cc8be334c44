"""Copies a session and its journal, so that nobody can change them while they are read."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from pathlib import Path

from gpuwatch.core.errors import StorageError
from gpuwatch.core.paths import open_regular

MOST = 4 << 30
"""Most bytes to copy from one file: a day of eight GPUs at ten samples a second takes 2 GB."""
_PIECE = 1 << 20
_SHARED, _SHARED_LENGTH = 0x40000002, 510
"""Offset and length of the bytes that SQLite locks for its readers."""
_PATIENCE, _AGAIN = 10.0, 0.02
"""Seconds: longest wait for a commit, and between two attempts."""


def copy(real: Path, journal: Path | None, into: Path) -> tuple[Path, Path | None]:
    """Copy a session and its journal into ``into``, between two commits of the recorder.

    Returns the copies; ``None`` for a journal that has disappeared.

    Raises:
        StorageError: a file is too large, or locked for too long.
        OSError: they cannot be read, or the copies cannot be written.
    """
    session_copy, journal_copy = into / "session.gpuwatch", into / "session.gpuwatch-journal"
    fd = open_regular(real, links=False)
    try:
        _hold(fd, real)
        copy_file(fd, session_copy)
        if journal is None:
            return session_copy, None
        try:
            journal_fd = open_regular(journal, links=False)
        except FileNotFoundError:
            return session_copy, None
        try:
            copy_file(journal_fd, journal_copy)
        finally:
            os.close(journal_fd)
    finally:
        os.close(fd)
    return session_copy, journal_copy


def copy_file(source: int, target: Path) -> None:
    """Copy an open file, with its holes.

    Raises:
        StorageError: it is larger than :data:`MOST`.
        OSError: it cannot be read, or the copy cannot be written.
    """
    allowance = MOST
    with target.open("xb") as new:
        size, offset = os.fstat(source).st_size, 0
        while offset < size:
            try:
                offset = os.lseek(source, offset, os.SEEK_DATA)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
                break  # nothing but a hole is left
            end = min(os.lseek(source, offset, os.SEEK_HOLE), size)
            while offset < end and (piece := os.pread(source, min(_PIECE, end - offset), offset)):
                allowance -= len(piece)
                if allowance < 0:
                    raise StorageError(
                        f"reading it needs a copy of more than {MOST >> 30} GiB",
                        "read it as its owner",
                    )
                os.pwrite(new.fileno(), piece, offset)
                offset += len(piece)
            if offset < end:
                break  # it became shorter meanwhile
        new.truncate(size)


def _hold(fd: int, name: Path) -> None:
    """Hold SQLite's reader lock, so that the recorder cannot commit until ``fd`` is closed."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB, _SHARED_LENGTH, _SHARED)
            break
        except (BlockingIOError, PermissionError) as error:
            if time.monotonic() > deadline:
                raise StorageError(f"{name} is busy: it is locked", "try again") from error
            time.sleep(_AGAIN)
        except OSError:  # a file system without locks
            break
