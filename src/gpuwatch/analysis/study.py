"""From the sessions of a study to its result: cells, verdicts, explanations, tables."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.analysis.cells import Read
from gpuwatch.analysis.results import StudyResult
from gpuwatch.session.plan import Plan
from gpuwatch.session.study import NotRun


def study_result(
    sessions: Sequence[Read],
    plan: Plan | None,
    not_run: Sequence[NotRun],
    *,
    title: str,
    to_come: int = 0,
    across_devices: bool = False,
    margin: float | None = None,
    notes: Sequence[str] = (),
) -> StudyResult:
    """Everything that the summary of ``sessions`` shows.

    ``margin`` replaces the plan's; ``across_devices`` makes other GPUs or processors a note and
    not a reason for no verdict; ``notes`` stand before the result's own.
    """
    raise NotImplementedError
