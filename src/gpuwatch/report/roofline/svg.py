"""The roofline as a self-contained SVG picture without script, for light and dark pages."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterator, Sequence
from html import escape

from gpuwatch.analysis.hardware.points import ALGORITHMIC, AT_MOST, EXECUTED, KINDS, MEASURED, Point
from gpuwatch.analysis.hardware.roofline import Roofline
from gpuwatch.core.text import clean
from gpuwatch.report.roofline.frame import Frame, Roof, frame_of, tick_label, ticks

_LEFT, _TOP, _WIDTH, _HEIGHT, _RIGHT = 110, 56, 640, 400, 30
_LINE = 18
"""Height of a line of text in pixels."""
_LONGEST = 98
"""Most characters of a line below the plot."""
_SIDE = 9
"""Pixels from a point's centre to the edge of its mark, with a margin."""
_MOST_RUNS = 12
_CORNERS = {
    EXECUTED: ((0, -8), (8, 0), (0, 8), (-8, 0)),
    ALGORITHMIC: ((0, -7), (7, 6), (-7, 6)),
    AT_MOST: ((0, 7), (7, -6), (-7, -6)),
}
"""Of the marks, from their centre."""
_PIECES = 100
Box = tuple[float, float, float, float]
"""Left, top, right and bottom, in pixels."""

_LETTER = 7.5
"""Width of a letter in pixels, for the widest common fonts at 13 pixels."""
_ABOVE, _BELOW = 11, 4
"""Height of a label above and below its baseline, in pixels."""
_ACROSS, _DOWN = 45, 6
"""Step sizes of the search for a free place, in pixels."""

_STYLE = """\
svg { background: #ffffff; font: 13px system-ui, sans-serif }
text { fill: #1f2328 } .soft { fill: #59636e }
.grid { stroke: #d1d9e0; stroke-width: 1 } .axis { stroke: #59636e; stroke-width: 1 }
.roof { stroke: #1f2328; stroke-width: 2; fill: none }
.slope { stroke: #0969da; stroke-width: 2.5; fill: none }
.point { fill: #bc4c00; stroke: #ffffff; stroke-width: 1.5 } .halo { fill: none;
stroke: #ffffff; stroke-width: 5px; stroke-linejoin: round }
.point.open { fill: none; stroke: #bc4c00 }
@media (prefers-color-scheme: dark) {
svg { background: #0d1117 } text { fill: #f0f6fc } .soft { fill: #9198a1 }
.grid { stroke: #2a313c } .axis { stroke: #9198a1 } .roof { stroke: #f0f6fc }
.slope { stroke: #58a6ff } .point { fill: #f0883e; stroke: #0d1117 } .halo { stroke: #0d1117 }
.point.open { stroke: #f0883e } }"""


