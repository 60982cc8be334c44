"""The roofline as rows of text: FLOP/s over FLOP per byte, both logarithmic.

The roof of the run's data type is heavy; where that is not known, all are light. A filled mark
is the last minute, an open one all timed steps; a triangle is at most there. Every
mark and line has a label.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from gpuwatch.analysis.hardware.ceilings import Ceiling
from gpuwatch.analysis.hardware.points import ALGORITHMIC, EXECUTED, MEASURED, Point
from gpuwatch.analysis.hardware.program import IMPORTED, MACHINE
from gpuwatch.analysis.hardware.roofline import Roofline
from gpuwatch.core.aggregate import grouped
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.text import clean
from gpuwatch.core.units import bounded, percent, scale_label, si, si_parts
from gpuwatch.tui.feed.snapshot import Snapshot
from gpuwatch.tui.live.rows import Options, event_rows
from gpuwatch.tui.widgets.gauge_rows import longest_fitting
from gpuwatch.tui.widgets.head_rows import title_row
from gpuwatch.tui.widgets.line import Line, filled, fit, marked_rows, wrap

LIVE, STEADY = "●", "◇"
_AT_MOST = {LIVE: "▼", STEADY: "▽"}
_LEFT = 7
"""Columns of the scale of FLOP/s."""
_LABELS = {True: 34, False: 24}
"""Columns of the names of the roofs, on a wide and on a narrow screen."""
_RATE = " FLOP/s"
"""Beside the top of its axis."""
_UNIT = 15
"""Columns of the unit of the axis, if there are no names."""
_LEAST_DECADES = 2
_SHORT = {"float64": "fp64", "float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}
_THIRDS = ("▁", "─", "▔")
"""Lines in the lower, middle and upper third of a cell."""
_HEAVY = ("▂", "━", "▀")
_BYTES = {
    ALGORITHMIC: "algorithmic bytes",
    MEASURED: "measured bytes",
    EXECUTED: "executed, by ncu",
}


@dataclass(frozen=True)
class Plane:
    """Maps values to cells; ``left`` to ``top`` are exponents of ten at the edges."""

    left: float
    right: float
    bottom: float
    top: float
    columns: int
    rows: int

    def column(self, intensity: float) -> int:
        share = (math.log10(intensity) - self.left) / (self.right - self.left)
        return round(share * (self.columns - 1))

    def intensity(self, column: int) -> float:
        share = column / max(1, self.columns - 1)
        return math.pow(10.0, self.left + share * (self.right - self.left))

    def thirds(self, rate: float) -> int:
        """Distance from the bottom in thirds of a row."""
        share = (math.log10(rate) - self.bottom) / (self.top - self.bottom)
        return math.floor(share * (3 * self.rows - 1) + 0.5)

    def row(self, rate: float) -> int:
        """The row, 0 at the top."""
        return self.rows - 1 - self.thirds(rate) // 3


def roofline_rows(snapshot: Snapshot, options: Options, width: int, height: int) -> list[Line]:
    """The whole screen, without the row of keys."""
    rows = [title_row(snapshot, width, paused=options.paused)]
    if snapshot.machine_only or snapshot.imported:
        why = MACHINE if snapshot.machine_only else IMPORTED
        return filled([*rows, *_message(why, width)], width, height)
    if snapshot.roofline is None:
        return filled(
            [*rows, Line(width), *_message("computing the roofline …", width)], width, height
        )
    minute, steady = snapshot.roofline.minute, snapshot.roofline.steady
    main = minute if snapshot.status.live and minute.points else steady
    shown = [(LIVE, "last minute", minute)] if snapshot.status.live else []
    shown.append((STEADY, snapshot.roofline.period, steady))
    marked = [
        (_AT_MOST[mark] if each.points and each.points[0].bound else mark, name, each)
        for mark, name, each in shown
    ]
    rows += [_legend(mark, name, roofline, width) for mark, name, roofline in marked]
    foot = marked_rows(clean(main.verdict.text), " = ", "key", width, 4)
    for text in main.hints:
        foot += marked_rows(clean(text), " → ", "key", width, 2, "muted")
    if options.message:
        foot += event_rows(snapshot, options, width, 2)
    space = height - len(rows) - len(foot)
    if space >= 5:
        drawn = [
            (mark, roofline.points[0]) for mark, _, roofline in reversed(marked) if roofline.points
        ]
        rows += _plot(main, drawn, width, space)
    return filled([*rows, *foot], width, height)


def _message(text: str, width: int) -> list[Line]:
    return [Line(width).add(f" {line}", "muted") for line in wrap(text, width - 2, 3)]


def _legend(mark: str, name: str, roofline: Roofline, width: int) -> Line:
    row = Line(width).add(f" {mark} ", "flops").add(name, "strong").add("  ")
    if not roofline.points:
        return row.add(fit(clean(roofline.reason or "no point"), row.left), "muted")
    point = roofline.points[0]
    row.add(point.place.replace(", ", "  "), "strong")
    method = f"  {point.method.value}"
    details = f"{method}, {_BYTES.get(point.bytes_kind, point.bytes_kind)}"
    ceiling = roofline.ceilings.get(roofline.data_type or "")
    share = roofline.share_of_roof(point) or (
        ceiling
        and f"{bounded(percent(point.rate / ceiling.value), point.bound)} of {clean(ceiling.text)}"
    )
    short = (share or "").partition(", ")[0]
    texts = (f"{details}; {share}", f"{method}; {short}") if share else ()
    return row.add(longest_fitting((*texts, details), row.left), "muted")


def _plot(
    roofline: Roofline, points: Sequence[tuple[str, Point]], width: int, height: int
) -> list[Line]:
    labels = _LABELS[width >= 120] if roofline.ceilings else _UNIT
    columns, height = width - _LEFT - labels, height - 2
    plane = _plane(roofline, [point for _, point in points], columns, height)
    if plane is None:
        return _message("no ceiling and no point is known", width)
    cells = [[(" ", "text")] * columns for _ in range(height)]
    for ceiling in roofline.compute:
        own = ceiling.name == roofline.data_type
        _roof(cells, plane, ceiling.value, roofline.bandwidth, own)
    if not roofline.compute:
        _roof(cells, plane, None, roofline.bandwidth, True)
    for mark, point in points:
        at, column = plane.row(point.rate), plane.column(point.intensity)
        if 0 <= at < height and 0 <= column < columns:
            cells[at][column] = (mark, "flops")
    cells[0][: len(_RATE)] = [(character, "muted") for character in _RATE]
    if roofline.bandwidth is not None:
        _name_slope(cells, roofline.bandwidth)
    labels_by_row = _names(roofline, plane, labels - 1)
    decades = [10.0**each for each in range(math.ceil(plane.bottom), math.floor(plane.top) + 1)]
    scale = {plane.row(rate): scale_label(rate, "FLOP/s") for rate in reversed(decades)}
    drawn = []
    for at, line in enumerate(cells):
        row = Line(width).add(f"{scale.get(at, ''):>{_LEFT - 1}}", "muted").add("│", "faint")
        for text, role in line:
            row.add(text, role)
        text, role = labels_by_row.get(at, ("", "text"))
        drawn.append(row.add(f" {text}", role))
    return [*drawn, *_axis(plane, width)]


def _plane(roofline: Roofline, points: Sequence[Point], columns: int, rows: int) -> Plane | None:
    """The plane around the points and the ridges of the roofs; ``None``: nothing to draw."""
    bandwidth = roofline.bandwidth
    rates = [point.rate for point in points] + [roof.value for roof in roofline.compute]
    intensities = [point.intensity for point in points]
    if bandwidth is not None:
        intensities += [roof.value / bandwidth.value for roof in roofline.compute]
        rates += [point.intensity * bandwidth.value for point in points]
    if not rates or not intensities or columns < 10 or rows < 3:
        return None
    left, right = _decades(intensities, above=0.5)
    bottom, top = _decades(rates, above=0.0)
    return Plane(left, right, bottom, top, columns, rows)


def _decades(values: Sequence[float], above: float) -> tuple[float, float]:
    """Exponents at the edges, in fifths of a decade, so that they rarely move. ``above``: the share
    above the values of what is added to make them two decades."""
    low = math.floor(5 * math.log10(min(values)) - 1) / 5
    high = math.ceil(5 * math.log10(max(values)) + 0.5) / 5
    more = max(0.0, _LEAST_DECADES - (high - low))
    return low - more * (1 - above), high + more * above


def _roof(
    cells: list[list[tuple[str, str]]],
    plane: Plane,
    compute: float | None,
    bandwidth: Ceiling | None,
    own: bool,
) -> None:
    """Draw min(compute, intensity x bandwidth) by column."""
    glyphs, role = (_HEAVY, "strong") if own else (_THIRDS, "muted")
    for column in range(plane.columns):
        limit = None if bandwidth is None else plane.intensity(column) * bandwidth.value
        rate = min((value for value in (compute, limit) if value is not None), default=None)
        if rate is None or rate <= 0:
            continue
        row = plane.row(rate)
        if 0 <= row < plane.rows:
            shown = "bandwidth" if rate == limit else role
            cells[row][column] = glyphs[plane.thirds(rate) % 3], shown


def _names(roofline: Roofline, plane: Plane, width: int) -> Mapping[int, tuple[str, str]]:
    """Names of the roofs by row; they move down if they would overlap."""
    names: dict[int, tuple[str, str]] = {}
    groups = grouped(((each.value, each.kind), each.name) for each in roofline.compute)
    for (value, kind), types in groups.items():
        row = max(0, plane.row(value))
        free = next((at for at in range(row, plane.rows) if at not in names), None)
        if free is not None:
            label = f"{'/'.join(_SHORT.get(name, name) for name in types)} {kind}"
            size = "".join(si_parts(value, ""))
            role = "strong" if roofline.data_type in types else "muted"
            names[free] = fit(f"{size} {label}", width), role
    return names


def _name_slope(cells: list[list[tuple[str, str]]], bandwidth: Ceiling) -> None:
    """Write the bandwidth beside its roof, in the lowest row with room for it."""
    texts = [f"  {si(bandwidth.value, 'B/s')} {what}" for what in (bandwidth.text, bandwidth.kind)]
    for row in reversed(cells):
        start = max((at + 1 for at, (_, role) in enumerate(row) if role == "bandwidth"), default=0)
        room = next((at for at in range(start, len(row)) if row[at][0] != " "), len(row)) - start
        if start and (text := longest_fitting(texts, room)):
            row[start : start + len(text)] = [(character, "bandwidth") for character in text]
            return


def _axis(plane: Plane, width: int) -> list[Line]:
    line, labels = ["─"] * plane.columns, [" "] * plane.columns
    for exponent in range(math.ceil(plane.left), math.floor(plane.right) + 1):
        column = plane.column(10.0**exponent)
        line[column] = "┴"
        text = f"{10.0**exponent:g}"
        at = max(0, min(column - len(text) // 2, plane.columns - len(text)))
        if all(character == " " for character in labels[max(0, at - 1) : at + len(text)]):
            labels[at : at + len(text)] = text
    axis = Line(width).to(_LEFT - 1).add("└", "faint").add("".join(line), "faint")
    under = Line(width).to(_LEFT).add("".join(labels), "muted")
    return [axis, under.add(" FLOP per byte", "muted")]
