"""The gauges of all runs of a question in one chart, with data for the script."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from gpuwatch.analysis.results import Question, Run
from gpuwatch.analysis.samples.gauges import SHOWN, RunSeries
from gpuwatch.core import units
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import label as name_of
from gpuwatch.core.models import JSON, number
from gpuwatch.core.text import clean
from gpuwatch.report.html.drawing import (
    Axis,
    anchor,
    colour,
    from_zero,
    label,
    legend,
    lines,
    mark,
    scale,
    shape,
)
from gpuwatch.report.html.markup import text

_HEIGHT, _TOP, _BOTTOM = 250, 8, 226
_ACROSS = 1000
"""Width of the chart in its own units; it is stretched to that of the page."""
_MARKS = 6
"""Number of shapes along a cell's line."""
_BEFORE, _AFTER = 0.2, 0.1
"""Time shown before and after the timed steps, as a share of their duration."""
_FEWEST = 8
"""With fewer points per run in the timed steps, the whole recording is shown first."""
_NEAR, _ALL, _STEPS = "near", "all", "steps"


@dataclass(frozen=True)
class Measure:
    name: str
    title: str
    divisor: float
    """A value in the metric's own unit divided by this is in ``unit``."""
    unit: str
    axis: Axis
    how: str
    """Method and source, for every way in which the runs obtained it."""

    def of(self, series: RunSeries) -> tuple[float | None, ...] | None:
        """A run's values in ``unit``, to four digits; ``None`` if it has no such metric, and for
        each value that is not finite in that unit."""
        if self.name not in series.metrics:
            return None
        values = series.metrics[self.name].values
        return tuple(None if v is None else number(short(v / self.divisor)) for v in values)


def measures(series: Sequence[RunSeries]) -> list[Measure]:
    """The metrics that at least one run has, most important first."""
    measures_ = []
    for name in SHOWN:
        gauges = [each.metrics[name] for each in series if name in each.metrics]
        if not gauges:
            continue
        unit = gauges[0].unit
        largest = max((abs(v) for each in gauges for v in each.values if v is not None), default=0)
        divisor, shown = _display(unit, largest)
        hows = dict.fromkeys(
            f"{each.method.value}, {each.source}"
            + (f", mean of {each.devices} devices" if each.devices > 1 else "")
            for each in gauges
        )
        axis = Axis(0.0, 100.0) if unit == "1" else from_zero(largest / divisor)
        measures_.append(Measure(name, name_of(name), divisor, shown, axis, "; ".join(hows)))
    return measures_


def short(value: float) -> float:
    """Four significant digits."""
    return float(f"{value:.4g}")


def _display(unit: str, largest: float) -> tuple[float, str]:
    """Divisor and display unit for values up to ``largest``: ``(1e12, "TFLOP/s")``."""
    if unit == "1":
        return 0.01, "%"
    if unit == "Cel":
        return 1.0, "°C"
    if unit == "By":
        for power, prefix in ((40, "T"), (30, "G"), (20, "M"), (10, "K")):
            if largest >= 2**power:
                return 2.0**power, f"{prefix}iB"
        return 1.0, "B"
    plain = {"{sample}/s": "samples/s"}.get(unit, units.plain_unit(unit))
    for power, prefix in ((12, "T"), (9, "G"), (6, "M"), (3, "k")):
        if largest >= 10**power:
            return 10.0**power, prefix + plain
    return 1.0, plain


@dataclass(frozen=True)
class _Drawn:
    """One run in the units of the chart.

    ``times`` and ``steps`` have one entry per point, and so has each of ``values``.
    """

    cell: int
    name: str
    warm_up: bool
    times: tuple[float, ...]
    steps: tuple[float | None, ...]
    values: tuple[tuple[float | None, ...] | None, ...]
    """One tuple per measure; ``None`` if the run lacks it."""


