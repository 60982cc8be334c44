"""Rows of text for the histories of several runs in one graph.

Each line has a letter: on the line, at its right end and in the legend. Its colour repeats it.
"""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from rich.cells import cell_len

from gpuwatch.analysis.statistics.intervals import middle
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.text import clean
from gpuwatch.core.units import NS, UNKNOWN, counted, nice, quantity, si
from gpuwatch.tui.compare.curves import LOSS, METRICS, STEP_TIME, Curve, Curves, Metric
from gpuwatch.tui.feed.samples import Window, axis, ticked
from gpuwatch.tui.widgets.gauge_rows import longest_fitting
from gpuwatch.tui.widgets.line import Line, pad

LETTERS = string.ascii_letters
"""The letters of the runs in order, the baseline first."""
ROLES = ("strong", "flops", "bandwidth", "picked", "utilization", "warn", "bad", "muted")
MOST = len(ROLES)
"""Most series in one graph: each needs a colour of its own."""
_SCALE = 18
"""Width of the scale's labels."""
_ENDS = 3
"""Columns at the right for the letters of lines that end close together."""
_WARMUP = 0.1
"""Largest share of the width for the time before the first timed step."""
_ENDS_OF_SCALES = (1, 1.2, 1.6, 2, 3, 4, 5, 6, 8, 10)
"""Times a power of ten; closer than those of a scale that grows: one that does not wastes less."""
_OUTLIERS = 3.0
"""If the highest value is this many times the 98th percentile, the scale ignores it."""


@dataclass(frozen=True)
class Series:
    """One line: a run, or the median of a cell's runs."""

    label: str
    runs: tuple[Curves, ...]
    """The runs that are read."""
    count: int
    """Number of all runs."""
    letter: str = ""
    """What it is called elsewhere, too; empty: nothing."""


@dataclass(frozen=True)
class View:
    """What to draw, and how."""

    metric: Metric = METRICS[0]
    by_step: bool = False
    close_up: bool = False
    """Whether the scale covers only the values, instead of starting at zero."""
    ascii: bool = False


@dataclass(frozen=True)
class _Placed:
    """A series reduced to the graph's dot columns."""

    letter: str
    role: str
    series: Series
    known: int
    """Number of runs that have the metric."""
    values: tuple[float | None, ...]
    timed: tuple[float | None, ...]
    """For each run the mean over the timed steps, or the last value of the loss."""


