"""The list of sessions and studies, with a cache for sessions that are over.

A damaged cache, or one of another version, is ignored.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from gpuwatch import __version__
from gpuwatch.analysis.summary import listing
from gpuwatch.core import output, paths
from gpuwatch.core.errors import GpuwatchError, StorageError
from gpuwatch.core.models import JSON, those
from gpuwatch.session.placement import Placement
from gpuwatch.session.placement import read as read_placement
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.status import FAILED, State
from gpuwatch.session.study.label import NONE
from gpuwatch.session.study.labels import read_with_problem
from gpuwatch.session.study.plan import PLAN
from gpuwatch.session.study.study_folder import SUMMARY_JSON, is_held
from gpuwatch.session.study.summary import sayings

_OVER = (State.FINISHED, State.STOPPED, *FAILED)
_VERSION = [14, __version__, *listing.ListedSession.__annotations__]


def listed(paths: Sequence[Path], waiting: Sequence[Path] = ()) -> listing.Listed:
    """List the sessions at the absolute ``paths`` with their labels, and their studies; ``waiting``
    are the folders of studies that have no session yet."""
    cache = _Cache()
    folders: dict[Path, list[listing.ListedSession]] = {folder: [] for folder in waiting}
    for path in paths:
        folders.setdefault(path.parent, []).append(cache.session(path))
    sessions, studies = [], []
    for folder, rows in folders.items():
        facts = cache.of_file(folder / PLAN, partial(listing.planned, folder))
        placement = read_placement(folder)
        place, job = ("", "") if placement is None else (placement.short, placement.job)
        labels, problem = read_with_problem(folder)
        told: dict[str, JSON] = {"labels_problem": problem, "place": place}
        for row in rows:
            run, block = facts["places"].get(row.path.name, (None, None))
            label = vars(labels.get(row.path.name, NONE))
            sessions.append(replace(row, **label, **told, job=job, run=run, block=block))
        if len(rows) != 1 or (facts["runs"] or 0) > 1:
            # While it waits, a study of one run has the label of that.
            own = labels.get("", NONE) if rows else next(iter(labels.values()), NONE)
            said = cache.of_file(folder / SUMMARY_JSON, partial(_sayings, folder))
            studies.append(_study(folder, rows, facts, {**vars(own), **told}, said, placement))
    cache.save()
    sessions.sort(key=lambda row: (row.started, str(row.path)), reverse=True)
    return listing.Listed(tuple(sessions), tuple(studies))


def _study(
    folder: Path,
    rows: Sequence[listing.ListedSession],
    facts: dict[str, JSON],
    label: dict[str, JSON],
    sayings: Sequence[JSON],
    placement: Placement | None,
) -> listing.ListedStudy:
    going_on = is_held(folder) if placement is None else placement.going_on
    going_on = going_on and (facts["runs"] or 0) > len(rows)
    verdicts = {each["kind"] for each in sayings} - {"sweeps", "noise"}
    if going_on and verdicts == {"described"}:
        over = f"{sum(row.status in _OVER for row in rows)} of {facts['runs']} runs"
        first = {**sayings[0], "short": f"{over}, no verdict yet"}
        sayings = [first, *(each for each in sayings if each["kind"] != "described")]
    environments = facts["environments"] or dict.fromkeys(row.environment for row in rows[::-1])
    return listing.ListedStudy(
        path=folder,
        study=folder.name,
        **label,
        title=facts["title"],
        question=facts["question"],
        commands=tuple(facts["commands"]),
        environments=tuple(environments),
        runs=facts["runs"],
        sessions=len(rows),
        going_on=going_on,
        placement=None if placement is None else _placement(placement),
        says=tuple(sayings),
    )


def _placement(placement: Placement) -> dict[str, JSON]:
    part = placement.in_part
    sent = placement.changes[0][1] if placement.changes else 0.0
    return {
        "place": placement.place,
        "state": placement.state.value,
        **those(placement, "text", "hint"),
        "sent": listing.iso(int(sent * 1e9)) if 0 < sent < 1e10 else "",
        "starts": placement.starts,
        "in_part": None if part is None else [vars(run) for run in part.runs],
    }


def _sayings(folder: Path) -> list[JSON]:
    return [vars(each) for each in sayings(folder)]


def _session(path: Path) -> listing.ListedSession:
    """What is told of a session, read from its small tables only."""
    try:
        with SessionReader(path) as reader:
            return listing.listing(reader)
    except GpuwatchError as error:
        return listing.ListedSession(
            path=path, study=path.parent.name, status="unreadable", status_text=str(error)
        )


def _lasts(path: Path, row: JSON) -> bool:
    """Whether what is told of a session stays, as long as its file does. Why its place told it to
    end may come later."""
    placement = read_placement(path.parent) if row["status"] == State.STOPPED.value else None
    return row["status"] in _OVER and (placement is None or placement.state.over)


class _Cache:
    """Values read from files, by path; valid while size, mtime and inode stay the same."""

    def __init__(self) -> None:
        self._file = paths.cache_home() / "sessions.json"
        self._known: dict[str, tuple[list[int], JSON]] = {}
        self._changed = False
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            cache = json.loads(self._file.read_bytes())
            if cache["version"] == _VERSION:
                files = cache["files"].items()
                self._known = {path: (mark, value) for path, (mark, value) in files}

    def session(self, path: Path) -> listing.ListedSession:
        """A session; one that is over is read only once."""
        row = self.of_file(path, lambda: _session(path).document(), partial(_lasts, path))
        return listing.ListedSession(**listing.values_of({**row, "path": path}))

    def of_file(
        self, path: Path, read_: Callable[[], JSON], lasts: Callable[[JSON], bool] = lambda _: True
    ) -> JSON:
        """What ``read_`` reads of a file, kept until the file changes if it ``lasts``."""
        mark, known = None, self._known.get(str(path))
        with contextlib.suppress(OSError):
            status = os.stat(path)
            mark = [status.st_mtime_ns, status.st_size, status.st_ino]
        if known is not None and known[0] == mark:
            return known[1]
        value = read_()
        if mark is not None and lasts(value):
            self._known[str(path)] = (mark, value)
            self._changed = True
        return value

    def save(self) -> None:
        """Write the cache if it changed, without deleted files. Errors are ignored."""
        if not self._changed:
            return
        kept = {path: known for path, known in self._known.items() if os.path.exists(path)}
        text = json.dumps({"version": _VERSION, "files": kept}, separators=(",", ":"))
        with contextlib.suppress(OSError, StorageError):
            paths.private_folder(self._file.parent)
            output.write_text(self._file, text)
            self._changed = False
