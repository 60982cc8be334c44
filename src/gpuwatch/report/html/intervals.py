"""All comparisons as intervals on one axis, and as a table of numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gpuwatch.analysis.comparison.wording import heading, per_cent
from gpuwatch.analysis.results import Contrast, Question, Verdict
from gpuwatch.analysis.statistics.intervals import Interval, lower_end
from gpuwatch.analysis.study.interval_plot import rows_of
from gpuwatch.core import units
from gpuwatch.report import changes
from gpuwatch.report.html.axis import Axis, anchor, label, over
from gpuwatch.report.html.markup import Row, table, text
from gpuwatch.report.html.verdicts import name, verdict_badge

_HEIGHT = 34
_MIDDLE = 20
_FARTHEST = 3.0
"""Block ratios farther out than this multiple of the intervals' range are drawn at the edge."""


def plot(questions: Sequence[Question]) -> str:
    """All comparisons on one axis; at least one has an interval."""
    named = _named(questions)
    return _plot(named, _axis([each for _, each in named]))


def numbers(questions: Sequence[Question]) -> str:
    """The table of all comparisons; empty if nothing is compared."""
    named = _named(questions)
    return _table(named) if named else ""


def _named(questions: Sequence[Question]) -> list[tuple[str, Contrast]]:
    """Every comparison with its name, which has the question's if there are several."""
    several = len(questions) > 1
    return [
        (f"{question.label}: {name(question, each)}" if several else name(question, each), each)
        for question in questions
        for each in question.contrasts
    ]


def _axis(contrasts: Sequence[Contrast]) -> Axis:
    ends = [
        bound
        for each in contrasts
        for _, verdict in rows_of("", each.verdict)
        for interval in (verdict.change, verdict.equivalence)
        if interval is not None
        for bound in (interval.low, interval.high, interval.estimate)
    ]
    margin = max(each.verdict.margin for each in contrasts)
    ends += [1.25 * margin, 1.25 * lower_end(margin)]
    inner = over(ends)
    far = _FARTHEST * (inner.high - inner.low)
    moved = [ratio for each in contrasts for ratio in _changes(each.ratios)]
    near = [each for each in moved if inner.low - far <= each <= inner.high + far]
    return over([*ends, *near])


def _changes(ratios: Sequence[float | None]) -> list[float]:
    """The relative change within each block that has both runs."""
    return [ratio - 1 for ratio in ratios if ratio is not None and math.isfinite(ratio)]


def _plot(named: Sequence[tuple[str, Contrast]], axis: Axis) -> str:
    rows = "\n".join(
        f'<div class="name">{text(each, 120)}</div>{_row(each, verdict, contrast, axis)}'
        for title, contrast in named
        for each, verdict in rows_of(title, contrast.verdict)
    )
    return (
        '<figure class="intervals">\n'
        f"{rows}\n<div></div>{_scale(axis)}\n"
        "<figcaption>Change of the time, in per cent: right of zero is slower. "
        '<span class="key">Line and dot</span>: the interval of the mean change; '
        '<span class="key">small marks</span>: the blocks one by one, at the edge with an arrow '
        'where they lie beyond it; <span class="key">band</span>: the margin within which '
        "a change counts as none.</figcaption>\n</figure>"
    )


def _row(title: str, verdict: Verdict, contrast: Contrast, axis: Axis) -> str:
    total = verdict is contrast.verdict.total
    ratios = _changes(contrast.total_ratios if total else contrast.ratios)
    tooltip = f"{title}: {_numbers(verdict, ratios)}"
    low, high = axis.share(lower_end(verdict.margin)), axis.share(verdict.margin)
    parts = [
        f"<title>{text(tooltip, 1000)}</title>",
        f'<rect class="band" x="{low:.2f}%" y="0" width="{high - low:.2f}%" height="{_HEIGHT}"/>',
        *(
            _upright(axis.share(tick), "axis" if abs(tick) < 1e-12 else "grid")
            for tick in _ticks(axis)
        ),
    ]
    for change in ratios:
        x = axis.share(change)
        if axis.holds(change):
            parts.append(
                f'<line class="block" x1="{x:.2f}%" x2="{x:.2f}%" y1="{_MIDDLE - 15}" '
                f'y2="{_MIDDLE - 8}"/>'
            )
        else:
            anchor, arrow = ("start", "◂") if change < axis.low else ("end", "▸")
            parts.append(
                f'<text x="{x:.2f}%" y="{_MIDDLE - 7}" text-anchor="{anchor}">{arrow}</text>'
            )
    if verdict.change is None:
        parts.append(f'<text x="50%" y="{_MIDDLE + 4}" class="said">{_why_none(verdict)}</text>')
    else:
        parts += _interval(verdict.change, axis)
    return (
        f'<svg class="row" tabindex="0" role="img" width="100%" height="{_HEIGHT}">'
        + "".join(parts)
        + "</svg>"
    )


