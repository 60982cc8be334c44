"""The form of a new run as rows: what can be chosen, and what a start would do."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.text import clean
from gpuwatch.core.units import binary
from gpuwatch.tui.live.rows import rule
from gpuwatch.tui.new_run.fields import taken
from gpuwatch.tui.new_run.foot import ROOMY, foot_rows, shown_default
from gpuwatch.tui.new_run.form import REPEATS
from gpuwatch.tui.new_run.state import (
    WORKLOADS,
    Item,
    LaunchState,
    current,
    items,
    place,
    trouble,
    value_of,
    wrong,
)
from gpuwatch.tui.widgets.cells import pad
from gpuwatch.tui.widgets.line import Line

WIDE = 120
"""Columns from which on the form has two columns."""
_LABEL, _BOX = 17, 15
_HINTS = {
    "other": "docker=IMAGE, apptainer=FILE.sif ...",
    "model": "such as vit_b_16",
    "command": "such as python3 train.py",
}

Row = tuple[Line, str | None]
"""A row and the key of the item that it is of."""


@dataclass(frozen=True)
class Target:
    """Where a click is one on an item."""

    key: str
    y: int
    left: int
    right: int
    """Behind the last column."""


@dataclass(frozen=True)
class Drawn:
    """The screen without its line of keys."""

    lines: tuple[Line, ...]
    targets: tuple[Target, ...]
    first: int
    """The first row of the form that is seen."""
    field: tuple[int, int, int] | None = None
    """Column, row and width of the field that is written in, where it is seen."""


def launch_rows(state: LaunchState, width: int, height: int, first: int, *, follow: bool) -> Drawn:
    """The form from its row ``first`` on; ``follow``: scrolled so that the cursor is seen."""
    head = Line(width).add(" gpuwatch ", "brand").add("start a run", "strong")
    foot = foot_rows(state, width, height)
    space = max(1, height - 1 - len(foot))
    columns = _columns(state, width, height)
    most = max(len(rows) for rows, _ in columns)
    if follow:
        first = _seen(columns, state.cursor, first, space)
    first = max(0, min(first, most - space))
    body: list[Line] = []
    targets: list[Target] = []
    field = None
    for y in range(space):
        line = Line(width)
        for rows, left in columns:
            if first + y < len(rows):
                row, key = rows[first + y]
                line.to(left).join(row)
                if row.field is not None:
                    column, columns_wide = row.field
                    field = left + column, y + 1, columns_wide
                if key is not None:
                    targets.append(Target(key, y + 1, left, left + row.width))
        body.append(line)
    hidden = most - first - space
    if hidden > 0:
        told = "1 more row" if hidden == 1 else f"{hidden} more rows"
        foot[0] = rule(f"↓ {told}, then: plan", width)
    return Drawn((head, *body, *foot), tuple(targets), first, field)


def _columns(state: LaunchState, width: int, height: int) -> list[tuple[list[Row], int]]:
    """Rows and the column at which they begin."""
    roomy = height >= ROOMY
    if width < WIDE:
        return [(_left(state, width, roomy) + _right(state, width), 0)]
    half = width * 11 // 20
    return [(_left(state, half - 2, roomy), 0), (_right(state, width - half), half)]


def _seen(columns: Sequence[tuple[list[Row], int]], key: str, first: int, space: int) -> int:
    """``first`` moved as little as shows the item with its neighbours, and a heading above it."""
    for rows, _ in columns:
        for y, (_, of) in enumerate(rows):
            if of == key:
                return max(min(first, y - 1), y + 2 - space)
    return first


def _left(state: LaunchState, width: int, roomy: bool) -> list[Row]:
    """What to run, and where."""
    here = current(state)
    rows: list[Row] = [(rule("workload", width), None)]
    for item, (_, what) in zip(items(state), WORKLOADS, strict=False):
        rows.append((_workload(state, item, what, here, width), item.key))
    untold = wrong(state).get("where")
    rows.append((rule(f"environments{f'  ✗ {untold}' if untold else ''}", width), None))
    listed = [each for each in items(state) if each.part in ("where", "other", "pull")]
    longest = max((cell_len(each.name) for each in listed), default=0)
    name_width = max(_LABEL - 7, min(longest, width // 2))
    for item in listed:
        rows += [(line, item.key) for line in _place(state, item, here, width, name_width, roomy)]
    if state.machine is None:
        note = "looking for engines and images ..."
        rows.insert(len(rows) - 2, (Line(width).add(f"     {note}", "muted"), None))
    elif state.machine.complaint:
        row = Line(width).add("   ✗ ", "bad").add(state.machine.complaint, "text")
        rows.insert(len(rows) - 2, (row, None))
    return rows


def _right(state: LaunchState, width: int) -> list[Row]:
    """On which GPUs and how."""
    here, rows = current(state), list[Row]()
    machine = state.machine
    if machine is not None:
        rows.append((rule("GPUs", width), None))
        if machine.no_gpu:
            row = Line(width).add("   none here: workloads run on the CPU", "muted")
            rows.append((row, None))
    listed = items(state)
    for item in listed:
        if item.part == "gpus":
            rows.append((_gpu(state, item, here, width), item.key))
    rows.append((rule("how", width), None))
    for item in listed:
        if item.parameter is not None or item.key in ("repeat", "more"):
            rows.append((_field(state, item, here, width), item.key))
    return rows


def _start(item_is_here: bool, width: int) -> Line:
    return Line(width).add(" ▸ " if item_is_here else "   ", "key")


def _workload(state: LaunchState, item: Item, what: str, here: Item, width: int) -> Line:
    chosen, stands = state.form.workload == item.name, here.key == item.key
    row = Line(width).add(" ▸ " if stands else " • " if chosen else "   ", "key")
    row.add(pad(item.name, _LABEL - 3), "select" if stands else "strong" if chosen else "text")
    if item.kind != "text" or not chosen:
        return row.add(" ").add(what, "text" if chosen else "muted")
    return _box(row.add(" "), state, item, here, max(10, row.left - 4), _HINTS[item.key])


def _place(
    state: LaunchState, item: Item, here: Item, width: int, name_width: int, roomy: bool
) -> list[Line]:
    """One environment, and below it how to fix it; the field of others, and whether to pull."""
    stands = item.key == here.key
    row = _start(stands, width)
    if item.key == "other":
        row.add(pad("other image", _LABEL - 3), "strong" if stands else "text").add(" ")
        unknown = state.fresh.complaint if state.fresh and state.form.other.strip() else None
        why = wrong(state).get("other") or unknown
        row = _box(row, state, item, here, max(10, row.left - 4), _HINTS["other"])
        return [row, Line(width).add("     ✗ ", "bad").add(why)] if why else [row]
    name = "fetch images that are not here" if item.key == "pull" else clean(item.name)
    ticked = state.form.pull if item.key == "pull" else item.name in state.form.ticked
    wrong_here = None if item.key == "pull" else trouble(state, item.name)
    role = "select" if stands else "strong" if ticked else "muted" if wrong_here else "text"
    row.add("[x] " if ticked else "[ ] ", "key" if ticked else "muted")
    if item.key == "pull":
        return [row.add(name, role)]
    row.add(pad(name, name_width), role).add(" ")
    if wrong_here is not None:
        row.add("✗ ", "bad" if ticked else "muted")
        row.add(wrong_here.text, "text" if ticked else "muted")
        if roomy and wrong_here.hint:
            hint = Line(width).to(_LABEL - 6).add(f"Fix: {wrong_here.hint}", "muted")
            return [row, hint]
    elif known := place(state, item.name):
        row.add("✓ ", "good").add(known.engine, "muted")
    return [row]


def _gpu(state: LaunchState, item: Item, here: Item, width: int) -> Line:
    stands, chosen = item.key == here.key, state.form.gpus
    ticked = chosen is None or item.name in chosen
    known = state.machine.gpus if state.machine else ()
    gpu = next(each for each in known if each.choice == item.name)
    row = _start(stands, width).add("[x] " if ticked else "[ ] ", "key" if ticked else "muted")
    row.add(pad(gpu.choice, 4), "select" if stands else "text").add(f"{gpu.name} ", "text")
    return row.add(binary(gpu.memory_bytes), "muted") if gpu.memory_bytes else row


def _field(state: LaunchState, item: Item, here: Item, width: int) -> Line:
    """A parameter, how often, or what shows the other parameters."""
    stands, form = item.key == here.key, state.form
    row = _start(stands, width)
    if item.kind == "more":
        shown = {each.key for each in items(state)}
        hidden = [each.label for each in taken(form.case) if each.name not in shown]
        text = f"{len(hidden)} more: {', '.join(hidden)}" if hidden else "fewer"
        return row.add("+ " if hidden else "- ", "key").add(text, "select" if stands else "muted")
    label = item.parameter.label if item.parameter else item.key
    row.add(pad(label, _LABEL - 3), "strong" if stands else "text").add(" ")
    why = wrong(state).get(item.key)
    if item.kind == "tick":
        row.add("[x]" if value_of(form, item) else "[ ]", "select" if stands else "text")
        row.add(" ")
    elif item.kind == "choice":
        value = value_of(form, item)
        row.add("< ", "key").add(value, "select" if stands else "strong")
        row.add(" >", "key").to(_LABEL + _BOX + 3)
    else:
        assert item.parameter is not None
        row = _box(row, state, item, here, _BOX, shown_default(state, item)).add(" ")
    if why is not None:
        return row.add("✗ ", "bad").add(why, "text")
    if item.parameter is None:
        return row.add(REPEATS[form.repeat][1], "muted")
    return row.add(item.parameter.hint(value_of(form, item)), "muted")


def _box(row: Line, state: LaunchState, item: Item, here: Item, width: int, hint: str) -> Line:
    """``[value   ]``; what is taken without a value stands there muted."""
    value = clean(value_of(state.form, item))
    stands = item.key == here.key
    row.add("[", "key" if stands else "muted")
    if stands:
        row.field = (row.used, width)
    shown, role = (value, "strong") if value.strip() else (hint, "muted")
    return row.add(pad(shown, width), role).add("]", "key" if stands else "muted")
