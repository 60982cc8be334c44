"""The head of the page: title, verdict, and how the study was made."""

from __future__ import annotations

from gpuwatch.analysis.comparison.wording import counted, per_cent
from gpuwatch.analysis.results import StudyResult
from gpuwatch.analysis.study.not_run import blocks_done
from gpuwatch.core import units
from gpuwatch.report.html.markup import text
from gpuwatch.report.html.verdicts import verdicts
from gpuwatch.report.study import origin
from gpuwatch.session.study.plan import Part

_MOST = 4
"""Most parts of the plan that are described."""


def header(result: StudyResult, title: str) -> str:
    """Title, question and verdicts, then when, where and how it was measured."""
    question = result.plan.question if result.plan else None
    subtitle = (
        f'<p class="question">{text(question)}</p>\n' if question and question != title else ""
    )
    facts = "".join(
        f"<div><dt>{name}</dt><dd>{text(value, 300)}</dd></div>"
        for name, value in _facts(result)
        if value
    )
    return (
        f"<header>\n<h1>{text(title)}</h1>\n{subtitle}"
        f'<section aria-labelledby="verdict-h">\n<h2 id="verdict-h">Verdict</h2>\n'
        f"{verdicts(result)}\n</section>\n"
        f"<dl>{facts}</dl>\n</header>"
    )


def _facts(result: StudyResult) -> list[tuple[str, str]]:
    sessions = result.sessions
    moments = sorted(each.started for each in sessions if each.started)
    ends = dict.fromkeys(each[:16].replace("T", " ") for each in (moments[:1] + moments[-1:]))
    when = " to ".join(ends)
    plan = result.plan
    return [
        ("Study", result.title),
        ("When", f"{when} UTC" if when else ""),
        ("Host", origin.hosts(result)),
        ("Device", origin.devices(result)),
        ("Command", origin.commands(result)),
        ("gpuwatch", origin.versions(result)),
        ("Runs", str(len(sessions))),
        (
            "Design",
            "; ".join(_design(result, at, part) for at, part in enumerate(plan.parts[:_MOST]))
            if plan
            else "sessions put together by hand",
        ),
        ("Seed of the order", "" if plan is None or plan.seed is None else str(plan.seed)),
        ("Preset", (plan.preset or "") if plan else ""),
    ]


def _design(result: StudyResult, at: int, part: Part) -> str:
    if part.blocks is None:
        blocks = "each once, no verdict"
    else:
        blocks = f"{blocks_done(result, at)} of {counted(part.blocks, 'judged block')} done"
        blocks += ", a warm-up block" if part.warmup_blocks else ""
    rest = f", {units.digits(part.cool_down)} s of rest between runs" if part.cool_down else ""
    return f"{part.name}: {blocks}, margin {per_cent(part.margin)}{rest}"