def history_rows(
    series: Sequence[Series], view: View, width: int, height: int, skipped: int = 0
) -> list[Line]:
    """The title, graph, axis and legend in ``height`` rows.

    ``skipped``: the number of series left out after the first; the others keep their letters and
    colours.
    """
    series = series[:MOST]
    columns = max(10, width - _SCALE - 1 - _ENDS)
    start, end = _stretch(series, view)
    placed = [
        _place(at + skipped * (at > 0), each, view, (start, end), columns * DOT_COLUMNS)
        for at, each in enumerate(series)
    ]
    before = int(-start / max(1e-12, end - start) * columns)
    # The scale is that of the timed steps: those of the warm-up may take a hundred times as long.
    timed = [each.values[before * DOT_COLUMNS :] for each in placed]
    low, high, cut_off = _scale([v for values in timed for v in values if v is not None], view)
    if view.metric.key == STEP_TIME:
        cut_off |= any(v is not None and v > high for each in placed for v in each.values)
    figures = 70 if any(each.count > 1 for each in series) else 40
    longest = max((cell_len(clean(each.label)) for each in series), default=0)
    label = min(max(width // 3, width - figures), longest)
    legend = [_legend(each, view, label, width) for each in placed]
    rows = max(3, height - len(legend) - 3)
    rows -= 1 - rows % 2  # a row in the middle, for half the scale
    lines = [_title(placed, view, low, cut_off, before > 0, width)]
    lines += _picture(placed, view, (low, high), (start, end), columns, rows, width)
    lines += _axis(start, end, columns, view.by_step, width)
    return [*lines, *legend][:height]


def known_metrics(series: Sequence[Series]) -> list[Metric]:
    """The metrics with values in some run; all metrics if there are none."""
    runs = [run for each in series for run in each.runs]
    metrics = [metric for metric in METRICS if any(metric.key in run.curves for run in runs)]
    return metrics or list(METRICS)


def _along(curve: Curve, view: View) -> tuple[float | None, ...]:
    return curve.steps if view.by_step else curve.seconds


def _curves(series: Series, view: View) -> list[Curve]:
    return [run.curves[view.metric.key] for run in series.runs if view.metric.key in run.curves]


def _stretch(series: Sequence[Series], view: View) -> tuple[float, float]:
    """Start and end of the axis: from the warm-up, at most a tenth of the width, to the last step,
    or value where a run has no steps; of a cell to the end of its shortest run."""
    shown = [[run for run in each.runs if view.metric.key in run.curves] for each in series]
    runs = [run for of in shown for run in of]
    by = STEP_TIME if all(STEP_TIME in run.curves for run in runs) else view.metric.key
    firsts, ends = [0.0], [10.0 if view.by_step else 0.1]
    for of in shown:
        of_runs = [_along(run.curves[by], view) for run in of]
        known = [[place for place in places if place is not None] for places in of_runs]
        firsts += [places[0] for places in known if places]
        ends += [min(places[-1] for places in known if places)] if any(known) else []
    end = max(ends)
    warm = [float(r.warmup_steps) if view.by_step else r.warmup_seconds for r in runs if r.timed]
    early = 0.0 if view.by_step else -min(firsts)
    return -min(_WARMUP * end, max([early, *warm])), end


def _place(at: int, series: Series, view: View, stretch: tuple[float, float], dots: int) -> _Placed:
    curves = _curves(series, view)
    held = view.metric.key == STEP_TIME
    by_run = [
        _by_column(_along(curve, view), curve.values, stretch, dots, held) for curve in curves
    ]
    # Of fewer runs the median would be of those alone that took longest.
    ends = [
        max((dot for dot, v in enumerate(means) if v is not None), default=0) for means in by_run
    ]
    common = min((end for end in ends if end), default=0) + 1
    values = [_median([means[dot] for means in by_run]) for dot in range(common)]
    values += [None] * (dots - common)
    timed = tuple(curve.figure for curve in curves)
    letter = series.letter or _in_turn(LETTERS, at)
    return _Placed(letter, _in_turn(ROLES, at), series, len(curves), tuple(values), timed)


def _in_turn(names: Sequence[str], place: int) -> str:
    """The first of ``names`` for the baseline only, the others in turn."""
    return names[1 + (place - 1) % (len(names) - 1)] if place else names[0]


def _by_column(
    places: Sequence[float | None],
    values: Sequence[float | None],
    stretch: tuple[float, float],
    columns: int,
    held: bool,
) -> list[float | None]:
    """The mean in each column; columns between two neighbouring points are interpolated.

    ``held``: the most in each, and between two points the value of the later one, since it is of
    the time before: in a mean a stall would be lost.
    """
    start, end = stretch
    scale = columns / max(1e-12, end - start)
    in_column: list[list[float]] = [[] for _ in range(columns)]
    points = [
        (min(columns - 1, int((place - start) * scale)), value)
        for place, value in zip(places, values, strict=True)
        if place is not None and start <= place <= end
    ]
    for column, value in points:
        if value is not None:
            in_column[column].append(value)
    means: list[float | None] = [
        (max(points) if held else sum(points) / len(points)) if points else None
        for points in in_column
    ]
    for (left, first), (right, second) in pairwise(points):
        if first is None or second is None:
            continue
        low, high = means[left], means[right]
        for column in range(left + 1, right):
            if held:
                means[column] = second
            elif low is not None and high is not None:
                means[column] = low + (high - low) * (column - left) / (right - left)
    return means


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _scale(values: Sequence[float], view: View) -> tuple[float, float, bool]:
    """Lowest and highest value of the scale, and whether peaks are cut off."""
    if not values:
        return 0.0, 1.0, False
    ordered = sorted(values)
    usual, top = ordered[int(0.98 * (len(ordered) - 1))], ordered[-1]
    cut_off = view.metric.key == STEP_TIME and usual > 0 and top > _OUTLIERS * usual
    top = 1.2 * usual if cut_off else top
    if view.close_up:
        low = ordered[0] if cut_off else ordered[int(0.02 * (len(ordered) - 1))]
        low = min(low, ordered[0]) if ordered[0] > 0.5 * low else low
        space = 0.05 * (top - low) or abs(top) * 0.05 or 1.0
        least = -math.inf if ordered[0] < 0 else 0.0
        most = 1.0 if view.metric.unit == "1" and ordered[-1] <= 1 else math.inf
        return max(least, low - space), min(most, top + space), cut_off
    if view.metric.unit == "1":
        return 0.0, max(1.0, nice(top)), cut_off
    low = min(0.0, -nice(-ordered[0])) if ordered[0] < 0 else 0.0
    return low, nice(top, _ENDS_OF_SCALES), cut_off


def _title(
    placed: Sequence[_Placed], view: View, low: float, cut_off: bool, warmup: bool, width: int
) -> Line:
    methods = dict.fromkeys(curve.method for each in placed for curve in _curves(each.series, view))
    row = Line(width).add(f" {view.metric.title}", "strong")
    longest = ", longest steps" * (view.metric.key == STEP_TIME)
    row.add(f"  {'/'.join(methods)}{longest}" if methods else "", "muted")
    gpus = {curve.gpus for each in placed for curve in _curves(each.series, view)}
    if max(gpus, default=1) > 1:
        devices = f"{max(gpus)} GPUs" if len(gpus) == 1 else "the GPUs of each run"
        row.add(f"  mean of {devices}", "muted")
    row.add("  scale not from zero" if low > 0 else "", "warn")
    row.add("  peaks cut off" if cut_off else "", "warn")
    untimed = [each.letter for each in placed if each.known and _untimed(each.series)]
    some = 0 < len(untimed) < len(placed) and not view.by_step
    along = f"time since {'launch' if untimed and not some else 'the first timed step'}"
    along = "timed steps" if view.by_step else along
    of = f", of {' and '.join(untimed)} since launch" * some
    ends = of + ", while all runs go on" * any(each.known > 1 for each in placed)
    ends += ", ╌ warm-up" * warmup
    short = along.partition(" since")[0]
    texts = (f"  by {along}{ends}", f"  by {short}{ends}", f"  by {short}{of}")
    return row.add(longest_fitting(texts, row.left) or texts[-1], "muted")


def _untimed(series: Series) -> bool:
    """Whether it has no timed step, so that its mean and its time begin with the launch."""
    return bool(series.runs) and not any(run.timed for run in series.runs)


def _picture(
    placed: Sequence[_Placed],
    view: View,
    scale: tuple[float, float],
    stretch: tuple[float, float],
    columns: int,
    height: int,
    width: int,
) -> list[Line]:
    picture = Overlay(columns, height, ascii=view.ascii)
    for each in placed:
        picture.add(each.letter, each.role, each.values, scale)
    start, end = stretch
    zero = int(-start / max(1e-12, end - start) * columns)
    low, high = scale
    labels = {0: high, height - 1: low}
    if height >= 9:
        labels[height // 2] = (low + high) / 2
    lines = []
    for row in range(height):
        text = quantity(labels[row], view.metric.unit) if row in labels else ""
        line = Line(width).add(f"{text:>{_SCALE - 1}} ", "muted").add("│", "faint")
        for column, (cell, role) in enumerate(picture.row(row)):
            if cell == " " and 0 < column == zero:
                line.add("┊", "faint")
            else:
                line.add(cell, role)
        for letter, role in picture.ends(row)[:_ENDS]:
            line.add(letter, role)
        lines.append(line)
    if not any(value is not None for each in placed for value in each.values):
        middle = lines[height // 2] = Line(width).to(_SCALE).add("│", "faint")
        middle.add("  no values to draw", "muted")
    return lines


def _legend(placed: _Placed, view: View, label: int, width: int) -> Line:
    """Letter, name and mean with its range over the runs, or why there is none."""
    series = placed.series
    row = Line(width).add(f" {placed.letter} ", placed.role)
    row.add(pad(clean(series.label), label), "strong").add("  ")
    means = [value for value in placed.timed if value is not None]
    if means:
        row.add(f"{quantity(middle(means), view.metric.unit)}  ", "strong")
        of = "the whole run" if _untimed(series) else "timed steps"
        row.add("last" if view.metric.key == LOSS else f"mean of {of}", "muted")
        if series.count > 1:
            row.add(f", the middle of {counted(placed.known, 'run')}", "muted")
            if len(means) > 1:
                ends = [quantity(value, view.metric.unit) for value in (min(means), max(means))]
                row.add(f", {ends[0]} to {ends[1]}", "muted")
        return row
    unread = series.count - len(series.runs)
    if unread:
        return row.add("reading …", "muted")
    reasons = [run.why or run.missing.get(view.metric.key) for run in series.runs]
    why = next((reason for reason in reasons if reason), "not recorded")
    if placed.known:
        why = "no value after the first timed step"
    elif view.by_step and _untimed(series):
        why = "no timed step to align by"
    return row.add(f"{UNKNOWN} {clean(why)}", "muted")


_SHORT = 5.0
"""Seconds below which an axis of time has ticks between whole seconds."""


def _axis(start: float, end: float, columns: int, by_step: bool, width: int) -> list[Line]:
    """The line of seconds or steps from the first timed step, dashed before it, and its labels."""
    before = int(-start / max(1e-12, end - start) * columns)
    if by_step or end < _SHORT:
        ticks, labels = _round_axis(end, columns - before, by_step=by_step)
    else:
        ticks, labels = axis(Window(0, max(1, int(end * NS)), columns - before))
    line = Line(width).to(_SCALE).add("└", "faint").add("╌" * before, "faint").add(ticks, "faint")
    words = ("warm-up", "") if by_step else ("start-up and warm-up", "warm-up", "")
    word = next(word for word in words if len(word) < max(1, before))
    named = Line(width).to(_SCALE + 1).add(pad(word, before), "muted")
    return [line, named.add(labels, "muted")]


def _round_axis(end: float, columns: int, *, by_step: bool) -> tuple[str, str]:
    """Ticks at round numbers of steps, or of seconds that are few."""
    step = nice(max(1.0 if by_step else 0.01, end * 11 / max(1, columns)))

    def label(at: float) -> str:
        return (f"{at:,.0f}" if at < 1e6 else si(at, "")) if by_step else f"{at:.3g}s"

    places = (step * number for number in range(int(end / step) + 1))
    return ticked(columns, ((int(at / max(1e-12, end) * columns), label(at)) for at in places))


DOT_COLUMNS = 2
"""Columns of dots per cell."""
_DOT_ROWS = 4
"""Rows of dots per cell."""
_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_LETTER_DISTANCE = 24
"""Cells between two letters on a line."""
_CROSSING = "*"
"""A cell with several lines, without dots."""

Cell = tuple[str, str]
"""A character and the role of its colour."""


class Overlay:
    """A plot of ``columns`` by ``rows`` cells.

    A cell with several lines has the dots of all and the colour of the last one.
    """

    def __init__(self, columns: int, rows: int, *, ascii: bool = False) -> None:
        """``ascii``: draw with letters, without dots."""
        self._columns, self._rows = columns, rows
        self._ascii = ascii
        self._bits: dict[tuple[int, int], int] = {}
        self._crossings: dict[tuple[int, int], list[int]] = {}
        self._lines: list[Cell] = []
        self._letters: dict[tuple[int, int], int] = {}
        self._ends: dict[tuple[int, int], int] = {}

    def add(
        self, letter: str, role: str, values: Sequence[float | None], scale: tuple[float, float]
    ) -> None:
        """Draw a line with one value per column of dots; values are clamped to the scale, ``None``
        is a gap."""
        number = len(self._lines)
        self._lines.append((letter, role))
        low, high = scale
        heights = [None if v is None else self._height(v, low, high) for v in values]
        before: int | None = None
        for x, y in enumerate(heights):
            if y is not None:
                start = y if before is None else before
                # A vertical line connects the dot with the previous one.
                step = (y > start) - (y < start)
                for dot in range(start + step, y, step) if step else ():
                    self._dot(x, dot, number)
                self._dot(x, y, number)
            before = y
        self._add_letters(number, heights)

    def row(self, at: int) -> list[Cell]:
        """The cells of a row, 0 at the top."""
        return [self._cell(column, at) for column in range(self._columns)]

    def ends(self, at: int) -> list[Cell]:
        """Letters of the lines that end at the right edge in a row."""
        ends = sorted((x, number) for (x, row), number in self._ends.items() if row == at)
        return [self._lines[number] for x, number in ends if x >= self._columns]

    def _height(self, value: float, low: float, high: float) -> int:
        share = (value - low) / ((high - low) or 1.0)
        return round(min(1.0, max(0.0, share)) * (self._rows * _DOT_ROWS - 1))

    def _dot(self, x: int, y: int, number: int) -> None:
        column, right = divmod(x, DOT_COLUMNS)
        row, down = divmod(self._rows * _DOT_ROWS - 1 - y, _DOT_ROWS)
        self._bits[column, row] = self._bits.get((column, row), 0) | _BITS[down][right]
        lines = self._crossings.setdefault((column, row), [])
        if number not in lines:
            lines.append(number)

    def _add_letters(self, number: int, heights: Sequence[int | None]) -> None:
        """Label the line at regular distances and behind its end; each line at different
        columns."""
        ends = [x for x, y in enumerate(heights) if y is not None]
        if not ends:
            return
        row, behind = self._row_of(heights[ends[-1]]), ends[-1] // DOT_COLUMNS + 1
        while (behind, row) in self._ends:
            behind += 1
        self._ends[behind, row] = number
        for column in range(4 + number * 3, self._columns, _LETTER_DISTANCE):
            y = heights[column * DOT_COLUMNS]
            if y is not None:
                self._letters.setdefault((column, self._row_of(y)), number)

    def _row_of(self, y: int | None) -> int:
        return (self._rows * _DOT_ROWS - 1 - (y or 0)) // _DOT_ROWS

    def _cell(self, column: int, row: int) -> Cell:
        if (column, row) in self._ends:
            return self._lines[self._ends[column, row]]
        lines = self._crossings.get((column, row))
        if not lines:
            return " ", "text"
        if (column, row) in self._letters:
            return self._lines[self._letters[column, row]]
        letter, role = self._lines[lines[-1]]
        if self._ascii:
            return (letter if len(lines) == 1 else _CROSSING), role
        return chr(0x2800 + self._bits[column, row]), role
