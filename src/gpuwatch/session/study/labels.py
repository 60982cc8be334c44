"""Stores names, tags and notes of sessions and studies in a file beside them.

A finished session never changes, so its label is kept outside: one file for each study's folder. It
may come from elsewhere: content is limited and cleaned, and malformed entries are ignored.
"""

from __future__ import annotations

import contextlib
import errno
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

from gpuwatch.core import paths
from gpuwatch.core.errors import StorageError
from gpuwatch.core.models import JSON, mapping
from gpuwatch.core.output import write_text
from gpuwatch.session.study.label import NONE, Label, from_elsewhere

LABELS = "labels.json"
KIND, SCHEMA = "gpuwatch-labels", 1
LARGEST = 1 << 20
"""Most bytes of the file."""


def read(folder: Path) -> dict[str, Label]:
    """The labels in a folder by the session's file name; ``""`` stands for the study itself.

    Empty without labels, or if the file cannot be read.
    """
    return read_with_problem(folder)[0]


def read_with_problem(folder: Path) -> tuple[dict[str, Label], str | None]:
    """As :func:`read`, with the reason why an existing file cannot be used, if so."""
    path = folder / LABELS
    try:
        return _read(path), None
    except OSError as error:
        return {}, f"{path} cannot be read: {error.strerror}; {_hint(error)}"
    except ValueError as error:
        return {}, f"{path} is not gpuwatch's: {error}; {_ELSEWHERE}"


def change(folder: Path, key: str, how: Callable[[Label], Label]) -> Label:
    """Replace the label of a session (its file name) or of the study (``""``); returns the new one.

    Writes atomically, mode 0600, one writer at a time.

    Raises:
        StorageError: it cannot be written, or the existing file is not gpuwatch's.
    """
    with _alone(folder) as known:
        known[key] = how(known.get(key, NONE))
    return known[key]


def forget(folder: Path, keys: Collection[str]) -> None:
    """Drop the labels of removed sessions, if they have any.

    Raises:
        StorageError: it cannot be written.
    """
    if read(folder).keys() & set(keys):
        with _alone(folder) as known:
            for key in keys:
                known.pop(key, None)


_ELSEWHERE = "move it elsewhere"
_HINTS = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.EINVAL: _ELSEWHERE,  # a link, a folder, a pipe
    errno.EROFS: "copy the study to a writable folder",
    errno.ENOENT: "see `gpuwatch sessions`",
}


def _hint(error: OSError) -> str:
    return _HINTS.get(error.errno or 0, "check who owns the folder")


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[dict[str, Label]]:
    """The labels, to be changed; they are written at the end of the block."""
    path = folder / LABELS
    try:
        with paths.one_at_a_time():
            known = _read(path)
            yield known
            _write(path, known)
    except ValueError as error:
        raise StorageError(f"{path} is not gpuwatch's: {error}", _ELSEWHERE) from error
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}", _hint(error)) from error


def _read(path: Path) -> dict[str, Label]:
    """The labels in a file; empty if it does not exist.

    Raises:
        OSError: it cannot be read, or is not a regular file.
        ValueError: it does not hold labels.
    """
    try:
        with open(paths.open_regular(path, links=False), "rb") as file:
            content = file.read(LARGEST + 1)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    if len(content) > LARGEST:
        raise ValueError("it is too large")
    document: Mapping[str, JSON] = {}
    with contextlib.suppress(ValueError, RecursionError):
        document = mapping(json.loads(content))
    ours, listed = document.get("kind") == KIND, document.get("labels")
    if ours and document.get("schema") != SCHEMA:
        raise ValueError("it was written by another version")
    if not ours or not isinstance(listed, dict):
        raise ValueError("it does not hold labels")
    return {
        key: from_elsewhere(value)
        for key, value in listed.items()
        if "/" not in key and isinstance(value, dict)
    }


def _write(path: Path, labels: Mapping[str, Label]) -> None:
    kept = {key: label for key, label in labels.items() if label != NONE}
    if not kept:
        path.unlink(missing_ok=True)
        return
    listed = {key: asdict(label) for key, label in sorted(kept.items())}
    text = json.dumps({"kind": KIND, "schema": SCHEMA, "labels": listed}, indent=1) + "\n"
    if len(text) > LARGEST:
        raise StorageError(f"{path} would be larger than {LARGEST >> 20} MiB", "shorten the notes")
    write_text(path, text)
