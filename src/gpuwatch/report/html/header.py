"""The head of the page: title, verdict, and how the study was made."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.analysis.comparison.wording import counted, per_cent
from gpuwatch.analysis.results import StudyResult
from gpuwatch.analysis.study.letters import LegendEntry
from gpuwatch.analysis.study.not_run import blocks_done
from gpuwatch.core import units
from gpuwatch.report.html import hero as html_hero
from gpuwatch.report.html.markup import text
from gpuwatch.report.html.verdicts import verdicts
from gpuwatch.report.study import hero, origin
from gpuwatch.session.study.plan import Part

_MOST = 4
"""Most parts of the plan that are described."""


def header(result: StudyResult, legend: Sequence[LegendEntry]) -> str:
    """Title, answer and chart, the verdicts, then when, where and how it was measured."""
    plan, top = result.plan, hero.hero(result)
    asked = dict.fromkeys(filter(None, (plan.title, plan.question) if plan else ()))
    asked.pop(top.title, None)
    subtitle = "".join(f'<p class="question">{text(each)}</p>\n' for each in asked)
    facts = "".join(
        f"<div><dt>{name}</dt><dd>{text(value, 300)}</dd></div>"
        for name, value in _facts(result)
        if value
    )
    return (
        f"<header>\n{html_hero.title(top, legend)}{subtitle}"
        f'<section aria-label="Answer">\n{html_hero.answer(top, result.questions)}\n'
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
            else "sessions put together by hand"
            if len(sessions) > 1
            else "",
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
