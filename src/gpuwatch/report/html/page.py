"""The whole file: what a study says, verdict first, for a browser that may be offline."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.analysis.gauges import RunSeries
from gpuwatch.analysis.results import StudyResult


def page(result: StudyResult, series: Sequence[RunSeries]) -> str:
    """One self-contained HTML document.

    It loads nothing, and a Content-Security-Policy keeps all script but its own from running. All
    text of ``result`` and ``series`` may come from anywhere: it is cleaned and escaped here.
    ``series`` are matched with the runs by the session's path; a run without one is not drawn.
    """
    raise NotImplementedError
