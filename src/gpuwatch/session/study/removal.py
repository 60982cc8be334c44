"""Removing sessions and studies: what gpuwatch wrote in a folder, and nothing else."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Collection, Iterator
from pathlib import Path

from gpuwatch.core.errors import StorageError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.session.study import labels
from gpuwatch.session.study.plan import PLAN, read
from gpuwatch.session.study.study_folder import ROOFLINE, SUMMARY_JSON, SUMMARY_MARKDOWN, held

OF_A_STUDY = frozenset(
    {
        PLAN,
        SUMMARY_JSON,
        SUMMARY_MARKDOWN,
        "summary.csv",
        "summary.html",
        ROOFLINE,
        "recorder.log",
    }
)
"""Files that gpuwatch writes beside the sessions of a study that it planned."""
_SESSION = re.compile(r"\.gpuwatch(\.lost-\d+)?(-journal)?$")
_HALF_WRITTEN = re.compile(r"\.(?P<name>.+)\.(\d+|new(-journal)?)")


@dataclass(frozen=True)
class Removal:
    """What goes of one folder."""

    folder: Path
    sessions: tuple[str, ...]
    """File names of the sessions that go."""
    files: tuple[str, ...]
    """All files that go: sessions, their journals, of a whole study what is beside them."""
    bytes: int
    whole: bool
    """No session stays."""
    kept: tuple[str, ...] = ()
    """What stays of a whole study's folder: not of gpuwatch's making, or links."""
    ours: bool = False
    """gpuwatch made the folder, for a study; it goes when it is empty."""


def removal(folder: Path, sessions: Collection[str] | None) -> Removal:
    """What goes with ``sessions`` (file names) of a folder, or, for ``None``, with all of them.

    Raises:
        StorageError: the folder cannot be read.
    """
    try:
        with os.scandir(folder) as entries:
            found = {entry.name: entry.stat(follow_symlinks=False) for entry in entries}
    except OSError as error:
        raise StorageError(f"cannot read {folder}: {error.strerror}", "see who owns it") from error
    files = {name: known.st_size for name, known in found.items() if stat.S_ISREG(known.st_mode)}
    there = [name for name in files if name.endswith(".gpuwatch")]
    going = sorted(there if sessions is None else set(there) & set(sessions))
    whole = len(going) == len(there)
    ours = PLAN in files and read(folder) is not None
    if whole:
        gone = [name for name in files if _is_own(name, folder, planned=ours)]
    else:
        gone = [each for name in going for each in (name, f"{name}-journal") if each in files]
    return Removal(
        folder,
        tuple(going),
        tuple(sorted(gone)),
        sum(files[name] for name in gone),
        whole,
        tuple(sorted(found.keys() - set(gone))) if whole else (),
        ours,
    )


def _is_own(name: str, folder: Path, *, planned: bool) -> bool:
    half = _HALF_WRITTEN.fullmatch(name)
    name = half["name"] if half else name
    if name == labels.LABELS:
        return half is not None or bool(labels.read(folder))
    return bool(_SESSION.search(name)) or (planned and name in OF_A_STUDY)


def remove(what: Removal) -> None:
    """Carry it out, while no recorder can go through the study; links are never followed.

    Raises:
        UsageError: a recorder goes through the study.
        StorageError: something cannot be removed; what was removed before is gone.
    """
    try:
        with held(what.folder), _opened(what.folder) as fd:
            # The plan last: without it the rest would be nobody's.
            for name in sorted(what.files, key=lambda name: name == PLAN):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=fd)
    except OSError as error:
        raise StorageError(
            f"cannot remove {error.filename} in {what.folder}: {error.strerror}",
            "see who owns the folder",
        ) from error
    if not what.whole:
        labels.forget(what.folder, what.sessions)
    elif what.ours and not what.kept:
        with contextlib.suppress(OSError):  # somebody put a file there just now
            what.folder.rmdir()


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int]:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)
