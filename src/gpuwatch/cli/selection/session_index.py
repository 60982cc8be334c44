"""The list of sessions and studies, with a cache for sessions that are over.

A damaged cache, or one of another version, is ignored.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from gpuwatch import __version__
from gpuwatch.core import output, paths
from gpuwatch.core.errors import GpuwatchError, StorageError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import JSON
from gpuwatch.session.placement import Placement
from gpuwatch.session.placement import read as read_placement
from gpuwatch.session.study.label import NONE, Label
from gpuwatch.session.study.labels import read_with_problem
from gpuwatch.session.study.plan import PLAN
from gpuwatch.session.study.study_folder import SUMMARY_JSON, is_held

_OVER = frozenset({"finished", "failed", "killed", "stopped"})
_TEXTS = (
    *("id", "path", "status", "status_text", "reason", "failure"),
    *("workload", "command", "command_label", "environment", "started", "study"),
    "peak_gpu_memory_method",
)
_NUMBERS = (
    *("seconds", "steps", "step_median_seconds", "samples_per_second"),
    *("mfu", "mfu_at_maximum_clock", "peak_gpu_memory_bytes"),
)
_VERSION = [5, __version__]


@dataclass(frozen=True)
class Listed:
    """Sessions, newest first, and studies of several runs; for the keys see ``docs/json.md``."""

    sessions: list[dict[str, JSON]]
    studies: list[dict[str, JSON]]

    @property
    def problems(self) -> list[str]:
        """Why names, tags and notes of some studies are missing; each reason once."""
        problems = [row["labels_problem"] for row in self.sessions]
        return sorted(dict.fromkeys(filter(None, problems)))


def listed(paths: Sequence[Path], waiting: Sequence[Path] = ()) -> Listed:
    """List the sessions at the absolute ``paths`` with their labels, and their studies; ``waiting``
    are the folders of studies that have no session yet."""
    cache = _Cache()
    rows = [cache.session(path) for path in paths]
    folders: dict[Path, list[dict[str, JSON]]] = {folder: [] for folder in waiting}
    for path, row in zip(paths, rows, strict=True):
        folders.setdefault(path.parent, []).append(row)
    studies = []
    for folder, folder_rows in folders.items():
        facts, (labels, problem) = cache.plan(folder), read_with_problem(folder)
        for row in folder_rows:
            name = os.path.basename(row["path"])
            place = facts["places"].get(name, (None, None))
            row.update(_label(labels.get(name, NONE), problem), run=place[0], block=place[1])
        if len(folder_rows) != 1 or (facts["runs"] or 0) > 1:
            label = _label(labels.get("", NONE), problem)
            studies.append(_study(folder, folder_rows, facts, label, cache.sayings(folder)))
    cache.save()
    rows.sort(key=lambda row: (str(row["started"]), row["path"]), reverse=True)
    return Listed(rows, studies)


def _label(label: Label, problem: str | None) -> dict[str, JSON]:
    return {
        "name": label.name,
        "tags": list(label.tags),
        "note": label.note,
        "labels_problem": problem,
    }


def _study(
    folder: Path,
    rows: Sequence[dict[str, JSON]],
    facts: dict[str, JSON],
    label: dict[str, JSON],
    sayings: list[JSON],
) -> dict[str, JSON]:
    to_come = (facts["runs"] or 0) - len(rows)
    placement = read_placement(folder)
    going_on = is_held(folder) if placement is None else placement.going_on
    return {
        "path": str(folder),
        "study": folder.name,
        **label,
        "title": facts["title"],
        "question": facts["question"],
        "commands": facts["commands"],
        "environments": facts["environments"]
        or list(dict.fromkeys(row["environment"] for row in reversed(rows))),
        "runs": facts["runs"],
        "sessions": len(rows),
        "going_on": to_come > 0 and going_on,
        "placement": None if placement is None else _placement(placement),
        "says": sayings,
    }


def _placement(placement: Placement) -> dict[str, JSON]:
    part = placement.in_part
    return {
        "place": placement.place,
        "state": placement.state.value,
        "text": placement.text,
        "hint": placement.hint,
        "starts": placement.starts,
        "in_part": None if part is None else [asdict(run) for run in part.runs],
    }


def session_row(path: Path) -> dict[str, JSON]:
    """The list row of a session, read from its small tables only."""
    from gpuwatch.analysis.summary.listing import listing
    from gpuwatch.session.reading.reader import SessionReader

    try:
        with SessionReader(path) as reader:
            return listing(reader)
    except GpuwatchError as error:
        return {
            **dict.fromkeys(_TEXTS, ""),
            **dict.fromkeys(_NUMBERS),
            "path": str(path),
            "status": "unreadable",
            "status_text": str(error),
            "study": path.parent.name,
            "peak_gpu_memory_method": Method.UNAVAILABLE.value,
        }


class _Cache:
    """Values read from files, by path; valid while size, mtime and inode stay the same."""

    def __init__(self) -> None:
        self._file = paths.cache_home() / "sessions.json"
        self._known = self._load()
        self._changed = False

    def session(self, path: Path) -> dict[str, JSON]:
        """The row of a session; a session that is over is read only once."""
        mark = _mark(path)
        known = self._known.get(str(path))
        if known is not None and known[0] == mark:
            return {**known[1], "path": str(path)}
        row = session_row(path)
        if row["status"] in _OVER and mark is not None:
            # A copy, because the caller adds labels to the row, and these are not cached.
            self._keep(str(path), mark, dict(row))
        return row

    def plan(self, folder: Path) -> dict[str, JSON]:
        """The result of :func:`gpuwatch.analysis.summary.listing.planned`."""
        from gpuwatch.analysis.summary.listing import planned

        plan: dict[str, JSON] = self._of_file(folder / PLAN, planned)
        return plan

    def sayings(self, folder: Path) -> list[JSON]:
        """The result of :func:`gpuwatch.session.study.summary.sayings`."""
        from gpuwatch.session.study.summary import sayings

        said: list[JSON] = self._of_file(
            folder / SUMMARY_JSON,
            lambda folder: [{"kind": each.kind, "text": each.text} for each in sayings(folder)],
        )
        return said

    def _of_file(self, path: Path, read_: Callable[[Path], JSON]) -> JSON:
        mark, known = _mark(path), self._known.get(str(path))
        if known is not None and known[0] == mark:
            return known[1]
        value = read_(path.parent)
        if mark is not None:
            self._keep(str(path), mark, value)
        return value

    def _keep(self, path: str, mark: list[int], value: JSON) -> None:
        self._known[path] = (mark, value)
        self._changed = True

    def _load(self) -> dict[str, tuple[list[int], JSON]]:
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            cache = json.loads(self._file.read_bytes())
            if cache["version"] == _VERSION:
                return {path: (mark, value) for path, (mark, value) in cache["files"].items()}
        return {}

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


def _mark(path: Path) -> list[int] | None:
    """mtime, size and inode of a file, which identify its version; ``None``: there is no file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return [status.st_mtime_ns, status.st_size, status.st_ino]