def svg(rooflines: Sequence[Roofline]) -> str | None:
    """The picture; ``None`` if no run has a point, or none a ceiling.

    A point's shape shows the kind of its bytes: diamond executed, circle measured, triangle
    algorithmic; an open triangle that points down is at most there.
    """
    frame = frame_of(rooflines)
    if frame is None:
        return None
    below = _below(frame)
    width = _LEFT + _WIDTH + _RIGHT
    height = _TOP + _HEIGHT + 56 + _LINE * len(below)
    verdicts = " ".join(
        f"{clean(each.label, 100)}: {clean(each.verdict.text, 400)}."
        for each in rooflines[:_MOST_RUNS]
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-labelledby="title desc">',
        '<title id="title">Roofline: FLOP/s against FLOP per byte</title>',
        f'<desc id="desc">{escape(verdicts, quote=False)}</desc>',
        f"<style>{_STYLE}</style>",
        _text(_LEFT, 26, "Roofline: FLOP/s against FLOP per byte", extra=' font-weight="600"'),
        *_axes(frame),
        *_drawn(frame),
        *(
            _text(_LEFT - 80, _TOP + _HEIGHT + 62 + _LINE * at, line)
            for at, line in enumerate(below)
        ),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _axes(frame: Frame) -> list[str]:
    bottom, right = _TOP + _HEIGHT, _LEFT + _WIDTH
    parts = []
    for power in ticks(frame.left, frame.right):
        x = _x(frame, 10.0**power)
        parts.append(_line(x, _TOP, x, bottom, "grid"))
        parts.append(_text(x, bottom + 18, tick_label(power, ""), "middle", "soft"))
    for power in ticks(frame.bottom, frame.top):
        y = _y(frame, 10.0**power)
        parts.append(_line(_LEFT, y, right, y, "grid"))
        parts.append(_text(_LEFT - 8, y + 4, tick_label(power, "FLOP/s"), "end", "soft"))
    parts.append(_line(_LEFT, bottom, right, bottom, "axis"))
    parts.append(_line(_LEFT, _TOP, _LEFT, bottom, "axis"))
    middle = _LEFT + _WIDTH / 2
    parts.append(_text(middle, bottom + 36, "FLOP per byte", "middle", "soft"))
    return parts


def _drawn(frame: Frame) -> list[str]:
    """Roofs, labels and points; the points' marks come last, so that nothing covers them."""
    right = _LEFT + _WIDTH
    flats = [(_x(frame, frame.ridge(flat)), _y(frame, flat.value)) for flat in frame.flats]
    slopes = [(slope, ends) for slope in frame.slopes if (ends := _ends(frame, slope))]
    points = [(_x(frame, point.intensity), _y(frame, point.rate)) for point in frame.points]
    room = _LabelRoom(
        (_LEFT, _TOP, right, _TOP + _HEIGHT),
        [(x - _SIDE, y - _SIDE, x + _SIDE, y + _SIDE) for x, y in points],
        [
            *((x, y - 1, right, y + 1) for x, y in flats),
            *(box for _, ends in slopes for box in _along(*ends)),
        ],
    )
    labels = []
    for at, (point, (x, y)) in enumerate(zip(frame.points, points, strict=True), 1):
        bound = f" {point.bound}," if point.bound else ""
        told = f"{at}{bound} by {point.bytes_kind} bytes"
        labels.append(_label(room, told, [(x + _SIDE + 2, y + 5)]))
    for flat, (_, y) in zip(frame.flats, flats, strict=True):
        along = [(right - x, y + under) for x in (4, 150, 300) for under in (-6, 14)]
        labels.append(_label(room, flat.label, along, "end"))
    for slope, (x, y, end_x, end_y) in slopes:
        shares = (0.15, 0.3, 0.45, 0.6, 0.75, 0.05, 0.9)
        beside = [(x + s * (end_x - x) + 10, y + s * (end_y - y) + 12) for s in shares]
        labels.append(_label(room, slope.label, beside))
    return [
        *(_line(x, y, right, y, "roof") for x, y in flats),
        *(_line(*ends, "slope") for _, ends in slopes),
        *labels,
        *(_mark(frame, point) for point in frame.points),
    ]


def _ends(frame: Frame, slope: Roof) -> tuple[float, float, float, float] | None:
    """Both ends of a slope, in pixels; ``None`` if it does not cross the plot."""
    highest = max((flat.value for flat in frame.flats), default=10.0**frame.top)
    low = max(10.0**frame.left, 10.0**frame.bottom / slope.value)
    high = min(10.0**frame.right, highest / slope.value)
    if high <= low:
        return None
    return (
        *(_x(frame, low), _y(frame, low * slope.value)),
        *(_x(frame, high), _y(frame, high * slope.value)),
    )


def _along(x: float, y: float, end_x: float, end_y: float) -> Iterator[Box]:
    """The parts of a rising line, each with room for little else."""
    across, up = (end_x - x) / _PIECES, (y - end_y) / _PIECES
    for at in range(_PIECES):
        low = y - up * at
        yield x + across * at, low - up, x + across * (at + 1), low


def _label(
    room: _LabelRoom, label: str, wanted: Sequence[tuple[float, float]], anchor: str = "start"
) -> str:
    """Text with a halo, readable where lines cross it; empty if the plot is full."""
    text = clean(label, 80)
    place = room.place(text, wanted, to_the_left=anchor == "end")
    if place is None:
        return ""
    return _text(*place, text, anchor, "halo") + _text(*place, text, anchor)


def _mark(frame: Frame, point: Point) -> str:
    x, y = _x(frame, point.intensity), _y(frame, point.rate)
    if point.mark == MEASURED:
        return f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="6"/>'
    corners = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in _CORNERS[point.mark])
    kind = "point open" if point.bound else "point"
    return f'<polygon class="{kind}" points="{corners}"/>'


