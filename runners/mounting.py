"""Mounts of this machine in a container: who may use them, and what they are mounted on."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path, PurePosixPath

from gpuwatch.core.models import Mount, Problem
from gpuwatch.core.text import shell

_MOST_ENTRIES = 2000


def unusable(mount: Mount, uid: int, groups: Collection[int], who: str) -> list[Problem]:
    """Why the workload's user, ``who`` has no capabilities, cannot use a mount."""
    source = Path(mount.source)
    if (entry := unreadable(source, uid, groups)) is not None:
        hint = f"chmod -R o+rX {shell(mount.source)}, or run as its owner"
        return [Problem("mount-unreadable", f"{entry} cannot be read by {who}", hint)]
    with contextlib.suppress(OSError):
        bits = 3 if source.is_dir() else 2
        if mount.writable and not permitted(source.stat(), uid, groups, bits):
            hint = f"chmod o+w {shell(mount.source)}, or mount it without :rw"
            return [Problem("mount-unwritable", f"{source} cannot be written by {who}", hint)]
    return []


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


def is_root(folder: Path) -> bool:
    """Whether a folder holds a root file system; links in it may be absolute, so they count."""
    return any(os.path.lexists(folder / name) for name in ("bin/sh", "usr/bin/sh"))


def below(mount: Mount, root: str) -> bool:
    """Whether the mount's target lies below ``root`` in the container."""
    return PurePosixPath(root) in PurePosixPath(mount.target).parents


def make_points(mounts: Iterable[Mount], root: str, folder: Path) -> None:
    """Create mount points in ``folder``, which the container sees as ``root``."""
    for mount in mounts:
        if not below(mount, root):
            continue
        place = folder / PurePosixPath(mount.target).relative_to(root)
        if Path(mount.source).is_dir():
            place.mkdir(parents=True, exist_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch()
