"""The gauges of all runs of a question over each other: a picture, and data for the script."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpuwatch.analysis.gauges import RunSeries
from gpuwatch.analysis.results import Question, Run
from gpuwatch.models import JSON
from gpuwatch.report.html.axis import Axis, label
from gpuwatch.report.html.marks import legend, line
from gpuwatch.report.html.markup import text
from gpuwatch.report.html.measures import Measure, measures, short
from gpuwatch.text import clean

_HEIGHT, _BOTTOM = 250, 226
_ACROSS = 1000
"""Width of the picture in its own units, stretched to the page's."""
_BEFORE, _AFTER = 0.2, 0.1
"""Shares of the timed steps' time that are shown before and behind them."""
_FEWEST = 8
"""With fewer points among the timed steps the whole recording is shown first."""
_NEAR, _ALL, _STEPS = "near", "all", "steps"


@dataclass(frozen=True)
class _Drawn:
    """One run in the picture's units."""

    cell: int
    name: str
    warm_up: bool
    times: tuple[float, ...]
    steps: tuple[float | None, ...]
    values: tuple[tuple[float | None, ...] | None, ...]
    """For each measure."""


def curves(question: Question, series: Mapping[str, RunSeries]) -> str:
    """Picture, controls and data, or why there is no picture; ``series`` by the session's path."""
    found = [
        (number, run, series[run.session.path])
        for number, cell in enumerate(question.cells)
        for run in cell.runs
        if run.session.path in series
    ]
    of_runs = [each for _, _, each in found]
    known = measures(of_runs)
    if not known:
        return "<p>No gauge of these runs is known.</p>"
    longest = max(abs(t) for each in of_runs for t in each.seconds)
    divisor, unit = _time_unit(longest)
    drawn = [_drawn(number, run, each, known, divisor) for number, run, each in found]
    across = f"{unit} since the {' or the '.join(dict.fromkeys(each.zero for each in of_runs))}"
    ranges = _ranges(drawn)
    mode = _NEAR if _NEAR in ranges else _ALL
    labels = [cell.label for cell in question.cells]
    first = known[0]
    title = f"{first.title} of every run of {question.label}"
    return (
        '<figure class="chart curves">\n'
        f"{_controls(known, ranges)}{legend(labels)}"
        f'<p class="what">{text(first.title)}, {text(first.unit)}</p>\n'
        f'<div class="plot">{_scale(first.axis)}'
        f'<svg class="over" role="img" width="100%" height="{_HEIGHT}">'
        f"<title>{text(title)}</title>{_picture(drawn, first.axis, ranges[mode], mode)}</svg>"
        f'</div>\n<p class="across" data-time="{text(across)}">{text(across)}</p>\n'
        '<p class="moment" hidden><label>Read off at '
        '<input type="range" min="0" max="400" value="200"></label></p>\n'
        '<div class="readout" role="status"></div>\n'
        f"<figcaption>{_caption(known, of_runs)}</figcaption>\n"
        f'<script type="application/json">{_data(labels, drawn, known, ranges, mode)}</script>\n'
        "</figure>"
    )


def embedded(value: JSON) -> str:
    """JSON for the inside of a ``script`` element: nothing in it can end the element."""
    told = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return told.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


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
    """What can be shown across: around the timed steps, the whole recording, the steps."""
    times = [t for each in drawn for t in each.times]
    found = {_ALL: (min(times), max(max(times), min(times) + 1e-3))}
    timed = [
        t for each in drawn for t, k in zip(each.times, each.steps, strict=True) if k is not None
    ]
    if timed and max(timed) > 0:
        span = max(timed)
        low, high = max(found[_ALL][0], -_BEFORE * span), min(found[_ALL][1], (1 + _AFTER) * span)
        inside = sum(low <= t <= high for t in times)
        if inside >= _FEWEST * len(drawn):
            found[_NEAR] = (low, high)
    steps = [k for each in drawn for k in each.steps if k is not None]
    if steps and max(steps) > 0:
        found[_STEPS] = (0.0, max(steps))
    return found


def _controls(known: Sequence[Measure], ranges: Mapping[str, object]) -> str:
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
        f'<p class="controls" hidden><label>Metric <select name="metric">{metrics}</select></label>'
        f'<label>Aligned by <select name="mode">{aligned}</select></label></p>\n'
    )


def _scale(axis: Axis) -> str:
    numbers = "".join(
        f'<text x="100%" y="{_y(axis, tick) + 4:.1f}" text-anchor="end">{label(tick)}</text>'
        for tick in axis.ticks(4)
    )
    return f'<svg class="up" aria-hidden="true" width="56" height="{_HEIGHT}">{numbers}</svg>'


def _y(axis: Axis, value: float) -> float:
    return 8 + (_BOTTOM - 8) * (1 - axis.share(value) / 100)


def _picture(drawn: Sequence[_Drawn], up: Axis, span: tuple[float, float], mode: str) -> str:
    """The first measure by time, as the script draws every other."""
    across = Axis(*span)
    parts = [
        f'<line class="grid" x1="0" x2="100%" y1="{_y(up, t):.1f}" y2="{_y(up, t):.1f}"/>'
        for t in up.ticks(4)
    ]
    for tick in across.ticks(7):
        x = across.share(tick)
        if mode != _STEPS and abs(tick) < 1e-12:
            parts.append(f'<line class="axis" x1="{x:.2f}%" x2="{x:.2f}%" y1="8" y2="{_BOTTOM}"/>')
        anchor = "start" if x < 3 else "end" if x > 97 else "middle"
        parts.append(
            f'<text x="{x:.2f}%" y="{_HEIGHT - 6}" text-anchor="{anchor}">{label(tick)}</text>'
        )
    lines = "".join(_line(each, up, across) for each in drawn)
    return (
        f'{"".join(parts)}<svg width="100%" height="{_HEIGHT}" '
        f'viewBox="0 0 {_ACROSS} {_HEIGHT}" preserveAspectRatio="none">{lines}</svg>'
    )


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
    return f'<path class="curve {line(drawn.cell)}{faint}" d="{"".join(path)}"/>'


def _caption(known: Sequence[Measure], series: Sequence[RunSeries]) -> str:
    merged = max(each.merged for each in series)
    thinned = (
        f"Thinned for this page: a point is the mean of up to {merged} samples; "
        "the session files have all. "
        if merged > 1
        else "Every sample is drawn. "
    )
    hows = "; ".join(f"{text(each.title)}: {text(each.how, 200)}" for each in known)
    return f"One line a run; faint: warm-up block. {thinned}How obtained: {hows}."


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
                {"label": clean(each, 80), "line": line(number)}
                for number, each in enumerate(labels)
            ],
            "measures": [
                {"title": each.title, "unit": clean(each.unit), "top": each.axis.high}
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
