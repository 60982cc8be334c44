"""The one way in which files are written: whole or not at all, and through no link.

Who can write to the same folder could put a link where a file will be, and have it written
elsewhere. So a file is made under a name that nobody can know and that must not exist, and renamed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_PRIVATE, _AS_THE_UMASK_SAYS = 0o600, 0o666
_LINKS = frozenset({Path("/dev"), Path("/dev/fd")})
"""Where root alone makes links: to standard output, and to what a shell makes of ``>(command)``."""
_LONGEST_NAME = 200
"""Bytes of a name that stand in that of the file before it is whole; 255 are allowed in all."""


def private_file(path: str, flags: int) -> int:
    """An ``opener`` for :func:`open`: a new file is readable by its owner alone from the start,
    whatever the umask; a link in its place is not followed."""
    return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, _PRIVATE)


def write_text(path: Path, text: str, *, flush: bool = False) -> None:
    """Replace a file of gpuwatch's own in one piece; its owner alone may read it.

    ``flush``: what is in it is on the disk before it gets its name.

    Raises:
        OSError: it cannot be written; the old one is as it was.
    """
    with _replacing(path, _PRIVATE) as file:
        # Paths are bytes, whatever they mean.
        file.write(text.encode("utf-8", "surrogateescape"))
        if flush:
            file.flush()
            os.fsync(file.fileno())


def write_once(path: Path, data: bytes) -> None:
    """Make a file of gpuwatch's own, unless there is one: whole from the start, however many make
    it at once. Its owner alone may read it.

    Raises:
        OSError: it cannot be written.
    """
    new = path.with_name(f".{path.name}.{int.from_bytes(os.urandom(4), 'big')}")
    with _making(new, new, _PRIVATE) as file:
        file.write(data)
    try:
        with contextlib.suppress(FileExistsError):
            os.link(new, path)
    finally:
        new.unlink()


def asked_for(path: Path, *, new: bool = False) -> contextlib.AbstractContextManager[BinaryIO]:
    """A file that the user asked for by its path, to be written within the block.

    Its mode is as the umask says, or that of the caller's own file which it replaces. ``new``: one
    that is there is not replaced. A pipe or a device is written to as it is.

    Raises:
        OSError: it cannot be written, or is a link.
    """
    if new:
        return _making(path, path, _AS_THE_UMASK_SAYS)
    try:
        known = path.lstat()
    except FileNotFoundError:
        return _replacing(path, _AS_THE_UMASK_SAYS)
    if stat.S_ISREG(known.st_mode):
        if known.st_uid != os.geteuid():  # whose mode would let others read it
            return _replacing(path, _AS_THE_UMASK_SAYS)
        return _replacing(path, _PRIVATE, stat.S_IMODE(known.st_mode) & 0o777)
    if stat.S_ISLNK(known.st_mode) and path.absolute().parent not in _LINKS:
        raise OSError(errno.ELOOP, "it is a link")
    return _as_it_is(path, 0 if stat.S_ISLNK(known.st_mode) else os.O_NOFOLLOW)


@contextlib.contextmanager
def _as_it_is(path: Path, flags: int) -> Iterator[BinaryIO]:
    flags |= os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY
    with os.fdopen(os.open(path, flags), "wb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if not (stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)):
            raise OSError(errno.ELOOP, "it is a link, and to no pipe or device")
        yield file


def _replacing(
    path: Path, mode: int, kept: int | None = None
) -> contextlib.AbstractContextManager[BinaryIO]:
    """``kept``: the mode before it gets its name; else it is as it was made."""
    name = os.fsdecode(os.fsencode(path.name)[:_LONGEST_NAME])
    number = int.from_bytes(os.urandom(4), "big")
    return _making(path.with_name(f".{name}.{number}"), path, mode, kept)


@contextlib.contextmanager
def _making(at: Path, path: Path, mode: int, kept: int | None = None) -> Iterator[BinaryIO]:
    """A new file ``at``; it is ``path`` when the block is over, and is removed where that fails."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(at, flags, mode), "wb") as file:
        try:
            yield file
            file.flush()
            if kept is not None:
                os.fchmod(file.fileno(), kept)
            if at != path:
                at.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                at.unlink()
            raise