def _below(frame: Frame) -> list[str]:
    """The lines below the plot: what each number stands for."""
    shape = {EXECUTED: "diamond", MEASURED: "circle", AT_MOST: "open triangle"}
    lines = [
        f"{at} {clean(point.label, 60)}, {point.bytes_kind} bytes: {point.place}, "
        f"{point.method.value}"
        for at, point in enumerate(frame.points, 1)
    ]
    kinds = {point.mark: point.text for point in frame.points}
    shown = (kind for kind in (*KINDS, AT_MOST) if kind in kinds)
    lines += [f"{shape.get(kind, 'triangle')}: {kinds[kind]}" for kind in shown]
    for roof in (*frame.slopes, *frame.flats):
        if roof.doubt:
            lines.append(clean(f"{roof.label}: {roof.doubt}", 400))
    return [part for line in lines for part in textwrap.wrap(line, _LONGEST) or [""]]


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(
    x: float, y: float, text: str, anchor: str = "start", kind: str = "", extra: str = ""
) -> str:
    shown_kind = f' class="{kind}"' if kind else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{shown_kind}{extra}>'
        f"{escape(text, quote=False)}</text>"
    )


def _x(frame: Frame, intensity: float) -> float:
    return _LEFT + frame.across(intensity) * _WIDTH


def _y(frame: Frame, rate: float) -> float:
    return _TOP + (1 - frame.upward(rate)) * _HEIGHT


class _LabelRoom:
    """Free space of a plot, reduced by each placed label."""

    def __init__(self, plot: Box, marks: Sequence[Box], lines: Sequence[Box]) -> None:
        self._plot = plot
        self._taken = list(marks)
        self._lines = list(lines)
        across = range(0, round(plot[2] - plot[0]), _ACROSS)
        down = range(0, round(plot[3] - plot[1]), _DOWN)
        moves = ((x * i, y * j) for x in across for y in down for i in (1, -1) for j in (1, -1))
        self._moves = sorted(set(moves), key=lambda move: abs(move[0]) + abs(move[1]))

    def place(
        self, text: str, wanted: Sequence[tuple[float, float]], *, to_the_left: bool = False
    ) -> tuple[float, float] | None:
        """Reserve a place; returns the start of the baseline (``to_the_left``: its end).

        Takes the first free place of ``wanted``, else the nearest free one to the first, if needed
        over a line; ``None`` if the plot is full.
        """
        back = _LETTER * len(text) if to_the_left else 0.0
        for taken in ([*self._taken, *self._lines], self._taken):
            for x, y in itertools.chain(wanted, self._near(*wanted[0])):
                left = x - back
                box = (left, y - _ABOVE, left + _LETTER * len(text), y + _BELOW)
                if _inside(box, self._plot) and not any(_overlap(box, each) for each in taken):
                    self._taken.append(box)
                    return x, y
        return None

    def _near(self, x: float, y: float) -> Iterator[tuple[float, float]]:
        return ((x + across, y + down) for across, down in self._moves)


def _inside(box: Box, plot: Box) -> bool:
    return plot[0] <= box[0] and plot[1] <= box[1] and box[2] <= plot[2] and box[3] <= plot[3]


def _overlap(one: Box, two: Box) -> bool:
    return one[0] < two[2] and two[0] < one[2] and one[1] < two[3] and two[1] < one[3]
