"""Mount points in folders that this machine provides to a container."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from gpuwatch.core.models import Mount


def below(mount: Mount, root: str) -> bool:
    """Whether the mount's target lies below ``root`` in the container."""
    return PurePosixPath(root) in PurePosixPath(mount.target).parents


def make(mounts: Iterable[Mount], root: str, folder: Path) -> None:
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
