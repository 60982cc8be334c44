"""Whether a user without capabilities inside a container can read a mount."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from pathlib import Path

_MOST_ENTRIES = 2000


def unreadable(path: Path, uid: int, gids: Collection[int]) -> Path | None:
    """The first of ``path`` and its contents that this user cannot read; ``None`` if all are fine.

    Decides by owner, group and mode, as the kernel does for a process without capabilities; ignores
    ACLs. Checks at most 2,000 entries. The folders above ``path`` do not matter: a bind mount
    bypasses them.
    """
    for entry, info in _entries(path):
        bits = 5 if stat.S_ISDIR(info.st_mode) else 4
        if not permitted(info, uid, gids, bits):
            return entry
    return None


def permitted(info: os.stat_result, uid: int, gids: Collection[int], bits: int) -> bool:
    """Whether the mode grants ``wanted``, a sum of 4 (read), 2 (write) and 1 (search)."""
    mode = stat.S_IMODE(info.st_mode)
    if info.st_uid == uid:
        mode >>= 6
    elif info.st_gid in gids:
        mode >>= 3
    return mode & bits == bits


def _entries(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    pending = [path]
    count = 0
    while pending and count < _MOST_ENTRIES:
        entry = pending.pop()
        try:
            info = entry.stat()
            children = sorted(entry.iterdir()) if stat.S_ISDIR(info.st_mode) else []
        except OSError:
            continue  # a dangling link, or something that the caller cannot see either
        count += 1
        yield entry, info
        pending.extend(reversed([child for child in children if not child.is_symlink()]))
