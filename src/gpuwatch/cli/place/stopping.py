"""Ends a study at its place."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from gpuwatch.cli.place import sending
from gpuwatch.core.errors import NotAvailable, UsageError
from gpuwatch.core.text import to_paste
from gpuwatch.places import placements
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
