"""The plan beside the form: what would run and for how long, or what prevents it."""

from __future__ import annotations

from textual.content import Content

from gpuwatch.core.text import clean
from gpuwatch.session.study.estimate import about
from gpuwatch.tui.new_run.form import Form, command_line, problems
from gpuwatch.tui.new_run.obstacles import Answers, obstacle

GOOD, BAD = "$success", "$error"
"""Styles of the marks."""


def plan_text(form: Form, answers: Answers) -> Content:
    """What prevents a start, else the plan; below it the equivalent command line."""
    found, plan = obstacle(form, answers), answers.plan_for(form)
    if found is not None:
        lines = [Content.assemble(("✗ ", BAD), f"cannot start: {clean(found[1])}")]
    elif plan is None:
        lines = [Content("asking for the plan ...")]
    else:
        runs = "1 run" if plan.runs == 1 else f"{plan.runs} runs"
        lines = [Content.assemble(("✓ ", GOOD), (f"{runs}: {plan.what}", "bold"))]
        lines += [Content(f"  {block}") for block in plan.order]
        takes = f"time unknown: {plan.reason}"
        if plan.seconds is not None:
            takes = f"takes {about(plan.seconds)}, by earlier runs of the same"
        lines.append(Content(f"  {takes}"))
    if not problems(form):
        lines.append(Content(f"$ {clean(command_line(form))}"))
    return Content("\n").join(lines)
