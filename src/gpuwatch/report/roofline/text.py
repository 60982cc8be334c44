"""The roofline for a terminal of eighty columns."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from gpuwatch.analysis.hardware.points import ALGORITHMIC, AT_MOST, EXECUTED, MEASURED, Point
from gpuwatch.analysis.hardware.roofline import Roofline
from gpuwatch.core.text import clean
from gpuwatch.report.roofline.frame import Frame, frame_of, tick_label, ticks

_WIDTH, _HEIGHT, _MARGIN = 64, 19, 14
"""Columns and rows of the plot, and columns to its left."""
_COLUMNS = 80
_MARKS = {EXECUTED: "◆", MEASURED: "●", ALGORITHMIC: "▲", AT_MOST: "▽"}


def text(rooflines: Sequence[Roofline]) -> str:
    """Plot, legend and what bounds each run; without a point or a ceiling only the reasons."""
    frame = frame_of(rooflines)
    lines = [] if frame is None else _plot(frame)
    if frame is not None:
        lines.append("")
        under = _hidden(frame)
        for at, point in enumerate(frame.points, 1):
            lines += _legend(at, point, under.get(at))
        for sign, roofs in (("╱", frame.slopes), ("─", frame.flats)):
            for roof in roofs:
                doubt = f": {roof.doubt}" if roof.doubt else ""
                lines += _wrapped(f"{sign}  {clean(f'{roof.label}{doubt}', 500)}")
    labels: dict[tuple[str, ...], list[str]] = {}
    for at, each in enumerate(rooflines):
        of_run = frame.numbers[at] if frame is not None and len(rooflines) > 1 else ()
        said = (clean(each.verdict.text, 600), *each.hints)
        numbers = ", ".join(map(str, of_run))
        labels.setdefault(said, []).append(f"{numbers} {clean(each.label, 200)}".lstrip())
    for (verdict, *hints), names in labels.items():
        lines += ["", *_wrapped(f"{'; '.join(names)}: {verdict}")]
        for hint in hints:
            lines += _wrapped(f"  {hint}")
    return "\n".join(lines).lstrip("\n") + "\n"


def _plot(frame: Frame) -> list[str]:
    cells = [[" "] * _WIDTH for _ in range(_HEIGHT)]
    highest = min([10.0**frame.top, *(flat.value for flat in frame.flats[:1])])
    for slope in frame.slopes:
        for column in range(_WIDTH):
            share = column / (_WIDTH - 1)
            intensity = 10.0 ** (frame.left + share * (frame.right - frame.left))
            rate = intensity * slope.value
            if 10.0**frame.bottom <= rate <= highest:
                cells[_row(frame, rate)][column] = "╱"
    for flat in reversed(frame.flats):
        first = _column(frame, frame.ridge(flat))
        for column in range(first, _WIDTH):
            cells[_row(frame, flat.value)][column] = "─"
    _name_flats(frame, cells)
    for at in {*range(1, len(frame.points) + 1)} - _hidden(frame).keys():
        row, column, mark = _marked(frame, at)
        cells[row][column : column + len(mark)] = mark
    rate_ticks = {_row(frame, 10.0**power): power for power in ticks(frame.bottom, frame.top)}
    lines = [f"{'FLOP/s':>{_MARGIN - 2}} │"]
    for row, of_row in enumerate(cells):
        label = tick_label(rate_ticks[row], "FLOP/s") if row in rate_ticks else ""
        axis = "┤" if label else "│"
        lines.append(f"{label:>{_MARGIN - 2}} {axis}{''.join(of_row)}".rstrip())
    return [*lines, *_intensity_axis(frame)]


def _name_flats(frame: Frame, cells: list[list[str]]) -> None:
    """Write the data types at the right end of each flat roof; roofs in one row share a label."""
    by_row: dict[int, list[str]] = {}
    for flat in frame.flats:
        by_row.setdefault(_row(frame, flat.value), []).extend(flat.names)
    for row, names in by_row.items():
        label = f" {', '.join(names)} "[: _WIDTH // 2]
        cells[row][_WIDTH - len(label) :] = label


def _intensity_axis(frame: Frame) -> list[str]:
    axis, labels = ["─"] * _WIDTH, [" "] * (_WIDTH + 8)
    for power in ticks(frame.left, frame.right, 8):
        column = _column(frame, 10.0**power)
        axis[column] = "┴"
        label = tick_label(power, "")
        start = max(0, column - len(label) // 2)
        labels[start : start + len(label)] = label
    indent = " " * (_MARGIN - 1)
    return [
        f"{indent}└{''.join(axis)}",
        f"{indent} {''.join(labels)}".rstrip()[:_COLUMNS],
        f"{'FLOP per byte':>{_COLUMNS - 2}}",
    ]


def _marked(frame: Frame, at: int) -> tuple[int, int, str]:
    """Row, first column and text of a point's mark."""
    point = frame.points[at - 1]
    mark = f"{_MARKS[point.mark]}{at}"
    column = min(_column(frame, point.intensity), _WIDTH - len(mark))
    return _row(frame, point.rate), column, mark


def _hidden(frame: Frame) -> dict[int, int]:
    """Number of each point without room for its mark -> number of the point that stands there."""
    covering: dict[int, int] = {}
    for at in range(2, len(frame.points) + 1):
        row, column, mark = _marked(frame, at)
        for other in {*range(1, at)} - covering.keys():
            its_row, its_column, its_mark = _marked(frame, other)
            apart = column >= its_column + len(its_mark) or its_column >= column + len(mark)
            if row == its_row and not apart:
                covering[at] = other
                break
    return covering


def _legend(at: int, point: Point, under: int | None) -> list[str]:
    line = (
        f"{_MARKS[point.mark]}{at} {clean(point.label, 200)}: {point.place}, "
        f"{point.method.value}; {point.text}"
        + ("" if under is None else f"; in the plot under {under}")
    )
    return _wrapped(line)


def _wrapped(line: str) -> list[str]:
    return textwrap.wrap(line, _COLUMNS, subsequent_indent="   ") or [""]


def _column(frame: Frame, intensity: float) -> int:
    return round(frame.across(intensity) * (_WIDTH - 1))


def _row(frame: Frame, rate: float) -> int:
    return round((1 - frame.upward(rate)) * (_HEIGHT - 1))
