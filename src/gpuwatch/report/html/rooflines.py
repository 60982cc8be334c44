"""The roofline of a question: one run of each cell, as a picture and as a table."""

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
        labels: dict[str, list[str]] = {}
        for each in found:
            if each.reason:
                labels.setdefault(each.reason, []).append(each.label)
        none = [f"No point of {', '.join(of)}: {why}." for why, of in labels.items()]
        return "".join(f"<p>{text(each)}</p>" for each in none)
    data = base64.b64encode(picture.encode()).decode("ascii")
    verdicts = _verdicts(found)
    told = "; ".join(verdicts)
    return (
        f'<figure class="roofline"><img src="data:image/svg+xml;base64,{data}" '
        f'alt="{text(f"Roofline, FLOP/s against FLOP per byte. {told}", 1000)}">'
        "<figcaption>Of each cell the run nearest to its median.</figcaption></figure>\n"
        + bullets([text(each) for each in verdicts])
        + _table(found)
    )


def _verdicts(found: Sequence[Roofline]) -> list[str]:
    """What bounds each run; what is true of several is said once."""
    labels: dict[str, list[str]] = {}
    for each in found:
        labels.setdefault(each.verdict.text, []).append(each.label)
    return [f"{', '.join(of)}: {told}" for told, of in labels.items()]


def _named(of: Roofline, label: str) -> Roofline:
    points = tuple(replace(point, label=label) for point in of.points)
    return replace(of, label=label, points=points)


def _table(rooflines: list[Roofline]) -> str:
    groups = [
        (
            each.label,
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
