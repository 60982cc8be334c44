"""Hints for files and folders that cannot be written."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from gpuwatch.core.text import shell

_HINTS = {
    errno.ENAMETOOLONG: "shorten the path",
    errno.ENOTDIR: "check which part of the path is not a folder",
    errno.EEXIST: "check which part of the path is not a folder",
    errno.ELOOP: "check where the links in the path lead",
    errno.EIO: "check the disk for errors",
}
_LONGEST = 511 - len("-journal")
"""Longest path, in bytes, that leaves SQLite room for the name of the journal."""


def write_hint(path: Path, error: Exception | None = None) -> str:
    """A hint: ``make FOLDER writable``, ``free some space`` if it is writable, or a fix for the
    cause that ``error`` gives, such as a path that is too long.

    Checks the nearest existing folder of a missing path, and both a file and its folder: a journal
    is created beside a session.
    """
    number = getattr(error, "errno", None)
    if number is None and len(os.fsencode(path.absolute())) > _LONGEST:
        number = errno.ENAMETOOLONG
    if number in _HINTS:
        return _HINTS[number]
    # os.path.exists() is False for a folder that may not be entered, where Path.exists() raises.
    candidates = (path, *path.absolute().parents)
    existing = next(place for place in candidates if os.path.exists(place))
    for place in (existing, existing if existing.is_dir() else existing.parent):
        if not os.access(place, os.W_OK):
            return f"make {shell(place)} writable"
    return "free some space"
