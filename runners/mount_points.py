"""Mount points in folders that a container gets from this machine."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from gpuwatch.core.models import Mount


def below(mount: Mount, root: str) -> bool:
    """Whether it is mounted in the container somewhere below ``root``."""
    return PurePosixPath(root) in PurePosixPath(mount.target).parents


def make(mounts: Iterable[Mount], root: str, folder: Path) -> None:
    """In ``folder``, which the container will see as ``root``: what to mount on."""
    for mount in mounts:
        if not below(mount, root):
            continue
        place = folder / PurePosixPath(mount.target).relative_to(root)
        if Path(mount.source).is_dir():
            place.mkdir(parents=True, exist_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch()
