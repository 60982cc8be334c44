"""The axis of the histories, in seconds or steps from the first timed step."""

from __future__ import annotations

from gpuwatch.core.units import NS, nice, si
from gpuwatch.tui.widgets.cells import pad
from gpuwatch.tui.widgets.graph import Window, axis
from gpuwatch.tui.widgets.line import Line


def axis_rows(
    start: float, end: float, columns: int, by_step: bool, width: int, indent: int
) -> list[Line]:
    """The axis line, dashed in the warm-up, and its labels."""
    before = int(-start / max(1e-12, end - start) * columns)
    if by_step:
        ticks, labels = _step_axis(end, columns - before)
    else:
        ticks, labels = axis(Window(0, max(1, int(end * NS)), columns - before))
    rule = Line(width).to(indent).add("└", "faint").add("╌" * before, "faint").add(ticks, "faint")
    words = ("warm-up", "") if by_step else ("start-up and warm-up", "warm-up", "")
    word = next(word for word in words if len(word) < max(1, before))
    named = Line(width).to(indent + 1).add(pad(word, before), "muted")
    return [rule, named.add(labels, "muted")]


def _step_axis(end: float, columns: int) -> tuple[str, str]:
    """Ticks at round numbers of steps."""
    step = nice(max(1.0, end * 11 / max(1, columns)))
    line, labels = ["─"] * columns, [" "] * columns
    at, free = 0.0, 0
    while at <= end:
        column = int(at / max(1e-12, end) * columns)
        text = f"{at:,.0f}" if at < 1e6 else si(at, "")
        if column < columns:
            line[column] = "┬"
            if column >= free and column + len(text) <= columns:
                labels[column : column + len(text)] = text
                free = column + len(text) + 1
        at += step
    return "".join(line), "".join(labels)
