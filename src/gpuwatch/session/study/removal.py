"""Removes sessions and studies: only files that gpuwatch wrote, and nothing else."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Collection
from pathlib import Path

from gpuwatch.core.errors import StorageError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.session.placement import FILES_OF_A_JOB, PLACEMENT
from gpuwatch.session.study import labels, study_folder
from gpuwatch.session.study.attempts import ATTEMPTS
from gpuwatch.session.study.plan import PLAN, read

OF_A_STUDY = frozenset(
    {
        PLAN,
        study_folder.SUMMARY_JSON,
        study_folder.SUMMARY_MARKDOWN,
        "summary.csv",
        "summary.html",
        study_folder.ROOFLINE,
        "notify.log",
        study_folder.RECORDER_LOG,
        PLACEMENT,
        ATTEMPTS,
        *FILES_OF_A_JOB,
    }
)
"""Files that gpuwatch writes beside the sessions of a planned study."""
_SESSION = re.compile(r"\.gpuwatch(\.lost-\d+)?(-journal)?$")
_HALF_WRITTEN = re.compile(r"\.(?P<name>.+)\.(\d+|new(-journal)?)")


@dataclass(frozen=True)
class Removal:
    """What to remove from one folder."""

    folder: Path
    sessions: tuple[str, ...]
    """File names of the sessions to remove."""
    files: tuple[str, ...]
    """All files to remove: sessions and journals; for a whole study also the other files."""
    bytes: int
    whole: bool
    """Whether no session stays."""
    kept: tuple[str, ...] = ()
    """What stays of a whole study's folder: files not from gpuwatch, and links."""
    ours: bool = False
    """Whether gpuwatch created the folder for a study, so that it is removed when empty."""


def removal(folder: Path, sessions: Collection[str] | None) -> Removal:
    """What to remove with ``sessions`` (file names; ``None``: all) of a folder.

    Raises:
        StorageError: the folder cannot be read.
    """
    try:
        with os.scandir(folder) as entries:
            by_name = {entry.name: entry.stat(follow_symlinks=False) for entry in entries}
    except OSError as error:
        raise StorageError(
            f"cannot read {folder}: {error.strerror}", "check who owns it"
        ) from error
    files = {
        name: status.st_size for name, status in by_name.items() if stat.S_ISREG(status.st_mode)
    }
    existing = [name for name in files if name.endswith(".gpuwatch")]
    going = sorted(existing if sessions is None else set(existing) & set(sessions))
    whole = len(going) == len(existing)
    ours = PLAN in files and read(folder) is not None
    if whole:
        removed = [name for name in files if _is_own(name, folder, planned=ours)]
    else:
        removed = [file for name in going for file in (name, f"{name}-journal") if file in files]
    return Removal(
        folder,
        tuple(going),
        tuple(sorted(removed)),
        sum(files[name] for name in removed),
        whole,
        tuple(sorted(by_name.keys() - set(removed))) if whole else (),
        ours,
    )


def _is_own(name: str, folder: Path, *, planned: bool) -> bool:
    half = _HALF_WRITTEN.fullmatch(name)
    name = half["name"] if half else name
    if name == labels.LABELS:
        return half is not None or bool(labels.read(folder))
    return bool(_SESSION.search(name)) or (planned and name in OF_A_STUDY)


def remove(what: Removal) -> None:
    """Carry out a removal while holding the study's lock; never follows links.

    Raises:
        UsageError: a recorder is running the study.
        StorageError: something cannot be removed; files removed before that are gone.
    """
    try:
        with study_folder.held(what.folder), study_folder.opened(what.folder, os.O_NOFOLLOW) as fd:
            # The plan last: without it the rest would not count as gpuwatch's.
            for name in sorted(what.files, key=lambda name: name == PLAN):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=fd)
    except OSError as error:
        raise StorageError(
            f"cannot remove {error.filename} in {what.folder}: {error.strerror}",
            "check who owns the folder",
        ) from error
    if not what.whole:
        labels.forget(what.folder, what.sessions)
    elif what.ours and not what.kept:
        with contextlib.suppress(OSError):  # somebody just put a file there
            what.folder.rmdir()
