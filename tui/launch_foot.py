"""Below the form of a new run: what a start would do, its command line, what the cursor is on."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.session.estimate import about
from gpuwatch.text import clean
from gpuwatch.tui.cells import wrap
from gpuwatch.tui.launch_answers import PlanNow
from gpuwatch.tui.launch_fields import default
from gpuwatch.tui.launch_state import Item, LaunchState, current, obstacle, trouble
from gpuwatch.tui.line import Line
from gpuwatch.tui.live_rows import rule
from gpuwatch.tui.new_run_form import arguments, command_line, problems

ROOMY = 36
"""Rows from which on there is room for the order of a plan, and for what mends an environment."""
_SMALL = 20


def foot_rows(state: LaunchState, width: int, height: int) -> list[Line]:
    """Always the same number of rows on a screen of one size."""
    if height < _SMALL:
        told, rest = 1, 2
    else:
        told, rest = (6, 4) if height >= ROOMY else (2, 3)
    command = _command(state, width, max(1, rest - 1))
    below = _about(state, width, rest - len(command))
    return [
        rule("plan", width),
        *_filled(_plan(state, width, told), told, width),
        *_filled([*command, *below], rest, width),
    ]


def shown_default(state: LaunchState, item: Item) -> str:
    """What a parameter is where nothing is typed."""
    assert item.parameter is not None
    plan = state.fresh
    if item.key == "steps" and plan is not None and plan.steps:
        return plan.steps
    return default(item.parameter, state.form.case)


def _plan(state: LaunchState, width: int, rows: int) -> list[Line]:
    """What stands against a start, else what it would do and how long that takes."""
    wrong, plan = obstacle(state), state.fresh
    if wrong is not None:
        lines = []
        for index, text in enumerate(wrap(f"cannot start: {clean(wrong[1])}", width - 4, rows)):
            lines.append(Line(width).add(" ✗ " if index == 0 else "   ", "bad").add(text))
        return lines
    if plan is None:
        return [Line(width).add("   asking for the plan ...", "muted")]
    runs = "1 run" if plan.runs == 1 else f"{plan.runs} runs"
    first = Line(width).add(" ✓ ", "good").add(f"{runs}: {plan.what}", "strong")
    if rows == 1:
        return [first.add(f"; {_time(plan)}", "muted")]
    order = [Line(width).add(f"   {line}", "text") for line in plan.order]
    if len(order) > rows - 2:
        order = [*order[: rows - 3], Line(width).add("   ...", "muted")] if rows > 2 else []
    return [first, *order, Line(width).add("   ").add(_time(plan), "muted")]


def _time(plan: PlanNow) -> str:
    if plan.seconds is None:
        return f"time unknown: {plan.reason}"
    return f"takes {about(plan.seconds)}, by earlier runs of the same"


def _command(state: LaunchState, width: int, rows: int) -> list[Line]:
    if problems(state.form):
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
    wrong = trouble(state, item.name) if item.part == "where" else None
    if text:
        mark = " ✗ " if text.startswith("✗") else " » "
        text = text.removeprefix("✗ ")
    elif wrong is not None:
        text, role = f"{item.name}: {wrong.text}; {wrong.fix}".rstrip("; "), "muted"
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


def _filled(lines: Sequence[Line], rows: int, width: int) -> list[Line]:
    return [*lines[:rows], *(Line(width) for _ in range(rows - len(lines)))]
