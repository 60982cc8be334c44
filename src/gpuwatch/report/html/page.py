"""The HTML page of a study, the answer first; it works offline."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib import resources

from gpuwatch.analysis.results import Question, StudyResult
from gpuwatch.analysis.samples.gauges import RunSeries
from gpuwatch.analysis.study.cost import cost_text
from gpuwatch.analysis.study.letters import LegendEntry, with_letters
from gpuwatch.analysis.study.notes import warnings
from gpuwatch.report.html.curves import curves
from gpuwatch.report.html.figures import figures
from gpuwatch.report.html.header import header
from gpuwatch.report.html.hero import letters
from gpuwatch.report.html.intervals import numbers
from gpuwatch.report.html.items import tables
from gpuwatch.report.html.marks import shapes
from gpuwatch.report.html.markup import bullets, folded, section, text
from gpuwatch.report.html.ranks import ranks
from gpuwatch.report.html.reasons import reasons
from gpuwatch.report.html.rooflines import roofline
from gpuwatch.report.html.runs import methods, not_run, runs
from gpuwatch.report.html.sweeps import noise, sweep
from gpuwatch.report.html.values import values
from gpuwatch.report.study.devices import devices

_Section = tuple[str, str, str]
"""Anchor, title, body."""


def page(result: StudyResult, series: Sequence[RunSeries]) -> str:
    """One self-contained HTML document.

    It loads nothing, and its Content-Security-Policy allows only its own script. All text of
    ``result`` and ``series`` is untrusted: it is cleaned and escaped here. ``series`` are matched
    to the runs by the session's path; a run without a series is not drawn.
    """
    result, legend = with_letters(result)
    style, script = _file("style.css"), _file("script.js")
    by_path = {each.path: each for each in series}
    parts = [*_findings(result), *_details(result, by_path, legend), *_foundations(result)]
    contents = bullets([f'<a href="#{anchor}">{text(title)}</a>' for anchor, title, _ in parts])
    body = "\n".join(section(anchor, 2, title, part) for anchor, title, part in parts)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_policy(style, script)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{text(_title(result))}</title>
<style>{style}</style>
</head>
<body>
{shapes()}
<main>
{header(result, legend)}
<nav aria-label="Contents">{contents}</nav>
{body}
</main>
<footer><p>Made by gpuwatch. This file loads nothing from elsewhere.</p></footer>
<script>{script}</script>
</body>
</html>
"""


def _title(result: StudyResult) -> str:
    plan = result.plan
    return (plan and (plan.title or plan.question)) or result.title


def _file(name: str) -> str:
    return resources.files("gpuwatch.report.html").joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """A policy that allows no loading, and only this style and script, by their hashes."""
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(content: str) -> str:
    digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode("ascii")
    return f"'sha256-{digest}'"


def _findings(result: StudyResult) -> list[_Section]:
    sections = []
    if (of_devices := devices(result)).items:
        sections.append(("devices", "Devices", tables(of_devices)))
    if compared := numbers(result.questions):
        sections.append(("comparisons", "Comparisons", compared))
    for at, each in enumerate(result.sweeps):
        sections.append((f"sweep-{at}", f"Sweep: {each.label}", sweep(each)))
    if result.noise:
        sections.append(("noise", "Noise floor", noise(result.noise)))
    if result.not_run:
        sections.append(("not-run", "What did not run", not_run(result)))
    return sections


def _details(
    result: StudyResult, series: Mapping[str, RunSeries], legend: Sequence[LegendEntry]
) -> list[_Section]:
    many = len(result.questions) > 2
    return [
        (
            f"case-{at}",
            question.label,
            letters(legend) + _question(question, series, f"case-{at}", many),
        )
        for at, question in enumerate(result.questions)
    ]


def _question(question: Question, series: Mapping[str, RunSeries], anchor: str, many: bool) -> str:
    parts = [bullets([text(note) for note in question.notes], "notes")] if question.notes else []
    if priced := [cell for cell in question.cells if cell.cost is not None]:
        costs = [text(f"{cell.label}: {cost_text(cell.cost)}", 300) for cell in priced if cell.cost]
        parts.append(section(f"{anchor}-cost", 3, "Cost", bullets(costs)))
    parts.append(section(f"{anchor}-runs", 3, "Every run", values(question)))
    parts.append(section(f"{anchor}-gauges", 3, "Gauges", curves(question, series, anchor)))
    if question.contrasts:
        parts.append(section(f"{anchor}-why", 3, "Associated changes", reasons(question, 4)))
    if of_ranks := ranks(question):
        parts.append(section(f"{anchor}-ranks", 3, "Ranks", of_ranks))
    parts.append(section(f"{anchor}-roofline", 3, "Roofline", roofline(question)))
    if table := figures(question):
        body = folded("Medians, ranges and ratios", table, is_open=not many)
        parts.append(section(f"{anchor}-figures", 3, "Figures", body))
    return "\n".join(parts)


def _foundations(result: StudyResult) -> list[_Section]:
    notes = [text(note) for note in (*result.notices, *result.notes, *warnings(result))]
    sections = [("notes", "Notes", bullets(notes, "notes"))] if notes else []
    if result.sessions:
        sections.append(("runs", "All runs", folded("Every session of the study", runs(result))))
        sections.append(
            (
                "methods",
                "How each number was obtained",
                folded("Method and source of every metric", methods(result.sessions)),
            )
        )
    return sections
