"""What mends a place that cannot be written."""

from __future__ import annotations

import os
from pathlib import Path


def room(path: Path) -> str:
    """``make FOLDER writable``, or ``free some space`` where writing is allowed.

    Of a path that is not there the nearest folder above it counts, and of a file its folder too:
    a journal is made beside a session.
    """
    # os.path, which takes a folder that may not be entered for one that is not there.
    there = next(each for each in (path, *path.absolute().parents) if os.path.exists(each))
    for each in (there, there if there.is_dir() else there.parent):
        if not os.access(each, os.W_OK):
            return f"make {each} writable"
    return "free some space"
