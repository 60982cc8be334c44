"""Detects that an open session file was deleted or replaced."""

from __future__ import annotations

import os
from pathlib import Path

from gpuwatch.core.text import to_paste
from gpuwatch.tui.feed.snapshot import Trouble

FileId = tuple[int, int]
"""Device and inode of a file."""


def file_of(path: str | Path) -> FileId | None:
    """The id of the file at ``path``; ``None``: none is accessible."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def missing_file(path: Path, *, replaced: bool, live: bool) -> Trouble:
    """The message for a missing or replaced session file; ``live``: its run was live when it was
    last read."""
    event = "was replaced by another file" if replaced else "was deleted or moved"
    if not live:
        return Trouble(f"the session file {event}: it cannot be opened again")
    return Trouble(
        f"the session file {event}: recording has stopped, the workload still runs",
        f"stop it with s, or in a shell: {to_paste('stop', path)}",
    )