def _interval(change: Interval, axis: Axis) -> list[str]:
    low, high = axis.share(change.low), axis.share(change.high)
    ends = "".join(
        f'<line class="range" x1="{x:.2f}%" x2="{x:.2f}%" y1="{_MIDDLE - 5}" y2="{_MIDDLE + 5}"/>'
        for x in (low, high)
    )
    return [
        f'<line class="range" x1="{low:.2f}%" x2="{high:.2f}%" y1="{_MIDDLE}" y2="{_MIDDLE}"/>',
        ends,
        f'<circle class="mean" cx="{axis.share(change.estimate):.2f}%" cy="{_MIDDLE}" r="5"/>',
    ]


def _upright(x: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x:.2f}%" x2="{x:.2f}%" y1="0" y2="{_HEIGHT}"/>'


def _scale(axis: Axis) -> str:
    numbers = "".join(
        f'<text x="{x:.2f}%" y="13" text-anchor="{anchor(x)}">{text(_tick(tick))}</text>'
        for tick in _ticks(axis)
        for x in (axis.share(tick),)
    )
    return f'<svg class="scale" aria-hidden="true" width="100%" height="18">{numbers}</svg>'


def _ticks(axis: Axis) -> list[float]:
    return axis.ticks(6)


def _tick(value: float) -> str:
    shown = label(100 * value)
    return f"{'+' if value > 1e-12 else ''}{shown} %" if shown != "0" else "0"


def _why_none(verdict: Verdict) -> str:
    return text(f"no interval: {'; '.join(verdict.reasons) or verdict.kind.word.lower()}", 90)


def _numbers(verdict: Verdict, ratios: Sequence[float]) -> str:
    blocks = ", ".join(changes.estimate(each) for each in ratios)
    facts = [
        heading(verdict),
        "" if verdict.change is None else _change(verdict.change),
        f"noise of one run {units.percent(verdict.noise)}" if verdict.noise is not None else "",
        f"blocks: {blocks}" if blocks else "",
        *verdict.reasons,
    ]
    return "; ".join(fact for fact in facts if fact)


def _change(change: Interval) -> str:
    ends = _ends(change)
    estimate = changes.estimate(change.estimate, change)
    return f"{estimate} ({ends})" if ends else estimate


def _ends(change: Interval) -> str:
    """``-0.1 to +0.5, 95 %``; empty if the bounds are not finite."""
    if not math.isfinite(change.low) or not math.isfinite(change.high):
        return ""
    return f"{changes.ends(change)}, {100 * change.level:.3g} %"


def _cell(change: Interval | None) -> str:
    if change is None:
        return units.UNKNOWN
    ends = f' <small class="range">{text(_ends(change))}</small>' if _ends(change) else ""
    return f"{text(changes.estimate(change.estimate, change))}{ends}"


def _table(named: Sequence[tuple[str, Contrast]]) -> str:
    head = [
        "comparison",
        "verdict",
        "change",
        "equivalence interval",
        "margin",
        "pairs of runs",
        "noise of one run",
        "p",
        "blocks to decide",
        "why",
    ]
    lines = [
        _line(each, verdict)
        for title, contrast in named
        for each, verdict in rows_of(title, contrast.verdict)
    ]
    return table("Every comparison in numbers", head, [("", lines)])


def _line(title: str, verdict: Verdict) -> Row:
    pairs = f"{verdict.pairs}" if verdict.paired else f"{verdict.pairs}, unpaired"
    shared = f" (one of {verdict.comparisons})" if verdict.comparisons > 1 else ""
    return [
        text(title, 120),
        verdict_badge(verdict),
        _cell(verdict.change),
        _cell(verdict.equivalence),
        text(per_cent(verdict.margin)),
        pairs,
        text(units.percent(verdict.noise)),
        text(changes.p_value(verdict.p_zero) + (shared if verdict.p_zero is not None else "")),
        units.UNKNOWN if verdict.more_blocks is None else f"about {verdict.more_blocks}",
        text("; ".join(verdict.reasons)),
    ]