def curves(question: Question, series: Mapping[str, RunSeries], prefix: str) -> str:
    """Chart, controls and data, or why there is no chart; ``series`` is keyed by session path.

    HTML ids start with ``prefix``.
    """
    plotted = [
        (number, run, series[run.session.path])
        for number, cell in enumerate(question.cells)
        for run in cell.runs
        if run.session.path in series
    ]
    of_runs = [each for _, _, each in plotted]
    known = measures(of_runs)
    if not known:
        return "<p>No gauge of these runs is known.</p>"
    longest = max(abs(t) for each in of_runs for t in each.seconds)
    divisor, unit = _time_unit(longest)
    drawn = [_drawn(number, run, each, known, divisor) for number, run, each in plotted]
    across = f"{unit} since the {' or the '.join(dict.fromkeys(each.zero for each in of_runs))}"
    ranges = _ranges(drawn)
    mode = _NEAR if _NEAR in ranges else _ALL
    labels = [cell.label for cell in question.cells]
    first = known[0]
    title = f"{first.title} of every run of {question.label}"
    ticks = [(_y(first.axis, tick), label(tick)) for tick in first.axis.ticks(4)]
    return (
        '<figure class="chart curves">\n'
        f"{_controls(known, ranges, prefix)}{legend(labels)}"
        f'<p class="what">{text(first.title)}, {text(first.unit)}</p>\n'
        f'<div class="plot">{scale(ticks, 56, _HEIGHT)}'
        f'<svg class="over" role="img" width="100%" height="{_HEIGHT}">'
        f"<title>{text(title)}</title>"
        f"{_picture(drawn, len(labels), first.axis, ranges[mode])}</svg>"
        f'</div>\n<p class="across" data-time="{text(across)}">{text(across)}</p>\n'
        f'<p class="moment" hidden><label for="{prefix}-at">Read off at</label>'
        f'<input id="{prefix}-at" type="range" min="0" max="400" value="200"></p>\n'
        '<div class="readout" role="status"></div>\n'
        f"<figcaption>{_caption(first, of_runs)}</figcaption>\n"
        f'<script type="application/json">{_data(labels, drawn, known, ranges, mode)}</script>\n'
        "</figure>"
    )


def embedded(value: JSON) -> str:
    """JSON for a ``script`` element, escaped so that it cannot end the element."""
    encoded = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return encoded.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _time_unit(seconds: float) -> tuple[float, str]:
    if seconds > 3 * 3600:
        return 3600.0, "hours"
    return (60.0, "minutes") if seconds > 900 else (1.0, "seconds")


def _drawn(
    number: int, run: Run, series: RunSeries, known: Sequence[Measure], divisor: float
) -> _Drawn:
    name = clean(run.session.id, 12) if run.block is None else f"block {run.block}"
    return _Drawn(
        number,
        "warm-up" if run.warm_up else name,
        run.warm_up,
        tuple(round(each / divisor, 3) for each in series.seconds),
        tuple(None if each is None else short(each) for each in series.steps),
        tuple(measure.of(series) for measure in known),
    )


def _ranges(drawn: Sequence[_Drawn]) -> dict[str, tuple[float, float]]:
    """Ranges of the x axis: around the timed steps, the whole recording, the step numbers."""
    times = [t for each in drawn for t in each.times]
    ranges = {_ALL: (min(times), max(max(times), min(times) + 1e-3))}
    timed = [
        t for each in drawn for t, k in zip(each.times, each.steps, strict=True) if k is not None
    ]
    if timed and max(timed) > 0:
        span = max(timed)
        low, high = max(ranges[_ALL][0], -_BEFORE * span), min(ranges[_ALL][1], (1 + _AFTER) * span)
        inside = sum(low <= t <= high for t in times)
        if inside >= _FEWEST * len(drawn):
            ranges[_NEAR] = (low, high)
    steps = [k for each in drawn for k in each.steps if k is not None]
    if steps and max(steps) > 0:
        ranges[_STEPS] = (0.0, max(steps))
    return ranges


def _controls(known: Sequence[Measure], ranges: Mapping[str, object], prefix: str) -> str:
    names = {
        _NEAR: "time, around the timed steps",
        _ALL: "time, whole recording",
        _STEPS: "timed step",
    }
    metrics = "".join(
        f'<option value="{at}">{text(each.title)}</option>' for at, each in enumerate(known)
    )
    aligned = "".join(
        f'<option value="{mode}">{names[mode]}</option>' for mode in names if mode in ranges
    )
    return (
        '<p class="controls" hidden>'
        f'<span><label for="{prefix}-metric">Metric</label> '
        f'<select id="{prefix}-metric">{metrics}</select></span>'
        f'<span><label for="{prefix}-mode">Aligned by</label> '
        f'<select id="{prefix}-mode">{aligned}</select></span></p>\n'
    )


