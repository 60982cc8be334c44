"""A private copy of a session and its journal, for what its owner may change meanwhile."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from pathlib import Path

from gpuwatch.core.errors import StorageError
from gpuwatch.core.paths import open_regular

MOST = 4 << 30
"""Bytes that are copied of one file: a day of eight GPUs, sampled ten times a second, has 2 GB."""
_PIECE = 1 << 20
_SHARED, _SHARED_LENGTH = 0x40000002, 510
"""The bytes of a file that stand for SQLite's lock of readers."""
_PATIENCE, _AGAIN = 10.0, 0.02
"""Seconds that a commit is waited for, and between two looks."""


def copy(real: Path, journal: Path | None, into: Path) -> tuple[Path, Path | None]:
    """Copy a session and its journal into a folder of our own, between two commits of its
    recorder; returns the copies. The journal may be gone by now.

    Raises:
        StorageError: they are too large, or locked for too long.
        OSError: they cannot be read, or the copies cannot be written.
    """
    session, beside = into / "session.gpuwatch", into / "session.gpuwatch-journal"
    fd = open_regular(real, links=False)
    try:
        _hold(fd, real)
        copy_file(fd, session)
        if journal is None:
            return session, None
        try:
            other = open_regular(journal, links=False)
        except FileNotFoundError:
            return session, None
        try:
            copy_file(other, beside)
        finally:
            os.close(other)
    finally:
        os.close(fd)
    return session, beside


def copy_file(source: int, target: Path) -> None:
    """Copy what is in an open file; where it has holes, so has the copy.

    Raises:
        StorageError: there is more in it than :data:`MOST`.
        OSError: it cannot be read, or the copy cannot be written.
    """
    left = MOST
    with target.open("xb") as new:
        size, at = os.fstat(source).st_size, 0
        while at < size:
            try:
                at = os.lseek(source, at, os.SEEK_DATA)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
                break  # nothing but a hole is left
            end = min(os.lseek(source, at, os.SEEK_HOLE), size)
            while at < end and (piece := os.pread(source, min(_PIECE, end - at), at)):
                left -= len(piece)
                if left < 0:
                    raise StorageError(
                        f"more than {MOST >> 30} GiB would have to be copied to read it",
                        "read it as its owner",
                    )
                os.pwrite(new.fileno(), piece, at)
                at += len(piece)
            if at < end:
                break  # it became shorter meanwhile
        new.truncate(size)


def _hold(fd: int, name: Path) -> None:
    """Keep the recorder from committing, as any reader does, until ``fd`` is closed."""
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
