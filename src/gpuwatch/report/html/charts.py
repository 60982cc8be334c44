"""The charts of the page: SVG, drawn by hand."""

from __future__ import annotations

import base64
import itertools
import math
from collections.abc import Sequence

from gpuwatch.analysis.comparison.wording import heading
from gpuwatch.analysis.ranks.levels import level, names
from gpuwatch.analysis.ranks.wording import change as change_of
from gpuwatch.analysis.results import Cell, Run
from gpuwatch.analysis.statistics.intervals import lower_end
from gpuwatch.analysis.study.interval_plot import factors, is_wide, place
from gpuwatch.analysis.study.sweep import sweep_table
from gpuwatch.core import units
from gpuwatch.core.aggregate import grouped
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.report.document import blocks
from gpuwatch.report.document.quantities import ends, estimate, value_of
from gpuwatch.report.html import drawing
from gpuwatch.report.html.markup import text
from gpuwatch.report.roofline.svg import svg

_ROW, _MIDDLE = 34, 20
"""Height of a row of the chart of changes, and its middle."""
_FARTHEST = 3.0
"""Block ratios farther out than this multiple of the intervals' range are drawn at the edge."""
_BAR, _RANK = 22, 22
_LEFT, _ACROSS, _MOST_RANKS = 56, 1000, 64


def bars(of: blocks.Bars) -> str:
    """Values on a common axis from zero."""
    most = max(bar.value for bar in of.bars)
    rows = "".join(
        f'<div class="name">{text(bar.name, 120)}</div>'
        f'<svg aria-hidden="true" width="100%" height="{_BAR}"><rect class="bar" x="0" y="3" '
        f'width="{100 * bar.value / most if most > 0 else 0:.2f}%" height="{_BAR - 6}"/></svg>'
        f'<div class="value">{text(bar.text)}</div>'
        for bar in of.bars
    )
    return f'<figure class="bars"><p class="what">{text(of.title)}</p>\n{rows}</figure>'


def intervals(of: blocks.Intervals) -> str:
    """All changes on one axis; each tells its numbers to the pointer."""
    axis = _axis(of.changes)
    rows = "\n".join(
        f'<div class="name">{text(each.name, 120)}</div>{_row(each, axis)}' for each in of.changes
    )
    numbers = "".join(
        f'<text x="{x:.2f}%" y="13" text-anchor="{drawing.anchor(x)}">{text(name)}</text>'
        for tick, name in axis.named().items()
        for x in (axis.share(tick),)
    )
    return (
        f'<figure class="intervals">\n{rows}\n<div></div>'
        f'<svg class="scale" aria-hidden="true" width="100%" height="18">{numbers}</svg>\n'
        f"<figcaption>Change of the time, {'as a factor' if axis.wide else 'in per cent'}: right "
        f"of {'1' if axis.wide else 'zero'} is slower. "
        '<span class="key">Line and dot</span>: the interval of the mean change; '
        '<span class="key">small marks</span>: the blocks one by one, at the edge with an arrow '
        'where they lie beyond it; <span class="key">band</span>: the margin within which '
        "a change counts as none.</figcaption>\n</figure>"
    )


@dataclass(frozen=True)
class _Changes(drawing.Axis):
    """Of relative changes, or if they are wide of the logarithms of their factors."""

    wide: bool

    def share(self, value: float) -> float:
        return super().share(place(value, wide=self.wide))

    def named(self) -> dict[float, str]:
        """Round changes and what stands below them."""
        round_ = {tick: _tick(tick) for tick in self.ticks(6)}
        return factors(self.low, self.high) if self.wide else round_


def _axis(changes_: Sequence[blocks.Change]) -> _Changes:
    ends = [
        bound
        for each in changes_
        for interval in (each.verdict.change, each.verdict.equivalence)
        if interval is not None
        for bound in (interval.low, interval.high, interval.estimate)
    ]
    margin = max(each.verdict.margin for each in changes_)
    ends += [1.25 * margin, 1.25 * lower_end(margin)]
    moved = [change for each in changes_ for change in _blocks(each)]
    wide = is_wide(min(ends), max(ends))
    ends, moved = ([place(each, wide=wide) for each in values] for values in (ends, moved))
    inner = drawing.over(ends)
    far = _FARTHEST * (inner.high - inner.low)
    whole = drawing.over([*ends, *(e for e in moved if inner.low - far <= e <= inner.high + far)])
    return _Changes(whole.low, whole.high, wide)


