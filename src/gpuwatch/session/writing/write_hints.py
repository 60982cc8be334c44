"""How to fix a place that cannot be written."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from gpuwatch.core.text import shell

_MENDS = {
    errno.ENAMETOOLONG: "shorten the path",
    errno.ENOTDIR: "see which part of the path is no folder",
    errno.EEXIST: "see which part of the path is no folder",
    errno.ELOOP: "see where the links in the path lead",
    errno.EIO: "see whether its disk is well",
}
_LONGEST = 511 - len("-journal")
"""Bytes of a path that SQLite opens with the journal beside it."""


def room(path: Path, error: Exception | None = None) -> str:
    """``make FOLDER writable``, or ``free some space`` where writing is allowed; where ``error``
    says more, such as that the path is too long, how to fix that.

    Of a path that is not there the nearest folder above it counts, and of a file its folder too:
    a journal is made beside a session.
    """
    number = getattr(error, "errno", None)
    if number is None and len(os.fsencode(path.absolute())) > _LONGEST:
        number = errno.ENAMETOOLONG
    if number in _MENDS:
        return _MENDS[number]
    # os.path, which takes a folder that may not be entered for one that is not there.
    there = next(each for each in (path, *path.absolute().parents) if os.path.exists(each))
    for each in (there, there if there.is_dir() else there.parent):
        if not os.access(each, os.W_OK):
            return f"make {shell(each)} writable"
    return "free some space"
