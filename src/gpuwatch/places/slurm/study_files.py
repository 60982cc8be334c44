"""What a job of Slurm leaves in the study's folder, which its node shares."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from gpuwatch.core import output, paths
from gpuwatch.core.errors import NotAvailable
from gpuwatch.places.base import STUDY, Job
from gpuwatch.session.placement import CAPSULE
from gpuwatch.session.study.study_folder import sessions_in

_END_BYTES = 4000


def copy_capsule(capsule: Path, folder: Path) -> None:
    """Put gpuwatch as one file where the node finds it.

    Raises:
        NotAvailable: the folder cannot be written.
    """
    try:
        output.write_once(folder / CAPSULE, capsule.read_bytes())
    except OSError as error:
        raise NotAvailable(
            f"cannot write to {folder}: {error.strerror}", "free some space"
        ) from error


def kept(data: bytes, suffix: str) -> Path:
    """A file of the user's cache that has ``data``, where a node finds it that shares the home
    folder; it is named after what it has.

    Raises:
        NotAvailable: the cache cannot be written.
    """
    path = paths.cache_home() / "capsules" / f"{sha256(data).hexdigest()}{suffix}"
    try:
        paths.make_private(path.parent)
        output.write_once(path, data)
    except OSError as error:
        raise NotAvailable(
            f"cannot write to {path.parent}: {error.strerror}", "free some space"
        ) from error
    return path


def start(capsule: Path, job: Job, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start gpuwatch here: the study's folder is the same."""
    words = [str(job.folder) if word == STUDY else word for word in arguments]
    return subprocess.Popen(
        [sys.executable, str(capsule), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def end_of(path: Path) -> str:
    """The end of a text file; empty if it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _END_BYTES))
            return file.read(_END_BYTES).decode(errors="replace")
    except OSError:
        return ""


def unfinished(folder: Path) -> bool:
    """Whether a recorder left a session without closing it: it then has a journal beside it."""
    return any(path.with_name(f"{path.name}-journal").exists() for path in sessions_in(folder))
