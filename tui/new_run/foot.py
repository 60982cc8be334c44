"""Below the form of a new run: what a start would do, its command line, what the cursor is on."""

from __future__ import annotations

from gpuwatch.core.text import clean
from gpuwatch.session.study.estimate import about
from gpuwatch.tui.live.rows import rule
from gpuwatch.tui.new_run.answers import PlanNow
from gpuwatch.tui.new_run.fields import default
from gpuwatch.tui.new_run.form import arguments, command_line
from gpuwatch.tui.new_run.state import Item, LaunchState, current, obstacle, trouble, wrong
from gpuwatch.tui.widgets.cells import wrap
from gpuwatch.tui.widgets.line import Line

ROOMY = 36
"""Rows from which on there is room for the order of a plan, and for how to fix an environment."""
_SMALL = 20


def foot_rows(state: LaunchState, width: int, height: int) -> list[Line]:
    """Always the same number of rows on a screen of one size; the plan takes what is left."""
    total = 3 if height < _SMALL else 10 if height >= ROOMY else 5
    command = _command(state, width, 1 if height < _SMALL else 2)
    below = _about(state, width, max(0, min(2, total - 1 - len(command))))
    room = total - len(command) - len(below)
    rows = [*_plan(state, width, room), *command, *below]
    return [rule("plan", width), *rows, *(Line(width) for _ in range(total - len(rows)))]


def shown_default(state: LaunchState, item: Item) -> str:
    """What a parameter is where nothing is typed."""
    assert item.parameter is not None
    plan = state.fresh
    if item.key == "steps" and plan is not None and plan.steps:
        return plan.steps
    return default(item.parameter, state.form.case)


def _plan(state: LaunchState, width: int, rows: int) -> list[Line]:
    """What stands against a start, else what it would do and how long that takes."""
    why, plan = obstacle(state), state.fresh
    if why is not None:
        lines = []
        for index, text in enumerate(wrap(f"cannot start: {clean(why[1])}", width - 4, rows)):
            lines.append(Line(width).add(" ✗ " if index == 0 else "   ", "bad").add(text))
        return lines
    if plan is None:
        return [Line(width).add("   asking for the plan ...", "muted")]
    runs = "1 run" if plan.runs == 1 else f"{plan.runs} runs"
    first = Line(width).add(" ✓ ", "good").add(f"{runs}: {plan.what}", "strong")
    if rows == 1:
        return [first.add(f"; {_time(plan)}", "muted")]
    return [first, *_order(plan, width, rows - 2), Line(width).add("   ").add(_time(plan), "muted")]


def _order(plan: PlanNow, width: int, rows: int) -> list[Line]:
    """The blocks, each in a row of its own where there is the room."""
    if rows < 1 or not plan.order:
        return []
    lines = plan.order
    if len(lines) > rows:
        lines = tuple(wrap("; ".join(plan.order), width - 4, rows))
    return [Line(width).add(f"   {line}", "text") for line in lines]


def _time(plan: PlanNow) -> str:
    if plan.seconds is None:
        return f"time unknown: {plan.reason}"
    return f"takes {about(plan.seconds)}, by earlier runs of the same"


def _command(state: LaunchState, width: int, rows: int) -> list[Line]:
    if wrong(state):
        return []
    text = clean(command_line(arguments(state.form)))
    return [
        Line(width).add(" $ " if index == 0 else "   ", "key").add(piece)
        for index, piece in enumerate(wrap(text, width - 4, rows))
    ]


def _about(state: LaunchState, width: int, rows: int) -> list[Line]:
    """What the last key came to, or more on what the cursor is on."""
    text, mark, role = state.message, "   ", "strong"
    item = current(state)
    why = trouble(state, item.name) if item.part == "where" else None
    if text:
        mark = " ✗ " if text.startswith("✗") else " » "
        text = text.removeprefix("✗ ")
    elif why is not None:
        text, role = f"{item.name}: {why.text}; {why.hint}".rstrip("; "), "muted"
    elif item.parameter is not None:
        flag = item.parameter.name.replace("_", "-")
        text = f"--{flag}: {item.parameter.help}; default: {shown_default(state, item)}"
        role = "muted"
    elif item.key == "other":
        text, role = "as --env takes them: KIND=IMAGE[,python=PATH][,mount=SRC:DST] ...", "muted"
    lines = []
    for index, piece in enumerate(wrap(clean(text), width - 4, rows)):
        row = Line(width).add(mark if index == 0 else "   ", "bad" if "✗" in mark else "key")
        lines.append(row.add(piece, role))
    return lines
