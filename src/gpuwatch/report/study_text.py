"""A study for a terminal: what it says first, then what that rests on."""

from __future__ import annotations

from gpuwatch.analysis.results import StudyResult


def terminal(result: StudyResult, *, columns: int = 80) -> str:
    """Sentences, an interval plot, and per question its table, runs and explanation.

    No line of a table is wider than ``columns``; only commands that mend something may be.
    """
    raise NotImplementedError
