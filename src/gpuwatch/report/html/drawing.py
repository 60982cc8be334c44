"""What charts have in common: linear axes, level lines, and the marks of cells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.units import nice
from gpuwatch.report.html.markup import text


@dataclass(frozen=True)
class Axis:
    low: float
    high: float

    def share(self, value: float) -> float:
        """Position of ``value`` in per cent, 0 at the low end, clamped to the axis."""
        return 100 * min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high

    def ticks(self, most: int) -> list[float]:
        """About ``most`` round numbers inside the range."""
        step = nice((self.high - self.low) / most)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [at * step for at in range(first, last + 1)]


def over(values: Iterable[float], *, space: float = 0.06) -> Axis:
    """An axis that holds all ``values``, extended at both ends by the share ``space``."""
    known = [value for value in values if math.isfinite(value)]
    low, high = min(known, default=0.0), max(known, default=1.0)
    around = space * (high - low) or 0.05 * abs(high) or 1.0
    return Axis(low - around, high + around)


_LARGEST = 1e300
"""Clamp: an untrusted file may hold numbers for which no larger round number exists."""


def from_zero(largest: float) -> Axis:
    """An axis from 0 to a round number of at least ``largest``."""
    largest = min(largest, _LARGEST)
    step = nice(largest / 4)
    return Axis(0.0, step * math.ceil(largest / step - 1e-9) if largest > 0 else 1.0)


def anchor(share: float) -> str:
    """SVG text anchor of a tick label at ``share`` per cent that keeps it inside the picture."""
    return "start" if share < 3 else "end" if share > 97 else "middle"


def label(value: float) -> str:
    """A tick's number: no exponent, no trailing zeros."""
    return f"{value:.6g}" if abs(value) > 1e-9 else "0"


def scale(places: Sequence[tuple[float, str]], width: int, height: int) -> str:
    """The labels of an upright axis, each at its height."""
    labels = "".join(
        f'<text x="100%" y="{y + 4:.1f}" text-anchor="end">{text(of)}</text>' for y, of in places
    )
    return f'<svg class="up" aria-hidden="true" width="{width}" height="{height}">{labels}</svg>'


def lines(ys: Sequence[float]) -> list[str]:
    """The level lines of a chart."""
    return [f'<line class="grid" x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>' for y in ys]


COLOURS, SHAPES = 6, 6
"""``style.css`` defines a class ``.c0`` ... for each colour."""

_SHAPES = (
    '<circle id="m0" r="4.5"/>',
    '<rect id="m1" x="-4" y="-4" width="8" height="8"/>',
    '<path id="m2" d="M0-5.2 5 4H-5Z"/>',
    '<path id="m3" d="M0-5.8 5.8 0 0 5.8-5.8 0Z"/>',
    '<path id="m4" d="M-1.7-5h3.4v3.3h3.3v3.4h-3.3v3.3h-3.4v-3.3h-3.3v-3.4h3.3Z"/>',
    '<path id="m5" d="M0 5.2-5-4H5Z"/>',
)


def shapes() -> str:
    """The SVG definitions of the shapes, needed once per page."""
    return f'<svg class="shapes" aria-hidden="true"><defs>{"".join(_SHAPES)}</defs></svg>'


def colour(cell: int) -> str:
    """CSS class of a cell's colour."""
    return f"c{cell % COLOURS}"


def shape(cell: int) -> str:
    """Reference to a cell's shape; pairs of colour and shape repeat only after all are used."""
    return f"#m{(cell + cell // COLOURS) % SHAPES}"


def mark(cell: int, x: str, y: float, *, hollow: bool = False, title: str = "") -> str:
    """A cell's shape at ``x`` (a length or percentage) and ``y``; ``title`` is plain text."""
    kind = f"mark {colour(cell)}" + (" hollow" if hollow else "")
    inner = f"<title>{text(title)}</title>" if title else ""
    return f'<use class="{kind}" href="{shape(cell)}" x="{x}" y="{y:.1f}">{inner}</use>'


def legend(labels: Sequence[str], extra: Sequence[tuple[str, str]] = ()) -> str:
    """Line, shape and name of each cell; ``extra`` are further signs (SVG) with their meanings."""
    items = [
        f'<svg width="44" height="14" aria-hidden="true"><line class="curve {colour(cell)}" '
        f'x1="0" x2="44" y1="7" y2="7"/>{mark(cell, "22", 7)}</svg>{text(label, 80)}'
        for cell, label in enumerate(labels)
    ]
    items += [
        f'<svg width="16" height="14" aria-hidden="true">{sign}</svg>{text(meaning)}'
        for sign, meaning in extra
    ]
    return '<ul class="legend">' + "".join(f"<li>{item}</li>" for item in items) + "</ul>"
