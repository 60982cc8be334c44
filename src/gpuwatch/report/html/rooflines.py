"""The roofline of a question: one run of each cell, as a picture and as a table."""

from __future__ import annotations

import base64
from dataclasses import replace

from gpuwatch import units
from gpuwatch.analysis.results import Question
from gpuwatch.analysis.roofline import Roofline
from gpuwatch.report.html.markup import table, text
from gpuwatch.report.roofline_svg import svg
from gpuwatch.report.study_why import middle_runs
from gpuwatch.report.values import shown


def roofline(question: Question) -> str:
    """Of each cell the run nearest to its median; why there is no picture where no run has
    a point."""
    found = [
        _named(run.session.efficiency.roofline, cell.label)
        for cell, run in zip(question.cells, middle_runs(question), strict=True)
        if run is not None
    ]
    picture = svg(found)
    if picture is None:
        told = dict.fromkeys(f"{each.label}: {each.reason}" for each in found if each.reason)
        return "".join(f"<p>{text(f'No point. {each}.')}</p>" for each in told)
    data = base64.b64encode(picture.encode()).decode("ascii")
    verdicts = "; ".join(f"{each.label}: {each.verdict.text}" for each in found)
    return (
        f'<figure class="roofline"><img src="data:image/svg+xml;base64,{data}" '
        f'alt="{text(f"Roofline, FLOP/s against FLOP per byte. {verdicts}", 1000)}">'
        "<figcaption>Of each cell the run nearest to its median.</figcaption></figure>\n"
        + _table(found)
    )


def _named(of: Roofline, label: str) -> Roofline:
    points = tuple(replace(point, label=label) for point in of.points)
    return replace(of, label=label, points=points)


def _table(rooflines: list[Roofline]) -> str:
    groups = [
        (
            f"{each.label}: {each.verdict.text}",
            [
                [
                    text(units.si(point.rate, "FLOP/s")),
                    text(shown(point.intensity, "FLOP/By")),
                    point.method.value,
                    text(point.text),
                ]
                for point in each.points
            ],
        )
        for each in rooflines
    ]
    return table("Points of the roofline", ["rate", "intensity", "method", "bytes"], groups)
