"""Whether a user inside a container, who has no capabilities, could read what is mounted."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from pathlib import Path

_MOST_ENTRIES = 2000


def unreadable(path: Path, uid: int, gids: Collection[int]) -> Path | None:
    """The first of ``path`` and what is in it that this user could not read; ``None``: all fine.

    By owner, group and mode, as the kernel decides for a process without capabilities; ACLs are
    not looked at. At most 2,000 entries are. The way to ``path`` itself does not count: a bind
    mount leads past it.
    """
    for entry, info in _entries(path):
        wanted = 5 if stat.S_ISDIR(info.st_mode) else 4
        if not permitted(info, uid, gids, wanted):
            return entry
    return None


def permitted(info: os.stat_result, uid: int, gids: Collection[int], wanted: int) -> bool:
    """Whether the mode grants ``wanted`` (4 read, 2 write, 1 search, added up)."""
    mode = stat.S_IMODE(info.st_mode)
    if info.st_uid == uid:
        mode >>= 6
    elif info.st_gid in gids:
        mode >>= 3
    return mode & wanted == wanted


def _entries(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    waiting = [path]
    seen = 0
    while waiting and seen < _MOST_ENTRIES:
        entry = waiting.pop()
        try:
            info = entry.stat()
            children = sorted(entry.iterdir()) if stat.S_ISDIR(info.st_mode) else []
        except OSError:
            continue  # a dangling link; what the caller cannot see, the caller does not mean
        seen += 1
        yield entry, info
        waiting.extend(reversed([each for each in children if not each.is_symlink()]))
