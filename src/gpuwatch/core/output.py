"""Writes files completely or not at all, and never through a link.

Anyone who can write to the same folder could put a link in the file's place and redirect the
write. So each file is created under a random name that must not exist yet, and then renamed.
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
"""Folders in which only root creates links: to standard output, and to a shell's ``>(command)``."""
_LONGEST_NAME = 200
"""Bytes of the final name that the temporary name repeats; a file name has at most 255."""


def private_file(path: str, flags: int) -> int:
    """An ``opener`` for :func:`open`: creates files with mode 0600, whatever the umask, and never
    follows a link."""
    return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, _PRIVATE)


def write_text(path: Path, text: str, *, flush: bool = False) -> None:
    """Replace one of gpuwatch's own files atomically, mode 0600.

    ``flush``: bring the content to the disk before the rename.

    Raises:
        OSError: it cannot be written; the old file is unchanged.
    """
    # Paths are arbitrary bytes, not always UTF-8.
    write_bytes(path, text.encode("utf-8", "surrogateescape"), flush=flush)


def write_bytes(path: Path, data: bytes, *, flush: bool = False) -> None:
    """As :func:`write_text`."""
    with _making(path, _PRIVATE) as file:
        file.write(data)
        if flush:
            file.flush()
            os.fsync(file.fileno())


def write_once(path: Path, data: bytes) -> None:
    """Create one of gpuwatch's own files, mode 0600, unless it exists. It is complete from the
    start, even if several processes create it at once.

    Raises:
        OSError: it cannot be written.
    """
    with contextlib.suppress(FileExistsError), _making(path, _PRIVATE, new=True) as file:
        file.write(data)


def open_output(path: Path) -> contextlib.AbstractContextManager[BinaryIO]:
    """Create a file that the user named, for writing within the block.

    Its mode follows the umask. A pipe or a device is written to directly.

    Raises:
        OSError: it exists, cannot be written, or is a link.
    """
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    if stat.S_ISREG(mode):
        return _making(path, _AS_THE_UMASK_SAYS, new=True)
    if stat.S_ISLNK(mode) and path.absolute().parent not in _LINKS:
        raise OSError(errno.ELOOP, "it is a link")
    return _as_it_is(path, 0 if stat.S_ISLNK(mode) else os.O_NOFOLLOW)


@contextlib.contextmanager
def _as_it_is(path: Path, flags: int) -> Iterator[BinaryIO]:
    flags |= os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY
    with os.fdopen(os.open(path, flags), "wb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if not (stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)):
            raise OSError(errno.ELOOP, "it is a link, but not to a pipe or a device")
        yield file


@contextlib.contextmanager
def _making(path: Path, mode: int, *, new: bool = False) -> Iterator[BinaryIO]:
    """Create a file beside ``path`` that takes its place after the block, or is removed on failure.
    ``new``: not if there is one."""
    name = os.fsdecode(os.fsencode(path.name)[:_LONGEST_NAME])
    temporary = path.with_name(f".{name}.{int.from_bytes(os.urandom(4), 'big')}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(temporary, flags, mode), "wb") as file:
        try:
            yield file
            file.flush()
            if new:
                _put(temporary, path)
            else:
                temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise


def _put(temporary: Path, path: Path) -> None:
    """Rename it; raise ``FileExistsError`` if there is a ``path``."""
    try:
        os.link(temporary, path)  # a rename would take the place of a file
    except OSError as error:  # a file system that has no hard links
        if isinstance(error, FileExistsError) or os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path) from None
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW))  # the name is ours now
        temporary.replace(path)
    else:
        temporary.unlink()
