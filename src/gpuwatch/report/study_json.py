"""A study as JSON; ``docs/json.md`` documents schema 1."""

from __future__ import annotations

from gpuwatch.analysis.results import StudyResult
from gpuwatch.models import JSON


def study(result: StudyResult) -> dict[str, JSON]:
    """The comparison of all sessions, and what the study says of them; sessions by their id."""
    raise NotImplementedError
