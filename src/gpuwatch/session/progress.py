"""How far a study is: which of its runs comes after one, and whether anybody still records."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from gpuwatch.errors import GpuwatchError
from gpuwatch.models import JSON, mapping
from gpuwatch.session.reader import SessionReader
from gpuwatch.session.status import process_id
from gpuwatch.session.study import PLAN, sessions_in

_LARGEST_PLAN = 4 << 20


@dataclass(frozen=True)
class Following:
    """The run that a study has after another one."""

    place: int
    """Counts from 1, among ``total`` runs."""
    total: int
    label: str
    path: Path
    """Its session, there once it has begun."""


def following(path: Path) -> Following | None:
    """The next run of the study that ``path`` belongs to; one that cannot run is left out."""
    plan = _plan(path.parent)
    runs = plan["runs"] if isinstance(plan.get("runs"), list) else []
    names = [_file(run) for run in runs]
    if path.name not in names:
        return None
    problems = mapping(plan.get("problems"))
    for place in range(names.index(path.name) + 1, len(names)):
        name = names[place]
        if name and not problems.get(str(place + 1)):
            label = mapping(mapping(runs[place]).get("environment")).get("label")
            return Following(place + 1, len(names), str(label), path.parent / name)
    return None


def recorder_alive(folder: Path) -> bool:
    """Whether a recorder of the study still runs here: more may come."""
    for path in reversed(sessions_in(folder)):
        try:
            with SessionReader(path) as reader:
                recorder = process_id(reader.meta().get("recorder"))
        except GpuwatchError:
            continue
        if recorder is not None and recorder.alive():
            return True
    return False


def _plan(folder: Path) -> dict[str, JSON]:
    try:
        with (folder / PLAN).open(encoding="utf-8") as file:
            plan = json.loads(file.read(_LARGEST_PLAN))
    except (OSError, ValueError, RecursionError):
        return {}
    return plan if isinstance(plan, dict) else {}


def _file(run: JSON) -> str:
    """The name of a run's session; empty where the plan names no plain file."""
    name = str(mapping(run).get("file") or "")
    return name if name == Path(name).name else ""
