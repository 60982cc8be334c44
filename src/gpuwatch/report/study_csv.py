"""A study as tidy CSV: one row for each run and metric."""

from __future__ import annotations

from gpuwatch.analysis.results import StudyResult


def as_csv(result: StudyResult) -> str:
    """Every quantity of every run in base units; an empty cell is unknown."""
    raise NotImplementedError
