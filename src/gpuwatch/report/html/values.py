"""The value of every run: a chart by block, and a table with the steady states."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from gpuwatch.analysis.results import Cell, Question, Run
from gpuwatch.analysis.samples.steady_state import Steady
from gpuwatch.core import units
from gpuwatch.report.html.axis import Axis, over
from gpuwatch.report.html.marks import colour, legend, mark
from gpuwatch.report.html.markup import Row, folded, table, text

_HEIGHT, _TOP, _BOTTOM = 210, 10, 190
_NOT_FROM_0 = " The axis does not start at 0."


def values(question: Question) -> str:
    """Every run of a question as a dot and as a table row."""
    places = _places(question.cells)
    known = [run.value for cell in question.cells for run in cell.runs if run.value is not None]
    picture = _picture(question, places, over(known, space=0.12)) if known else ""
    return picture + folded("The runs in numbers", _table(question), is_open=not known)


def _places(cells: Sequence[Cell]) -> list[str]:
    """The columns of the chart: the blocks, then the numbers of runs outside blocks."""
    blocks = {run.block for cell in cells for run in cell.runs if run.block is not None}
    longest = max((len(_without(cell.runs)) for cell in cells), default=0)
    return [
        *(_block(block) for block in sorted(blocks)),
        *(f"run {number}" for number in range(1, longest + 1)),
    ]


def _without(runs: Sequence[Run]) -> list[Run]:
    """The runs outside blocks."""
    return [run for run in runs if run.block is None]


def _block(block: int) -> str:
    return f"block {block}" if block else "warm-up"


def _placed(runs: Sequence[Run], places: Sequence[str]) -> list[tuple[Run, int]]:
    """The runs of a cell, each with its index in ``places``."""
    number = itertools.count(1)
    names = [f"run {next(number)}" if run.block is None else _block(run.block) for run in runs]
    return [(run, places.index(name)) for run, name in zip(runs, names, strict=True)]


def _picture(question: Question, places: Sequence[str], axis: Axis) -> str:
    cells, width = question.cells, 100 / len(places)
    ticks = axis.ticks(6)
    parts = [f"<title>{text(f'{question.metric} of every run, {question.label}')}</title>"]
    if places[0] == _block(0):
        parts.append(f'<rect class="aside" x="0" y="0" width="{width:.2f}%" height="{_BOTTOM}"/>')
    parts += [
        f'<line class="grid" x1="0" x2="100%" y1="{_y(axis, t):.1f}" y2="{_y(axis, t):.1f}"/>'
        for t in ticks
    ]
    for at, name in enumerate(places):
        words = name.split(" ")
        again = at and places[at - 1].split(" ")[0] == words[0]
        shown_name = words[-1] if again else name
        if _crowded(at, len(places)):
            continue
        parts.append(
            f'<text x="{(at + 0.5) * width:.2f}%" y="{_HEIGHT - 4}" text-anchor="middle">'
            f"{text(shown_name)}</text>"
        )
    for number, cell in enumerate(cells):
        if cell.median is not None:
            y = _y(axis, cell.median)
            parts.append(
                f'<line class="median {colour(number)}" x1="0" x2="100%" y1="{y:.1f}" '
                f'y2="{y:.1f}"/>'
            )
    for number, cell in enumerate(cells):
        for run, place in _placed(cell.runs, places):
            x = (place + (number + 1) / (len(cells) + 1)) * width
            parts.append(_dot(cell, number, run, x, axis))
    scale = "".join(
        f'<text x="100%" y="{_y(axis, t) + 4:.1f}" text-anchor="end">'
        f"{text(units.quantity(t, 's'))}</text>"
        for t in ticks
    )
    runs = [run for cell in cells for run in cell.runs]
    extra = []
    if any(run.warm_up for run in runs):
        extra.append((mark(0, "8", 7, hollow=True), "warm-up block: shown, not judged"))
    if any(run.outlier for run in runs):
        extra.append(('<circle class="ring" cx="8" cy="7" r="6"/>', "outlier: kept"))
    if any(run.value is None for run in runs):
        extra.append(('<text x="8" y="12" text-anchor="middle">✕</text>', "no value"))
    return (
        '<figure class="chart">\n'
        f"{legend([cell.label for cell in cells], extra)}"
        f'<div class="plot"><svg class="up" aria-hidden="true" width="74" height="{_HEIGHT}">'
        f'{scale}</svg><svg role="img" width="100%" height="{_HEIGHT}">{"".join(parts)}</svg>'
        f"</div>\n<figcaption>{text(question.metric.capitalize())} of every run, the "
        f"thin lines the medians of the judged ones.{_NOT_FROM_0 * (axis.low > 0)}</figcaption>"
        "\n</figure>"
    )


def _crowded(at: int, places: int) -> bool:
    every = -(-places // 12)
    return at % every != 0


def _y(axis: Axis, value: float) -> float:
    return _BOTTOM - (_BOTTOM - _TOP) * axis.share(value) / 100


def _dot(cell: Cell, number: int, run: Run, x: float, axis: Axis) -> str:
    title = f"{cell.label}, {_where(run)}: {_value(run)}{', outlier' if run.outlier else ''}"
    if run.value is None:
        return (
            f'<text class="{colour(number)} none" x="{x:.2f}%" y="{_BOTTOM - 4}" '
            f'text-anchor="middle">✕<title>{text(title)}</title></text>'
        )
    y = _y(axis, run.value)
    ring = f'<circle class="ring" cx="{x:.2f}%" cy="{y:.1f}" r="8.5"/>' if run.outlier else ""
    return ring + mark(number, f"{x:.2f}%", y, hollow=run.warm_up, title=title)


def _where(run: Run) -> str:
    return "not in a block" if run.block is None else _block(run.block)


def _value(run: Run) -> str:
    return (
        f"no value: {run.reason or 'not known'}"
        if run.value is None
        else units.quantity(run.value, "s")
    )


def _table(question: Question) -> str:
    head = ["run", "block", question.metric, "steady state", "spread of its steps", "marks"]
    groups = [
        (cell.label, [_line(at, run) for at, run in enumerate(cell.runs, 1)])
        for cell in question.cells
    ]
    return table(f"Runs of {question.label}", [text(each) for each in head], groups)


def _line(at: int, run: Run) -> Row:
    marks = [
        *(["warm-up, not judged"] if run.warm_up else []),
        *(["outlier, kept"] if run.outlier else []),
    ]
    spread = run.steady.spread
    return [
        str(at),
        units.UNKNOWN if run.block is None else str(run.block),
        text(_value(run)),
        text(_steady(run.steady)),
        units.UNKNOWN if spread is None else text(units.percent(spread)),
        text(", ".join(marks)),
    ]


def _steady(steady: Steady) -> str:
    if steady.seconds is None:
        return f"none: {steady.reason or 'not known'}"
    last = steady.first + steady.count
    span = f"steps {steady.first + 1} to {last}, median {units.quantity(steady.seconds, 's')}"
    if not steady.changes:
        return span
    return f"{span}; the level changed at {', '.join(str(each + 1) for each in steady.changes)}"
