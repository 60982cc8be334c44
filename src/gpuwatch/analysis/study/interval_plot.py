"""Text plot of changes and their intervals on a common axis.

::

    docker     :    |    :     [---*--]   +3.1 % (+2.4 to +3.8)
    apptainer  :  [-|*-] :                +0.1 % (-0.4 to +0.6)
            -1 %    0  +1 %  +2 %  +3 %

``|`` is no change, ``:`` the ends of the margin, ``*`` the estimate, ``[`` and
``]`` the ends of its interval. Wide ones stand on an axis of factors: ``/10  1  x10``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpuwatch.analysis.comparison.wording import change_text, signed
from gpuwatch.analysis.results import Verdict
from gpuwatch.analysis.statistics.intervals import Interval, lower_end
from gpuwatch.core import units
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.text import clean, cut

_LABEL = 28
"""Widest label in columns."""
_FARTHEST = 1e6
"""Relative change beyond which nothing is drawn: only a broken file has one."""
_TICK = 14
"""Columns of the axis for each round number below it."""
_NARROWEST = 21
"""Least columns of the axis; text beside it is dropped first."""


_WIDE = 10.0
"""Factor between the ends from which on per cent would leave no room for what is faster."""
_DECADES, _MOST_DECADES = 3, 8
"""Powers of ten from which on only they are named, and most that are."""
_IN_FULL = 6
"""The power of ten from which on a factor is named by it: ``x1e9``."""


def is_wide(low: float, high: float) -> bool:
    """Whether an axis of these relative changes is one of factors."""
    return low > -1 and 1 + high > _WIDE * (1 + low)


def place(change: float, *, wide: bool) -> float:
    """Of a relative change on an axis: itself, or the logarithm of its factor (of a broken file's
    that of nearly none)."""
    return math.log1p(max(change, -1 + 1e-12)) if wide else change


def factors(low: float, high: float) -> dict[float, str]:
    """The round factors between two logarithms, as relative changes with their names: ``1``,
    ``x2``, ``/2``; the farthest from 1 last."""
    decades = (high - low) / math.log(10)
    powers = range(0, 300, max(1, math.ceil(decades / _MOST_DECADES)))
    first = (1, 2, 5) if decades < _DECADES else (1,)
    sizes = [(m * 10**p, m, p) for p in powers for m in first]
    named = {size: f"{size:,}" if p < _IN_FULL else f"{m}e{p}" for size, m, p in sizes}
    logs = {
        sign * math.log(size): f"{'x' if sign > 0 else '/'}{name}"
        for size, name in named.items()
        for sign in (1, -1)
    }
    return {math.expm1(e): name if e else "1" for e, name in logs.items() if low <= e <= high}


@dataclass(frozen=True)
class Drawn:
    """One change: its name, its row on the axis, and its numbers (empty without room)."""

    name: str
    axis: str
    text: str


@dataclass(frozen=True)
class Plot:
    """Changes under each other on one axis."""

    label: int
    """Columns of the names; two blank columns separate them from the axis."""
    drawn: tuple[Drawn, ...]
    scale: str
    """The numbers below the axis."""
    zero: int
    """Column of zero on the axis."""


def is_twofold(verdict: Verdict) -> bool:
    """Whether its two values do not say the same, or differ by more than the margin."""
    total = verdict.total
    if total is None or verdict.typical is None:
        return False
    apart = abs((total.estimate or 0.0) - (verdict.estimate or 0.0)) > verdict.margin
    return apart or total.kind is not verdict.typical


def rows_of(name: str, verdict: Verdict) -> list[tuple[str, Verdict]]:
    """The rows of both values of a comparison."""
    if verdict.total is None or verdict.typical is None:
        return [(name, verdict)]
    typical = replace(verdict, kind=verdict.typical)
    return [(f"{name}, typical step", typical), (f"{name}, steady mean", verdict.total)]


def rows(contrasts: Sequence[tuple[str, Verdict]], width: int) -> list[str]:
    """One row per verdict with its name in front, and the axis below; ASCII except for names.

    Each row has at most ``width`` characters. Empty where there is no :func:`plot`.
    """
    result = plot(contrasts, width)
    if result is None:
        return []
    label = result.label
    drawn = [
        f"{cut(e.name, label, '..'):{label}}  {e.axis}  {e.text}".rstrip() for e in result.drawn
    ]
    return [*drawn, f"{'':{label}}  {result.scale}".rstrip()]


def plot(contrasts: Sequence[tuple[str, Verdict]], width: int) -> Plot | None:
    """The changes in at most ``width`` columns.

    The axis covers every interval and the widest margin. A verdict without an estimate shows its
    word instead of an interval. ``None`` if nothing has an estimate, or ``width`` is too small for
    an axis.
    """
    changes = [_change(verdict) for _, verdict in contrasts]
    known = [change for change in changes if change is not None]
    names = [clean(name) for name, _ in contrasts]
    label = min(_LABEL, max(map(len, names), default=0), max(0, width // 3))
    texts = ["" if change is None else _text(change) for change in changes]
    room = width - label - 2
    beside = max(map(len, texts), default=0) + 2
    if room - beside < _NARROWEST:
        texts, beside = [""] * len(texts), 0
    if not known or room < _NARROWEST:
        return None
    margin = max(verdict.margin for _, verdict in contrasts)
    axis = _Axis(known, margin, room - beside)
    drawn = (
        Drawn(name, axis.row(verdict), text)
        for name, (_, verdict), text in zip(names, contrasts, texts, strict=True)
    )
    return Plot(label, tuple(drawn), axis.scale(), axis.at(0.0))


class _Axis:
    """An axis that maps relative changes to columns."""

    def __init__(self, changes: Sequence[Interval], margin: float, columns: int) -> None:
        ends = [each for change in changes for each in (change.low, change.high)]
        low, high = min(lower_end(margin), *ends), max(margin, *ends)
        self._wide = is_wide(low, high)
        low, high = (place(each, wide=self._wide) for each in (low, high))
        space = 0.04 * (high - low) or 0.01
        self._low, self._high = low - space, high + space
        self._margin, self._columns = margin, columns

    def at(self, change: float) -> int:
        """The column of a relative change."""
        share = (place(change, wide=self._wide) - self._low) / (self._high - self._low)
        return min(self._columns - 1, max(0, round(share * (self._columns - 1))))

    def row(self, verdict: Verdict) -> str:
        cells = [" "] * self._columns
        for margin in (lower_end(verdict.margin), verdict.margin):
            cells[self.at(margin)] = ":"
        cells[self.at(0.0)] = "|"
        change = _change(verdict)
        if change is None:
            word = f" {verdict.kind.word.lower()} "
            start = min(self.at(0.0) + 2, self._columns - len(word))
            cells[start : start + len(word)] = word
            return "".join(cells)
        low, high = (self.at(each) for each in (change.low, change.high))
        for column in range(low, high + 1):
            cells[column] = cells[column].replace(" ", "-")
        if low < high:
            cells[low], cells[high] = "[", "]"
        cells[self.at(change.estimate)] = "*"
        return "".join(cells)

    def scale(self) -> str:
        """The numbers below the axis, as many as fit."""
        cells = [" "] * self._columns
        for tick, text in self._named():
            start = min(max(0, self.at(tick) - len(text) // 2), self._columns - len(text))
            around = cells[max(0, start - 1) : start + len(text) + 1]
            if all(cell == " " for cell in around):
                cells[start : start + len(text)] = text
        return "".join(cells)

    def _named(self) -> Iterator[tuple[float, str]]:
        """Changes with their numbers, the most important first."""
        if self._wide:
            (one, *others) = factors(self._low, self._high).items()
            yield from (one, *reversed(others))
            return
        step = units.nice((self._high - self._low) / (self._columns / _TICK))
        first, last = math.ceil(self._low / step), math.floor(self._high / step)
        round_numbers = sorted((step * at for at in range(first, last + 1)), key=abs, reverse=True)
        for tick in [0.0, self._margin, lower_end(self._margin), *round_numbers]:
            short = f"{100 * tick:+.1f}" if abs(tick) > 0.0095 else f"{100 * tick:+.2g}"
            yield tick, f"{short.removesuffix('.0')} %" if tick else "0"


def percent(change: float) -> str:
    """A relative change with its sign and three digits at most: ``+3.1 %``, ``-0.25 %``."""
    value = 100 * change
    size = abs(value)
    digits = 0 if size >= 99.95 else 1 if size >= 0.995 or size < 1e-9 else 2
    return f"{value:+.{digits}f} %"


def _text(change: Interval) -> str:
    """The change of a row in numbers."""
    if change.low == change.high:
        return f"{signed(change.estimate)} %"
    return change_text(change)


def _change(verdict: Verdict) -> Interval | None:
    """The interval to draw; the estimate alone is an interval of zero width."""
    change = verdict.change
    if change is None and verdict.estimate is not None:
        change = Interval(verdict.estimate, verdict.estimate, verdict.estimate, 0.0)
    if change is None:
        return None
    values = (change.estimate, change.low, change.high)
    return change if all(abs(value) <= _FARTHEST for value in values) else None
