"""What changed since the list was read, told by the times of folders: no process is started for it.

A recorder writes its plan, its sessions and its summaries into a study's folder, and labels are
replaced there; what a run that goes on writes into its session changes the file alone.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from gpuwatch.analysis.summary.listing import FIRST_STEP_LINES, Labelled, ListedSession, listing
from gpuwatch.core import paths
from gpuwatch.core.errors import GpuwatchError
from gpuwatch.core.models import JSON
from gpuwatch.core.text import clean
from gpuwatch.core.units import binary
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.status import State

_CHANGES = frozenset(
    state.value for state in (State.QUEUED, State.STARTING, State.RUNNING, State.LOST)
)
_MOST_READ = 16
"""Sessions that are read again at once."""

Signature = dict[str, int]
"""Folders and when they changed, in nanoseconds."""


def signature(entries: Iterable[ListedSession]) -> Signature:
    """The folders that a change of the list would touch, as they are now."""
    found: Signature = {}
    folders = {str(entry.path.parent) for entry in entries}
    folders |= {str(folder) for folder in (*paths.studies_elsewhere(), *paths.run_folders())}
    home = paths.data_home()
    for folder in (*folders, str(home), str(paths.runs_home())):
        _note(found, folder)
    with suppress(OSError), os.scandir(home) as inside:
        for each in inside:
            if each.path not in found and each.is_dir():
                _note(found, each.path)
    return found


def _note(found: Signature, folder: str) -> None:
    try:
        found[folder] = os.stat(folder).st_mtime_ns
    except OSError:
        found[folder] = -1


_LEAST_FREE, _LEAST_SHARE, _ENOUGH = 5 << 30, 0.05, 100 << 30


def little_room() -> str:
    """That the disk of the recordings is nearly full; empty where it is not, or not known."""
    home = paths.data_home()
    try:
        disk = shutil.disk_usage(next(each for each in (home, *home.parents) if each.exists()))
    except OSError:
        return ""
    least = min(_ENOUGH, disk.total / 4, max(_LEAST_FREE, _LEAST_SHARE * disk.total))
    if disk.free >= least:
        return ""
    return f"{binary(disk.free)} of {binary(disk.total)} left on the disk of recordings, {home}"


_LABELS = (*Labelled.__annotations__, "run", "block")
_SPEED = ("step_median_seconds", "samples_per_second", "mfu", "mfu_at_maximum_clock")
"""What is not read again: of a session's study, and of a long run."""


def fresh(listed: Sequence[ListedSession]) -> dict[Path, ListedSession]:
    """The sessions that may go on, read again; those that cannot be read are left out."""
    found = {}
    for old in [each for each in listed if each.status in _CHANGES][:_MOST_READ]:
        try:
            with SessionReader(old.path) as reader:
                long = reader.last_step() > FIRST_STEP_LINES
                known = long and old.step_median_seconds is not None
                new = drawable(listing(reader, speed=not known))
        except GpuwatchError:
            continue
        known = known and new.status in _CHANGES
        kept = {key: getattr(old, key) for key in (*_LABELS, *(_SPEED if known else ()))}
        found[old.path] = replace(new, **kept)
    return found


_Row = TypeVar("_Row", bound=Labelled)


def drawable(row: _Row) -> _Row:
    """``row`` with texts that can be drawn; they may come from anybody."""
    note = "\n".join(clean(line).rstrip() for line in row.note.splitlines())
    return replace(row, **{**_cleaned(vars(row)), "note": note})


def _cleaned(value: JSON) -> JSON:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, (list, tuple)):
        return tuple(map(_cleaned, value))
    if isinstance(value, Mapping):
        return {key: _cleaned(each) for key, each in value.items()}
    return value
