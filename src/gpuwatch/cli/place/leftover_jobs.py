"""Ends what is left of this user's in clusters: ``gpuwatch stop --all``."""

from __future__ import annotations

from pathlib import Path

from gpuwatch.cli.place import stopping
from gpuwatch.core.errors import NotAvailable
from gpuwatch.core.text import shell, to_paste
from gpuwatch.places import placements
from gpuwatch.places.kubernetes import own_jobs
from gpuwatch.places.kubernetes.own_jobs import OwnJob


def found(noted: Path) -> list[OwnJob]:
    """This user's Jobs where ``noted``, one of ``own_jobs.namespaces``, says that something was
    sent.

    Raises:
        NotAvailable: the cluster cannot be asked.
    """
    try:
        return own_jobs.found(noted)
    except NotAvailable as error:
        names = ", ".join(going_on) if (going_on := _going_on(noted)) else "what is left there"
        hint = stopping.later(error.hint, "gpuwatch stop --all")
        raise NotAvailable(
            f"{names} was not ended: a cluster that you sent studies to cannot be asked: "
            f"{error.message}",
            f"{hint}; or forget that cluster: rm {shell(noted)}",
        ) from error


def _going_on(noted: Path) -> list[str]:
    """The studies that go on where ``noted`` says, as far as is known here."""
    return [
        Path(placed.study).name
        for placed in placements.all_placed()
        if not placed.done and own_jobs.is_of(noted, placed.place)
    ]


def end(job: OwnJob) -> str | None:
    """End one that nobody follows; what is known here is fetched first. Returns a line on it,
    ``None``: it was over.

    Raises:
        NotAvailable: the cluster cannot be asked, or the Job may be of a study that cannot be read.
    """
    known = (placed for placed in placements.all_placed() if placed.attempt == job.attempt)
    placed = next(known, None)
    if placed is None and (unread := placements.unreadable()):
        raise NotAvailable(
            f"{job.where} is left alone: {unread[0]} cannot be read, and may be of its study",
            f"if it is of no use: rm -r {shell(unread[0])}",
        )
    if placed is None or placed.done:
        job.delete()
        return f"deleted {job.where}: no study here goes on there"
    name = Path(placed.study).name
    if placements.follower(placed) is not None:
        return f"{name} goes on as {job.where}: {to_paste('stop', name)} ends it"
    return stopping.stop(placed)
