"""What is noted of a job in the study's folder here, for whoever follows it next."""

from __future__ import annotations

from pathlib import Path

from gpuwatch.core import output
from gpuwatch.core.errors import NotAvailable
from gpuwatch.places.base import Job
from gpuwatch.session.placement import CANCELLED, POD, WORK


def note_cancelled(job: Job) -> None:
    """Note that this attempt is to end."""
    output.write_text(job.folder / CANCELLED, f"{job.attempt}\n")


def was_cancelled(job: Job) -> bool:
    """Whether this attempt was to end."""
    try:
        return (job.folder / CANCELLED).read_text(errors="replace").strip() == job.attempt
    except OSError:
        return False


def note_pod(job: Job, uid: str) -> None:
    """Note the pod in which this attempt is recorded.

    Raises:
        NotAvailable: it cannot be written.
    """
    try:
        output.write_text(job.folder / POD, f"{job.attempt} {uid}\n")
    except OSError as error:
        raise unwritten(job.folder, error) from error


def noted_pod(job: Job) -> str | None:
    """The pod in which this attempt is recorded; ``None``: not noted yet."""
    try:
        attempt, _, uid = (job.folder / POD).read_text(errors="replace").strip().partition(" ")
    except OSError:
        return None
    return uid if attempt == job.attempt and uid else None


def keep(job: Job, name: str, file: Path) -> None:
    """Keep a copy of a file there, under this name, until the job takes it.

    Raises:
        NotAvailable: it cannot be written.
    """
    try:
        output.write_once(job.folder / name, file.read_bytes())
    except OSError as error:
        raise unwritten(job.folder, error) from error


def kept_folder(job: Job) -> bytes | None:
    """The tar file that was kept; ``None``: it is not there."""
    try:
        return (job.folder / WORK).read_bytes()
    except OSError:
        return None


def unwritten(folder: Path, error: OSError) -> NotAvailable:
    """What to say of a folder that cannot be written."""
    return NotAvailable(f"cannot write to {folder}: {error.strerror}", "free some space")
