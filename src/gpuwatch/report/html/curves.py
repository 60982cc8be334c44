"""The gauges of all runs of a question: the data of a chart that the script draws."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import isfinite

from gpuwatch.analysis.results import Question, Run
from gpuwatch.analysis.samples.gauges import LOSS, SHOWN, RunSeries
from gpuwatch.core import units
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import label as name_of
from gpuwatch.core.models import JSON, number
from gpuwatch.core.text import clean
from gpuwatch.report.html.drawing import colour, from_zero, legend, shape
from gpuwatch.report.html.markup import text

_HEIGHT = 250
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
    low: float
    top: float
    """The ends of its axis, which has 0."""
    how: str
    """Method and source, for every way in which the runs obtained it."""

    def of(self, series: RunSeries) -> tuple[float | None, ...] | None:
        """A run's values in ``unit``, to four digits; ``None`` if it has no such metric, and for
        each value that is not finite in that unit. ``False``: none was told, and the curve goes
        on."""
        if self.name not in series.metrics:
            return None
        values = series.metrics[self.name].values
        unknown = False if self.name == LOSS else None
        return tuple(unknown if v is None else number(short(v / self.divisor)) for v in values)


def measures(series: Sequence[RunSeries]) -> list[Measure]:
    """The metrics that at least one run has, most important first."""
    measures_ = []
    for name in SHOWN:
        gauges = [each.metrics[name] for each in series if name in each.metrics]
        if not gauges:
            continue
        unit = gauges[0].unit
        known = [v for each in gauges for v in each.values if v is not None and isfinite(v)]
        low, high = min(known, default=0), max(known, default=0)
        divisor, shown = _display(unit, max(-low, high))
        hows = dict.fromkeys(
            f"{each.method.value}, {each.source}"
            + (f", mean of {each.devices} devices" if each.devices > 1 else "")
            for each in gauges
        )
        top = 100.0 if unit == "1" else from_zero(high / divisor).high
        bottom = -from_zero(-low / divisor).high if low < 0 else 0.0
        how = "; ".join(hows)
        measures_.append(Measure(name, name_of(name), divisor, shown, bottom, top, how))
    return measures_


def short(value: float) -> float:
    """Four significant digits."""
    return float(f"{value:.4g}")


def _display(unit: str, largest: float) -> tuple[float, str]:
    """Divisor and display unit for values up to ``largest``: ``(1e12, "TFLOP/s")``."""
    if unit == "1":
        return 0.01, "%"
    if unit in ("Cel", ""):
        return 1.0, "°C" if unit else ""
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


_Drawn = Mapping[str, JSON]
"""One run in the units of the chart, as the script reads it: ``t``, ``k``, ``v`` are the times of
its points, the timed steps done by then, and for each measure the values, null if it lacks it."""


def curves(question: Question, series: Mapping[str, RunSeries], prefix: str) -> str:
    """Controls and data, which the script draws, or why there is no chart.

    ``series`` is keyed by session path. HTML ids start with ``prefix``.
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
    labels = [cell.label for cell in question.cells]
    data = {
        "mode": _NEAR if _NEAR in ranges else _ALL,
        "ranges": ranges,
        "cells": [
            {"label": clean(each, 80), "colour": colour(number), "shape": shape(number)}
            for number, each in enumerate(labels)
        ],
        "measures": [
            {
                "title": each.title,
                "unit": clean(each.unit),
                "low": each.low,
                "top": each.top,
                "how": clean(each.how, 600),
            }
            for each in known
        ],
        "runs": drawn,
    }
    return (
        '<figure class="chart curves">\n'
        '<p class="unscripted">The script of this page draws the curves, and it does not run '
        "here.</p>\n<div hidden>\n"
        f'{_controls(known, ranges, prefix)}{legend(labels)}<p class="what"></p>\n'
        f'<div class="plot"><svg class="up" aria-hidden="true" width="56" height="{_HEIGHT}"/>'
        f'<svg class="over" role="img" width="100%" height="{_HEIGHT}">'
        f"<title>every run of {text(question.label)}</title></svg></div>\n"
        f'<p class="across" data-time="{text(across)}"></p>\n'
        f'<p class="moment"><label for="{prefix}-at">Read off at</label>'
        f'<input id="{prefix}-at" type="range" min="0" max="400" value="200"></p>\n'
        '<div class="readout" role="status"></div>\n</div>\n'
        f"<figcaption>{_caption(known[0], of_runs)}</figcaption>\n"
        f'<script type="application/json">{embedded(data)}</script>\n'
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
    name = clean(run.session.id)[:12] if run.block is None else f"block {run.block}"
    return {
        "cell": number,
        "name": "warm-up" if run.warm_up else name,
        "faint": run.warm_up,
        "t": [round(each / divisor, 3) for each in series.seconds],
        "k": [None if each is None else short(each) for each in series.steps],
        "v": [measure.of(series) for measure in known],
    }


def _ranges(drawn: Sequence[_Drawn]) -> dict[str, tuple[float, float]]:
    """Ranges of the x axis: around the timed steps, the whole recording, the step numbers."""
    times = [t for each in drawn for t in each["t"]]
    ranges = {_ALL: (min(times), max(max(times), min(times) + 1e-3))}
    timed = [
        t for each in drawn for t, k in zip(each["t"], each["k"], strict=True) if k is not None
    ]
    if timed and max(timed) > 0:
        span = max(timed)
        low, high = max(ranges[_ALL][0], -_BEFORE * span), min(ranges[_ALL][1], (1 + _AFTER) * span)
        inside = sum(low <= t <= high for t in times)
        if inside >= _FEWEST * len(drawn):
            ranges[_NEAR] = (low, high)
    steps = [k for each in drawn for k in each["k"] if k is not None]
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
        '<p class="controls">'
        f'<span><label for="{prefix}-metric">Metric</label> '
        f'<select id="{prefix}-metric">{metrics}</select></span>'
        f'<span><label for="{prefix}-mode">Aligned by</label> '
        f'<select id="{prefix}-mode">{aligned}</select></span></p>\n'
    )


def _caption(measure: Measure, series: Sequence[RunSeries]) -> str:
    merged = max(each.merged for each in series)
    thinned = (
        f"Thinned for this page: a point is the mean of up to {merged} samples, and "
        "the session files have all."
        if merged > 1
        else "Every sample is drawn."
    )
    lines = (
        "A line for each run, faint for the warm-up block; the shapes stand on one run of each "
        "cell. "
    )
    return (
        f"{lines if len(series) > 1 else ''}{thinned} "
        f'Obtained: <span class="how">{text(measure.how)}</span>.'
    )
