"""The user's working folder as one tar file: what git would track of it, or all of it."""

from __future__ import annotations

import os
import subprocess
import tarfile
from pathlib import Path

from gpuwatch.core.errors import StorageError
from gpuwatch.core.lazy_dataclass import dataclass

ASK_BYTES = 100_000_000
"""Above this size the user is asked first."""


@dataclass(frozen=True)
class WorkingFolder:
    """A folder, and the files of it that are sent."""

    path: Path
    files: tuple[str, ...]
    """Relative paths, sorted."""
    bytes: int
    ignored: tuple[str, ...] = ()
    """What git ignores; a folder ends with ``/``, and stands for all in it."""


def find(path: Path) -> WorkingFolder:
    """What to send of ``path``: in a git repository what is tracked, or new and not ignored; else
    everything.

    Raises:
        StorageError: it cannot be read.
    """
    listed = _listed_by_git(path, "--cached", "--others")
    ignored: list[str] = []
    for name in sorted(_listed_by_git(path, "--others", "--ignored", "--directory") or ()):
        if not name.startswith(tuple(ignored)) and not name.endswith("__pycache__/"):
            ignored.append(name)
    names = sorted(_all(path) if listed is None else listed)
    files, total = [], 0
    for name in names:
        try:
            status = os.lstat(path / name)
        except FileNotFoundError:  # deleted, and git does not know yet
            continue
        except OSError as error:
            raise StorageError(f"cannot read {path / name}: {error.strerror}", None) from error
        files.append(name)
        total += status.st_size
    return WorkingFolder(path, tuple(files), total, tuple(ignored))


def pack(folder: WorkingFolder, target: Path) -> None:
    """Write its files to the tar file ``target``, links as links.

    Raises:
        StorageError: a file cannot be read, or the archive cannot be written.
    """
    try:
        with tarfile.open(target, "w") as archive:
            for name in folder.files:
                archive.add(folder.path / name, name, recursive=False)
    except OSError as error:
        raise StorageError(
            f"cannot pack {error.filename or folder.path}: {error.strerror}",
            "free some space, or start it in a smaller folder",
        ) from error


def _listed_by_git(path: Path, *which: str) -> list[str] | None:
    """``None`` if it is in no repository, or there is no git. Repositories inside it, submodules or
    not, are listed in their turn: git itself tells only their folders."""
    command = ["git", "ls-files", "-z", "--exclude-standard", *which]
    try:
        done = subprocess.run(
            command, cwd=path, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    except OSError:
        return None
    if done.returncode != 0:
        return None
    names = []
    for name in map(os.fsdecode, filter(None, done.stdout.split(b"\0"))):
        inner = path / name
        is_repository = not inner.is_symlink() and (inner / ".git").exists()
        listed = _listed_by_git(inner, *which) if is_repository else None
        names += [name] if listed is None else [os.path.join(name, each) for each in listed]
    return names


def _all(path: Path) -> list[str]:
    return [
        os.path.relpath(os.path.join(folder, name), path)
        for folder, _, names in os.walk(path)
        for name in names
    ]
