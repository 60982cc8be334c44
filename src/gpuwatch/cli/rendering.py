"""A study's result in each of its formats."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuwatch.analysis.results import StudyResult

FORMATS = ("table", "json", "md", "csv", "html")


def render(
    result: StudyResult,
    form: str,
    columns: int = 80,
    colours: bool = False,
    *,
    short: bool = False,
    roofline: str | None = None,
) -> str:
    """``result`` in one of ``FORMATS``.

    ``table`` uses ``columns`` and ``colours`` of the terminal, and ``short``, for the answer alone.
    ``md`` links to ``roofline``, the picture. ``html`` reads its curves from the sessions.
    """
    from gpuwatch.report import csv, json, markdown, text

    if form == "json":
        return json.dumps(json.study(result))
    if form == "md":
        return markdown.as_markdown(result, roofline=roofline)
    if form == "csv":
        return csv.as_csv(result)
    if form == "html":
        return _page(result)
    return text.terminal(result, columns, colours, short=short)


def picture(result: StudyResult) -> str | None:
    """The roofline of one run per cell, as SVG; ``None`` if no run has a point."""
    from gpuwatch.report.document.reasons import middle_runs
    from gpuwatch.report.roofline import svg

    return svg.svg(
        [
            run.session.efficiency.roofline
            for question in result.questions
            for run in middle_runs(question)
            if run is not None
        ]
    )


def _page(result: StudyResult) -> str:
    """The HTML page; opens one session at a time."""
    from gpuwatch.analysis.samples.gauges import points_for, run_series
    from gpuwatch.report.html.page import page
    from gpuwatch.session.reading.reader import SessionReader

    points = points_for(len(result.sessions))
    series = []
    for session in result.sessions:
        with SessionReader(Path(session.path)) as reader:
            series.append(run_series(reader, points))
    return page(result, series)
