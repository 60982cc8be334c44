"""A session file that was deleted or replaced while it is looked at."""

from __future__ import annotations

import os
from pathlib import Path

from gpuwatch.core.text import to_paste
from gpuwatch.tui.feed.snapshot import Trouble

FileId = tuple[int, int]
"""Device and number of a file: the same as long as it is the same file."""


def file_of(path: str | Path) -> FileId | None:
    """Which file has this name; ``None``: none that can be seen."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def gone(path: Path, *, replaced: bool, live: bool) -> Trouble:
    """What is said of it; ``live``: its run went on when it was last read."""
    how = "was replaced by another file" if replaced else "was deleted or moved"
    if not live:
        return Trouble(f"the session file {how}: what is shown cannot be opened again")
    return Trouble(
        f"the session file {how}: nothing is recorded any more, the workload runs on",
        f"s stops it here, {to_paste('stop', path)} elsewhere",
    )