def _blocks(of: blocks.Change) -> list[float]:
    """The relative change within each block that has both runs."""
    return [ratio - 1 for ratio in of.ratios if ratio is not None and math.isfinite(ratio)]


def _row(of: blocks.Change, axis: _Changes) -> str:
    verdict = of.verdict
    low, high = axis.share(lower_end(verdict.margin)), axis.share(verdict.margin)
    parts = [
        f"<title>{text(f'{of.name} against {of.against}: {_numbers(of)}', 1000)}</title>",
        f'<rect class="band" x="{low:.2f}%" y="0" width="{high - low:.2f}%" height="{_ROW}"/>',
        *(
            _upright(axis.share(tick), "axis" if abs(tick) < 1e-12 else "grid", 0, _ROW)
            for tick in axis.named()
        ),
    ]
    for change in _blocks(of):
        x = axis.share(change)
        if 0 < x < 100:
            parts.append(_upright(x, "block", _MIDDLE - 15, _MIDDLE - 8))
        else:
            end, arrow = ("start", "◂") if x < 50 else ("end", "▸")
            y = _MIDDLE - 7
            parts.append(f'<text x="{x:.2f}%" y="{y}" text-anchor="{end}">{arrow}</text>')
    if verdict.change is None:
        reason = "; ".join(verdict.reasons) or verdict.kind.word.lower()
        none = text(f"no interval: {reason}", 90)
        parts.append(f'<text x="50%" y="{_MIDDLE + 4}" class="said">{none}</text>')
    else:
        low, high = axis.share(verdict.change.low), axis.share(verdict.change.high)
        parts += [
            f'<line class="range" x1="{low:.2f}%" x2="{high:.2f}%" y1="{_MIDDLE}" y2="{_MIDDLE}"/>',
            *(_upright(x, "range", _MIDDLE - 5, _MIDDLE + 5) for x in (low, high)),
            f'<circle class="mean" cx="{axis.share(verdict.change.estimate):.2f}%" '
            f'cy="{_MIDDLE}" r="5"/>',
        ]
    return (
        f'<svg class="row" tabindex="0" role="img" width="100%" height="{_ROW}">'
        f"{''.join(parts)}</svg>"
    )


def _upright(x: float, kind: str, top: float, bottom: float) -> str:
    return f'<line class="{kind}" x1="{x:.2f}%" x2="{x:.2f}%" y1="{top}" y2="{bottom}"/>'


def _tick(value: float) -> str:
    shown = drawing.label(100 * value)
    return f"{'+' if value > 1e-12 else ''}{shown} %" if shown != "0" else "0"


def _numbers(of: blocks.Change) -> str:
    verdict, change = of.verdict, of.verdict.change
    told = ""
    if change is not None:
        told = estimate(change.estimate, change)
        if math.isfinite(change.low) and math.isfinite(change.high):
            told += f" ({ends(change)}, {100 * change.level:.3g} %)"
    of_blocks = ", ".join(estimate(each) for each in _blocks(of))
    facts = [
        heading(verdict),
        told,
        f"noise of one run {units.percent(verdict.noise)}" if verdict.noise is not None else "",
        f"blocks: {of_blocks}" if of_blocks else "",
        *verdict.reasons,
    ]
    return "; ".join(fact for fact in facts if fact)


_DOTS, _TOP, _BOTTOM = 210, 10, 190


