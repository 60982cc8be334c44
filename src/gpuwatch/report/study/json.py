"""A study as JSON; ``docs/json.md`` documents it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path

from gpuwatch.analysis.results import Cell, StudyResult
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core.models import JSON
from gpuwatch.report.document.study import compared
from gpuwatch.report.session import json


def study(result: StudyResult) -> dict[str, JSON]:
    """The comparison of all sessions and the study's results; sessions are given by id."""
    return {
        **json.comparison(compared(result)),
        "study": None if result.plan is None else result.plan.study,
        "title": result.title,
        "questions": _plain(result.questions),
        "overall": _plain(result.overall),
        "sweeps": [
            {**_plain(sweep), "points": [_with_sessions(each) for each in sweep.points]}
            for sweep in result.sweeps
        ],
        "noise": _plain(result.noise),
        "plan": _plan(result),
        "not_run": _plain(result.not_run),
        "to_come": result.to_come,
        "notices": list(result.notices),
    }


def _with_sessions(point: JSON) -> dict[str, JSON]:
    """A point of a sweep, with label and session ids in place of its cell."""
    document: dict[str, JSON] = _plain(point)
    cell: Cell | None = point.cell
    document["cell"] = None if cell is None else cell.label
    document["sessions"] = [] if cell is None else [run.session.id for run in cell.runs]
    return document


def _plan(result: StudyResult) -> dict[str, JSON] | None:
    """The plan, each run with its session's id if there is one."""
    plan = result.plan
    if plan is None:
        return None
    ids = {Path(session.path).name: session.id for session in result.sessions}
    return {
        "seed": plan.seed,
        "title": plan.title,
        "question": plan.question,
        "preset": plan.preset,
        "settings": _plain(plan.settings),
        "parts": _plain(plan.parts),
        "order": [
            {
                "index": run.index,
                "file": run.file,
                "session": ids.get(run.file),
                "part": run.part,
                "block": run.block,
                "workload": run.workload.name,
                "parameters": _plain(run.workload.parameters),
                "environment": run.environment.label,
            }
            for run in plan.runs
        ],
    }


def _plain(value: JSON) -> JSON:
    """Convert to JSON types: a dataclass to an object, a session to its id, an enum to its text."""
    if isinstance(value, Summary):
        return value.id
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value
