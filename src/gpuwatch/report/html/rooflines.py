"""The roofline of a question: one run per cell, as a picture and as a table."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import replace

from gpuwatch.analysis.hardware.roofline import Roofline
from gpuwatch.analysis.results import Question
from gpuwatch.core import units
from gpuwatch.report.html.markup import bullets, table, text
from gpuwatch.report.roofline.svg import svg
from gpuwatch.report.study.why import middle_runs


def roofline(question: Question) -> str:
    """The roofline of each cell's run nearest to the median; without any point, the reasons."""
    rooflines = [
        _named(run.session.efficiency.roofline, cell.label)
        for cell, run in zip(question.cells, middle_runs(question), strict=True)
        if run is not None
    ]
    picture = svg(rooflines)
    if picture is None:
        labels: dict[str, list[str]] = {}
        for each in rooflines:
            if each.reason:
                labels.setdefault(each.reason, []).append(each.label)
        reasons = [f"No point of {', '.join(names)}: {why}." for why, names in labels.items()]
        return "".join(f"<p>{text(each)}</p>" for each in reasons)
    data = base64.b64encode(picture.encode()).decode("ascii")
    verdicts = _verdicts(rooflines)
    alternative = f"Roofline, FLOP/s against FLOP per byte. {'; '.join(verdicts)}"
    return (
        f'<figure class="roofline"><img src="data:image/svg+xml;base64,{data}" '
        f'alt="{text(alternative, 1000)}">'
        "<figcaption>Of each cell the run nearest to its median.</figcaption></figure>\n"
        + bullets([text(each) for each in verdicts])
        + _table(rooflines)
    )


def _verdicts(rooflines: Sequence[Roofline]) -> list[str]:
    """What bounds each run; runs with the same verdict share a sentence."""
    labels: dict[str, list[str]] = {}
    for each in rooflines:
        labels.setdefault(each.verdict.text, []).append(each.label)
    return [f"{', '.join(names)}: {verdict}" for verdict, names in labels.items()]


def _named(roofline: Roofline, label: str) -> Roofline:
    points = tuple(replace(point, label=label) for point in roofline.points)
    return replace(roofline, label=label, points=points)


def _table(rooflines: list[Roofline]) -> str:
    groups = [
        (
            each.label,
            [
                [
                    text(units.si(point.rate, "FLOP/s")),
                    text(units.quantity(point.intensity, "FLOP/By")),
                    point.method.value,
                    text(point.text),
                ]
                for point in each.points
            ],
        )
        for each in rooflines
    ]
    return table("Points of the roofline", ["rate", "intensity", "method", "bytes"], groups)