def dots(of: blocks.Dots) -> str:
    """Every run of a question as a dot above its block; empty if no run has a value."""
    question, cells = of.question, of.question.cells
    runs = [run for cell in cells for run in cell.runs]
    known = [run.value for run in runs if run.value is not None]
    if not known:
        return ""
    axis = drawing.over(known, space=0.12)
    numbers = sorted({run.block for run in runs if run.block is not None})
    longest = max(sum(run.block is None for run in cell.runs) for cell in cells)
    places = [*map(_block, numbers), *(f"run {number}" for number in range(1, longest + 1))]
    width, ticks = 100 / len(places), axis.ticks(6)

    def y(value: float) -> float:
        return _BOTTOM - (_BOTTOM - _TOP) * axis.share(value) / 100

    parts = [f"<title>{text(f'{question.metric} of every run, {question.label}')}</title>"]
    if places[0] == _block(0):
        parts.append(f'<rect class="aside" x="0" y="0" width="{width:.2f}%" height="{_BOTTOM}"/>')
    parts += drawing.lines([y(tick) for tick in ticks])
    for at in range(0, len(places), -(-len(places) // 12)):
        first, *rest = places[at].split(" ")
        again = at > 0 and (at < len(numbers) or places[at - 1].startswith(first))
        parts.append(
            f'<text x="{(at + 0.5) * width:.2f}%" y="{_DOTS - 4}" text-anchor="middle">'
            f"{text(rest[-1] if again and rest else places[at])}</text>"
        )
    parts += [
        f'<line class="mean {drawing.colour(at)}" x1="0" x2="100%" y1="{y(cell.mean):.1f}" '
        f'y2="{y(cell.mean):.1f}"/>'
        for at, cell in enumerate(cells)
        if cell.mean is not None
    ]
    for at, cell in enumerate(cells):
        number = itertools.count(1)
        for run in cell.runs:
            name = f"run {next(number)}" if run.block is None else _block(run.block)
            x = (places.index(name) + (at + 1) / (len(cells) + 1)) * width
            parts.append(_dot(cell, at, run, x, None if run.value is None else y(run.value)))
    extra = []
    if any(run.warm_up for run in runs):
        extra.append((drawing.mark(0, "8", 7, hollow=True), "warm-up block: shown, not judged"))
    if any(run.outlier for run in runs):
        extra.append(('<circle class="ring" cx="8" cy="7" r="6"/>', "outlier: kept"))
    if any(run.value is None for run in runs):
        extra.append(('<text x="8" y="12" text-anchor="middle">✕</text>', "no value"))
    labels = [(y(tick), units.quantity(tick, "s")) for tick in ticks]
    return (
        f'<figure class="chart">\n{drawing.legend([cell.label for cell in cells], extra)}'
        f'<div class="plot">{drawing.scale(labels, 74, _DOTS)}'
        f'<svg role="img" width="100%" height="{_DOTS}">{"".join(parts)}</svg></div>\n'
        f"<figcaption>{text(question.metric.capitalize())} of every run"
        f"{', by block' * bool(numbers)}, the thin lines the means of the judged ones."
        f"{' The axis does not start at 0.' * (axis.low > 0)}"
        "</figcaption>\n</figure>"
    )


def _block(block: int) -> str:
    return f"block {block}" if block else "warm-up"


def _dot(cell: Cell, number: int, run: Run, x: float, y: float | None) -> str:
    where = "not in a block" if run.block is None else _block(run.block)
    title = f"{cell.label}, {where}: {value_of(run)}{', outlier' if run.outlier else ''}"
    if y is None:
        return (
            f'<text class="{drawing.colour(number)} none" x="{x:.2f}%" y="{_BOTTOM - 4}" '
            f'text-anchor="middle">✕<title>{text(title)}</title></text>'
        )
    ring = f'<circle class="ring" cx="{x:.2f}%" cy="{y:.1f}" r="8.5"/>' if run.outlier else ""
    return ring + drawing.mark(number, f"{x:.2f}%", y, hollow=run.warm_up, title=title)


_SIGNS = {"best": "★", "tied": "≈"}
_SWEEP, _SWEEP_TOP, _SWEEP_BOTTOM = 200, 24, 176


def sweep(chart: blocks.SweepChart) -> str:
    """The throughput by the value of a parameter; empty if none is known."""
    of = chart.sweep
    known = [p.samples_per_second for p in of.points if p.samples_per_second is not None]
    if not known:
        return ""
    up, width = drawing.from_zero(max(known)), 100 / len(of.points)

    def y(value: float) -> float:
        return _SWEEP_BOTTOM - (_SWEEP_BOTTOM - _SWEEP_TOP) * up.share(value) / 100

    def said(x: str, at: float, words: str) -> str:
        return f'<text x="{x}" y="{at:.1f}" text-anchor="middle">{text(words)}</text>'

    best = None if of.best is None else of.points[of.best].samples_per_second
    parts = [f"<title>{text(f'Throughput by {of.parameter}, {of.label}')}</title>"]
    parts += drawing.lines([y(tick) for tick in up.ticks(4)])
    for at, (point, row) in enumerate(zip(of.points, sweep_table(of), strict=True)):
        x, rate = f"{(at + 0.5) * width:.2f}%", point.samples_per_second
        parts.append(said(x, _SWEEP - 6, row.value[:16]))
        if rate is None:
            why = point.why or "unknown"
            brief = "out of memory" if "out of memory" in why.lower() else why[:24]
            parts += [said(x, _SWEEP_BOTTOM - 20, "✕"), said(x, _SWEEP_BOTTOM - 4, brief)]
            continue
        if point.throughput is not None and best is not None:
            ends = (point.throughput.low, point.throughput.high)
            low, high = (y(best * (1 + end)) for end in ends)
            parts.append(f'<line class="range" x1="{x}" x2="{x}" y1="{low:.1f}" y2="{high:.1f}"/>')
            parts += [] if up.holds(best * (1 + ends[1])) else [said(x, high + 4, "▴")]
        title = f"{row.value}: {row.throughput}, {row.why or row.rank}".rstrip(", ")
        parts.append(drawing.mark(0, x, y(rate), title=title))
        if row.rank:
            parts.append(said(x, 14, f"{_SIGNS.get(row.rank, '?')} {row.rank}"))
    labels = [(y(tick), drawing.label(tick)) for tick in up.ticks(4)]
    return (
        '<figure class="chart"><p class="what">throughput, samples per second</p>'
        f'<div class="plot">{drawing.scale(labels, 56, _SWEEP)}'
        f'<svg role="img" width="100%" height="{_SWEEP}">{"".join(parts)}</svg></div>'
        "<figcaption>Bars: the interval of the difference from the best, with an arrow "
        "where it goes on.</figcaption></figure>"
    )


def heat_map(of: blocks.HeatMap) -> str:
    """Rows of ranks, columns of time; every cell names its value for the pointer."""
    heat = of.heat
    shown = list(zip(heat.ranks, heat.values, strict=True))[:_MOST_RANKS]
    first, last, height = heat.starts[0], heat.ends[-1], len(shown) * _RANK
    wide = _ACROSS / max(1.0, last - first)
    cells = "".join(
        f'<rect class="h{level(value)}" x="{(start - first) * wide:.1f}" y="{at * _RANK}" '
        f'width="{(end - start) * wide:.1f}" height="{_RANK - 2}">'
        f"<title>rank {rank}, {units.clock_time(start / 1e9)}: {change_of(value)}</title></rect>"
        for at, (rank, values) in enumerate(shown)
        for start, end, value in zip(heat.starts, heat.ends, values, strict=True)
    )
    title = text(f"Own time of each rank of {of.label} beside the median rank, over time")
    ends = f"{units.clock_time(first / 1e9)} to {units.clock_time(last / 1e9)} of the recording"
    colours = "".join(
        f'<li><svg width="14" height="14" aria-hidden="true"><rect class="h{at}" width="14" '
        f'height="14"></rect></svg>{text(name)}</li>'
        for at, name in enumerate(names())
    )
    labels = [(at * _RANK + 12, f"rank {rank}") for at, (rank, _) in enumerate(shown)]
    return (
        '<figure class="chart">\n<p class="what">own time beside the median rank of the moment</p>'
        f'\n<ul class="legend">{colours}</ul>\n'
        f'<div class="plot">{drawing.scale(labels, _LEFT, height)}'
        f'<svg role="img" width="100%" height="{height}" viewBox="0 0 {_ACROSS} {height}" '
        f'preserveAspectRatio="none"><title>{title}</title>{cells}</svg></div>\n'
        f'<p class="across">{text(ends)}</p>\n</figure>'
    )


def rooflines(of: blocks.Rooflines) -> str:
    """The picture, which has its points in numbers; without any point, the reasons for that."""
    picture = svg(of.rooflines)
    if picture is None:
        labels = grouped((each.reason, each.label) for each in of.rooflines if each.reason)
        reasons = [f"No point of {', '.join(names)}: {why}." for why, names in labels.items()]
        return "".join(f"<p>{text(each)}</p>" for each in reasons)
    data = base64.b64encode(picture.encode()).decode("ascii")
    points = "; ".join(
        f"{each.label}: {point.place}, {point.method.value}, {point.text}"
        for each in of.rooflines
        for point in each.points
    )
    whose = "<figcaption>Of each cell the run nearest to its mean.</figcaption>"
    return (
        f'<figure class="roofline"><img src="data:image/svg+xml;base64,{data}" '
        f'alt="{text(f"Roofline, FLOP/s against FLOP per byte. {points}", 1000)}">'
        f"{whose if len(of.rooflines) > 1 else ''}</figure>\n"
    )
