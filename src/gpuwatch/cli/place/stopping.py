"""Ends studies at their places, and what is left of this user's in clusters."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from gpuwatch.cli.place import sending
from gpuwatch.core.errors import NotAvailable, UsageError
from gpuwatch.core.text import shell, to_paste
from gpuwatch.places import placements
from gpuwatch.places.kubernetes import own_jobs
from gpuwatch.places.kubernetes.own_jobs import OwnJob
from gpuwatch.places.placements import Placed
from gpuwatch.session import placement

_FETCH_SECONDS = 60.0
"""How long a study that was ended may take until all of it is here."""
_LOOK_SECONDS = 0.2


def stop(placed: Placed) -> str | None:
    """End the study's job, and wait until all is here; returns what was done, ``None`` if it was
    over.

    Raises:
        NotAvailable: the place cannot be reached, or the job does not end.
    """
    if placed.done:
        return None
    study = Path(placed.study)
    try:
        place = sending.opened(placed)
        native = placed.native or place.find(placed.job)
        if native is None:
            return _never_submitted(placed)
        place.cancel(placed.job, native)
    except NotAvailable as error:
        raise NotAvailable(
            f"{study.name} was not stopped and goes on: {error.message}",
            later(error.hint, to_paste("stop", study.name)),
        ) from error
    if not study.is_dir():  # removed or renamed by hand
        place.let_go(placed.job, native)
        placements.update(placed, done=True)
        return f"stopped {study} on {placed.place}; its folder is not here any more"
    if placements.follower(placed) is None:
        sending.follow(placed)
    deadline = time.monotonic() + _FETCH_SECONDS
    while time.monotonic() < deadline:
        known = placement.read(study)
        if known is None or not known.going_on:
            return f"stopped {study} on {placed.place}"
        time.sleep(_LOOK_SECONDS)
    raise NotAvailable(
        f"{study} was told to stop on {placed.place}, but is not over yet",
        f"look at it: {to_paste('attach', study.name)}",
    )


def later(hint: str | None, command: str) -> str:
    """What helps, and then the command that ends it."""
    return f"try again later: {command}" if hint is None else f"{hint}; then: {command}"


def _never_submitted(placed: Placed) -> str:
    """Note that the study is over, if nobody is about to submit it."""
    with contextlib.suppress(UsageError):  # somebody follows it, and submits it now
        with placements.lease(placed):
            sending.note_cancelled(placed)
        return f"{placed.study} is cancelled; it had not begun on {placed.place}"
    raise NotAvailable(
        f"{placed.study} is being submitted to {placed.place}",
        f"try again in a moment: {to_paste('stop', Path(placed.study).name)}",
    )


def jobs_left(noted: Path) -> list[OwnJob]:
    """This user's Jobs where ``noted``, one of ``own_jobs.namespaces``, says that something was
    sent.

    Raises:
        NotAvailable: the cluster cannot be asked.
    """
    try:
        return own_jobs.found(noted)
    except NotAvailable as error:
        names = ", ".join(
            Path(placed.study).name
            for placed in placements.all_placed()
            if not placed.done and own_jobs.is_of(noted, placed.place)
        )
        hint = later(error.hint, "gpuwatch stop --all")
        raise NotAvailable(
            f"{names or 'what is left there'} was not ended: a cluster that you sent studies to "
            f"cannot be asked: {error.message}",
            f"{hint}; or forget that cluster: rm {shell(noted)}",
        ) from error


def end_job(job: OwnJob) -> str | None:
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
    return stop(placed)