def _y(axis: Axis, value: float) -> float:
    return _TOP + (_BOTTOM - _TOP) * (1 - axis.share(value) / 100)


def _picture(drawn: Sequence[_Drawn], cells: int, up: Axis, span: tuple[float, float]) -> str:
    """The first measure over time; the script draws the others in the same way."""
    across = Axis(*span)
    parts = lines([_y(up, t) for t in up.ticks(4)])
    for tick in across.ticks(7):
        x = across.share(tick)
        if abs(tick) < 1e-12:
            parts.append(
                f'<line class="axis" x1="{x:.2f}%" x2="{x:.2f}%" y1="{_TOP}" y2="{_BOTTOM}"/>'
            )
        parts.append(
            f'<text x="{x:.2f}%" y="{_HEIGHT - 6}" text-anchor="{anchor(x)}">{label(tick)}</text>'
        )
    curves_ = "".join(_line(each, up, across) for each in drawn)
    parts.append(
        f'<svg width="100%" height="{_HEIGHT}" viewBox="0 0 {_ACROSS} {_HEIGHT}" '
        f'preserveAspectRatio="none">{curves_}</svg>'
    )
    return "".join([*parts, *_marks(drawn, cells, up, across)])


def _line(drawn: _Drawn, up: Axis, across: Axis) -> str:
    values = drawn.values[0]
    if values is None:
        return ""
    path, pen = [], "M"
    for t, value in zip(drawn.times, values, strict=True):
        if value is None or not across.holds(t):
            pen = "M"
            continue
        path.append(f"{pen}{across.share(t) * _ACROSS / 100:.1f} {_y(up, value):.1f}")
        pen = "L"
    faint = " faint" if drawn.warm_up else ""
    return f'<path class="curve {colour(drawn.cell)}{faint}" d="{"".join(path)}"/>'


def _marks(drawn: Sequence[_Drawn], cells: int, up: Axis, across: Axis) -> list[str]:
    """Shapes along the first judged run of each cell, offset from those of the other cells."""
    marks = []
    for cell in range(cells):
        run = next((each for each in drawn if each.cell == cell and not each.warm_up), None)
        if run is None or (values := run.values[0]) is None:
            continue
        known = [
            (t, value)
            for t, value in zip(run.times, values, strict=True)
            if value is not None and across.holds(t)
        ]
        for place in range(_MARKS if known else 0):
            share = (place + (cell + 0.5) / cells) / _MARKS
            wanted = across.low + share * (across.high - across.low)
            t, value = min(known, key=lambda each: abs(each[0] - wanted))
            marks.append(mark(cell, f"{across.share(t):.2f}%", _y(up, value)))
    return marks


def _caption(measure: Measure, series: Sequence[RunSeries]) -> str:
    merged = max(each.merged for each in series)
    thinned = (
        f"Thinned for this page: a point is the mean of up to {merged} samples, and "
        "the session files have all."
        if merged > 1
        else "Every sample is drawn."
    )
    return (
        "A line for each run, faint for the warm-up block; the shapes stand on one run of each "
        f'cell. {thinned} Obtained: <span class="how">{text(measure.how)}</span>.'
    )


def _data(
    labels: Sequence[str],
    drawn: Sequence[_Drawn],
    known: Sequence[Measure],
    ranges: Mapping[str, tuple[float, float]],
    mode: str,
) -> str:
    return embedded(
        {
            "mode": mode,
            "ranges": ranges,
            "cells": [
                {"label": clean(each, 80), "colour": colour(number), "shape": shape(number)}
                for number, each in enumerate(labels)
            ],
            "measures": [
                {
                    "title": each.title,
                    "unit": clean(each.unit),
                    "top": each.axis.high,
                    "how": clean(each.how, 600),
                }
                for each in known
            ],
            "runs": [
                {
                    "cell": each.cell,
                    "name": each.name,
                    "faint": each.warm_up,
                    "t": each.times,
                    "k": each.steps,
                    "v": each.values,
                }
                for each in drawn
            ],
        }
    )
