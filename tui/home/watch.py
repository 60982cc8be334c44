"""What changed since the list was read, told by the times of folders: no process is started for it.

A recorder writes its plan, its sessions and its summaries into a study's folder, and labels are
replaced there; what a run that goes on writes into its session changes the file alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpuwatch.core import paths
from gpuwatch.core.errors import GpuwatchError
from gpuwatch.session.reading.status import State

if TYPE_CHECKING:
    from gpuwatch.tui.commands import Entry

_CHANGES = frozenset(
    state.value for state in (State.QUEUED, State.STARTING, State.RUNNING, State.LOST)
)
_MOST_READ = 16
"""Sessions that are read again at once."""

Signature = dict[str, int]
"""Folders and when they changed, in nanoseconds."""


def signature(entries: Iterable[Entry]) -> Signature:
    """The folders that a change of the list would touch, as they are now."""
    found: Signature = {}
    folders = {str(entry.path.parent) for entry in entries}
    folders |= {str(folder) for folder in (*paths.studies_elsewhere(), *paths.run_folders())}
    home = paths.data_home()
    for folder in (*folders, str(home), str(paths.runs_home())):
        _note(found, folder)
    try:
        with os.scandir(home) as inside:
            for each in inside:
                if each.path not in found and each.is_dir():
                    _note(found, each.path)
    except OSError:
        pass
    return found


def _note(found: Signature, folder: str) -> None:
    try:
        found[folder] = os.stat(folder).st_mtime_ns
    except OSError:
        found[folder] = -1


def fresh(entries: Sequence[Entry]) -> dict[Path, Entry]:
    """The sessions that may go on, read again; those that cannot be read are left out."""
    from gpuwatch.analysis.summary.listing import FIRST_STEP_LINES, listing
    from gpuwatch.session.reading.reader import SessionReader
    from gpuwatch.tui import commands

    found = {}
    for entry in [entry for entry in entries if entry.status in _CHANGES][:_MOST_READ]:
        try:
            with SessionReader(entry.path) as reader:
                known = entry.step_seconds is not None and reader.last_step() > FIRST_STEP_LINES
                new = commands.entry(listing(reader, speed=not known))
        except GpuwatchError:
            continue
        found[entry.path] = replace(
            new,
            path=entry.path,
            step_seconds=entry.step_seconds if known else new.step_seconds,
            samples_per_second=entry.samples_per_second if known else new.samples_per_second,
            mfu=entry.mfu if known else new.mfu,
            name=entry.name,
            tags=entry.tags,
            note=entry.note,
            run=entry.run,
            block=entry.block,
        )
    return found
