"""A study as Markdown that fits a pull request: the verdict first, the details folded."""

from __future__ import annotations

from gpuwatch.analysis.results import StudyResult


def as_markdown(result: StudyResult, *, roofline: str | None = None) -> str:
    """The study as GitHub shows it; ``roofline``: the name of the picture beside the file."""
    raise NotImplementedError
