"""Stores names, tags and notes of sessions and studies in a file beside them.

A finished session never changes, so its label is kept outside: one file for each study's folder. It
may come from elsewhere: content is limited and cleaned, and malformed entries are ignored.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import stat
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

from gpuwatch.core.errors import StorageError
from gpuwatch.core.output import write_text
from gpuwatch.session.study.label import NONE, Label, from_elsewhere

LABELS = "labels.json"
KIND, SCHEMA = "gpuwatch-labels", 1
LARGEST = 1 << 20
"""Most bytes of the file."""
_PATIENCE = 5.0
"""Seconds to wait for another writer."""


def read(folder: Path) -> dict[str, Label]:
    """The labels in a folder by the session's file name; ``""`` stands for the study itself.

    Empty without labels, or if the file cannot be read.
    """
    return read_with_problem(folder)[0]


def read_with_problem(folder: Path) -> tuple[dict[str, Label], str | None]:
    """As :func:`read`, with the reason why an existing file cannot be used, if so."""
    path = folder / LABELS
    try:
        fd = os.open(path, _FLAGS | os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return {}, None
    except OSError as error:
        return {}, f"{path} cannot be read: {error.strerror}; {_hint(error)}"
    try:
        return _parse(_content(fd)), None
    except OSError as error:
        return {}, f"{path} cannot be read: {error.strerror}; {_hint(error)}"
    except ValueError as error:
        return {}, f"{path} is not gpuwatch's: {error}; {_ELSEWHERE}"
    finally:
        os.close(fd)


def change(folder: Path, key: str, how: Callable[[Label], Label]) -> Label:
    """Replace the label of a session (its file name) or of the study (``""``); returns the new one.

    Writes atomically, mode 0600, one writer at a time.

    Raises:
        StorageError: it cannot be written, or the existing file is not gpuwatch's.
    """
    with _alone(folder) as known:
        known[key] = how(known.get(key, NONE))
        _write(folder, known)
        return known[key]


def forget(folder: Path, keys: Collection[str]) -> None:
    """Drop the labels of removed sessions, if they have any.

    Raises:
        StorageError: it cannot be written.
    """
    if not read(folder).keys() & set(keys):
        return
    with _alone(folder) as known:
        _write(folder, {key: label for key, label in known.items() if key not in keys})


_ELSEWHERE = "move it elsewhere"
_HINTS = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.ELOOP: _ELSEWHERE,  # a link is not followed
    errno.EISDIR: _ELSEWHERE,
    errno.ENXIO: _ELSEWHERE,
    errno.EROFS: "copy the study to a writable folder",
    errno.ENOENT: "see `gpuwatch sessions`",
}


def _hint(error: OSError) -> str:
    return _HINTS.get(error.errno or 0, "check who owns the folder")


_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[dict[str, Label]]:
    """The labels, locked against other writers.

    The lock is on the file itself: if the file was replaced while waiting, wait again.
    """
    path = folder / LABELS
    deadline = time.monotonic() + _PATIENCE
    fd = -1
    try:
        while True:
            fd = os.open(path, _FLAGS | os.O_RDWR | os.O_CREAT, 0o600)
            if _locked(fd, path, deadline):
                break
            os.close(fd)
            fd = -1
        try:
            yield _parse(_content(fd))
        finally:
            with contextlib.suppress(OSError):
                if path.stat().st_size == 0:
                    path.unlink()
    except ValueError as error:
        raise StorageError(f"{path} is not gpuwatch's: {error}", _ELSEWHERE) from error
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}", _hint(error)) from error
    finally:
        if fd >= 0:
            os.close(fd)


def _locked(fd: int, path: Path, deadline: float) -> bool:
    """Lock ``fd``; ``False`` if the path names another file by now."""
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError as error:
            if time.monotonic() > deadline:
                raise StorageError(f"{path} is being written", "try again") from error
            time.sleep(0.02)
        except OSError:  # a file system without locks
            break
    try:
        return os.path.samestat(os.fstat(fd), path.lstat())
    except FileNotFoundError:
        return False


def _content(fd: int) -> bytes:
    """Read an open file.

    Raises:
        ValueError: it is not a regular file, or too large.
    """
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("it is not a regular file")
    content = os.pread(fd, LARGEST + 1, 0)
    if len(content) > LARGEST:
        raise ValueError("it is too large")
    return content


def _parse(content: bytes) -> dict[str, Label]:
    """Parse the content of a file; an empty file has no labels.

    Raises:
        ValueError: it does not hold labels.
    """
    if not content:
        return {}
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError("it does not hold labels") from error
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise ValueError("it does not hold labels")
    if document.get("schema") != SCHEMA:
        raise ValueError("it was written by another version")
    listed = document.get("labels")
    if not isinstance(listed, dict):
        raise ValueError("it does not hold labels")
    return {
        key: from_elsewhere(value)
        for key, value in listed.items()
        if "/" not in key and isinstance(value, dict)
    }


def _write(folder: Path, labels: Mapping[str, Label]) -> None:
    path = folder / LABELS
    kept = {key: label for key, label in labels.items() if label != NONE}
    if not kept:
        path.unlink(missing_ok=True)
        return
    listed = {
        key: {"name": label.name, "tags": list(label.tags), "note": label.note}
        for key, label in sorted(kept.items())
    }
    text = json.dumps({"kind": KIND, "schema": SCHEMA, "labels": listed}, indent=1) + "\n"
    if len(text) > LARGEST:
        raise StorageError(f"{path} would be larger than {LARGEST >> 20} MiB", "shorten the notes")
    write_text(path, text)
