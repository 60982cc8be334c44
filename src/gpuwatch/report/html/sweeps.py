"""Sweeps of a parameter, and noise floors."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.analysis.results import NoiseFloor, Sweep
from gpuwatch.analysis.study.interval_plot import percent
from gpuwatch.analysis.study.sweep import SweepRow, sweep_table, training_names
from gpuwatch.core import units
from gpuwatch.report.html.axis import Axis, from_zero, label
from gpuwatch.report.html.marks import mark
from gpuwatch.report.html.markup import Row, table, text

_HEIGHT, _TOP, _BOTTOM = 200, 24, 176


def sweep(of: Sweep) -> str:
    """The best value, a chart of the throughput, and its numbers."""
    known = [p.samples_per_second for p in of.points if p.samples_per_second is not None]
    picture = _picture(of, from_zero(max(known))) if known else ""
    head = [
        text(of.parameter.replace("_", " "), 60),
        "throughput",
        "against the best",
        "step time",
        *training_names(of),
        "which",
    ]
    rows = [_line(row) for row in sweep_table(of)]
    return f"<p>{text(of.sentence)}</p>\n{picture}{table(of.label, head, [('', rows)])}"


def _line(row: SweepRow) -> Row:
    change = row.change or units.UNKNOWN
    cells = (row.throughput, change, row.step_time, *row.training, row.why or row.rank)
    return [text(row.value, 60), *map(text, cells)]


def _picture(of: Sweep, up: Axis) -> str:
    width = 100 / len(of.points)
    best = None if of.best is None else of.points[of.best].samples_per_second
    parts = [f"<title>{text(f'Throughput by {of.parameter}, {of.label}')}</title>"]
    parts += [
        f'<line class="grid" x1="0" x2="100%" y1="{_y(up, t):.1f}" y2="{_y(up, t):.1f}"/>'
        for t in up.ticks(4)
    ]
    for at, (point, row) in enumerate(zip(of.points, sweep_table(of), strict=True)):
        x = f"{(at + 0.5) * width:.2f}%"
        parts.append(_said(x, _HEIGHT - 6, text(row.value, 16)))
        rate = point.samples_per_second
        if rate is None:
            parts.append(_said(x, _BOTTOM - 20, "✕"))
            parts.append(_said(x, _BOTTOM - 4, text(_brief(point.why or "unknown"), 24)))
            continue
        if point.throughput is not None and best is not None:
            low, high = (
                _y(up, best * (1 + e)) for e in (point.throughput.low, point.throughput.high)
            )
            parts.append(f'<line class="range" x1="{x}" x2="{x}" y1="{low:.1f}" y2="{high:.1f}"/>')
        title = f"{row.value}: {row.throughput}, {row.why or row.rank}".rstrip(", ")
        parts.append(mark(0, x, _y(up, rate), title=title))
        if row.rank:
            sign = "★" if row.rank == "best" else "≈"
            parts.append(_said(x, _y(up, rate) - 10, f"{sign} {row.rank}"))
    scale = "".join(
        f'<text x="100%" y="{_y(up, t) + 4:.1f}" text-anchor="end">{label(t)}</text>'
        for t in up.ticks(4)
    )
    return (
        '<figure class="chart"><p class="what">throughput, samples per second</p>'
        f'<div class="plot"><svg class="up" aria-hidden="true" width="56" height="{_HEIGHT}">'
        f'{scale}</svg><svg role="img" width="100%" height="{_HEIGHT}">{"".join(parts)}</svg>'
        "</div><figcaption>Bars: the interval of the difference from the best.</figcaption>"
        "</figure>"
    )


def _said(x: str, y: float, markup: str) -> str:
    return f'<text x="{x}" y="{y:.1f}" text-anchor="middle">{markup}</text>'


def _brief(reason: str) -> str:
    return "out of memory" if "out of memory" in reason.lower() else reason


def _y(axis: Axis, value: float) -> float:
    return _BOTTOM - (_BOTTOM - _TOP) * axis.share(value) / 100


def noise(floors: Sequence[NoiseFloor]) -> str:
    """What this machine can resolve, from runs of each environment against itself."""
    head = [
        "blocks",
        "detected",
        "called SLOWER or FASTER",
        "SAME within reach",
    ]
    parts = []
    for floor in floors:
        rows = [
            [
                str(each.blocks),
                text(f"from {percent(each.excludes_zero).lstrip('+')} on"),
                text(f"from {percent(each.beyond_margin).lstrip('+')} on"),
                "yes" if each.same else "no",
            ]
            for each in floor.resolves
        ]
        parts.append(f"<p>{text(floor.sentence)}</p>")
        parts.append(table(f"What {floor.label} resolves, at a power of 80 %", head, [("", rows)]))
    return "\n".join(parts)
