"""The plane of a roofline: its ranges, its roofs and its points, for text and for SVG alike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gpuwatch import units
from gpuwatch.analysis.roofline import Point, Roofline
from gpuwatch.report.values import shown

_MOST_DECADES = 12
_MOST_POINTS = 40


@dataclass(frozen=True)
class Roof:
    """A ceiling that is drawn: flat (FLOP/s) or a slope (By/s)."""

    names: tuple[str, ...]
    value: float
    text: str
    """What kind of ceiling, how much."""

    @property
    def label(self) -> str:
        return f"{', '.join(self.names)}: {self.text}" if self.names else self.text


@dataclass(frozen=True)
class Frame:
    """Ranges are powers of ten: FLOP per byte across, FLOP/s upwards."""

    left: float
    right: float
    bottom: float
    top: float
    slopes: tuple[Roof, ...]
    flats: tuple[Roof, ...]
    """Highest first."""
    points: tuple[Point, ...]

    def across(self, intensity: float) -> float:
        """Place of an intensity, 0 at the left to 1 at the right; what lies outside is moved in."""
        return _place(intensity, self.left, self.right)

    def upward(self, rate: float) -> float:
        """Place of a rate, 0 at the bottom to 1 at the top."""
        return _place(rate, self.bottom, self.top)

    def ridge(self, flat: Roof) -> float:
        """FLOP per byte from which on ``flat`` is the lower roof under the highest slope."""
        steepest = max((slope.value for slope in self.slopes), default=0.0)
        return flat.value / steepest if steepest else 10**self.left


def frame_of(rooflines: Sequence[Roofline]) -> Frame | None:
    """The plane that holds all points and ceilings; ``None`` where there is no point to draw."""
    points = [
        point
        for each in rooflines
        for point in each.points
        if _drawable(point.intensity) and _drawable(point.rate)
    ][:_MOST_POINTS]
    if not points:
        return None
    slopes = _roofs(rooflines, slope=True)
    flats = _roofs(rooflines, slope=False)
    intensities = [point.intensity for point in points]
    intensities += [flat.value / slope.value for flat in flats for slope in slopes]
    rates = [point.rate for point in points] + [flat.value for flat in flats]
    rates += [min(intensities) * slope.value for slope in slopes]
    left, right = _range(intensities, 3, 8)
    bottom, top = _range(rates, 3, 3)
    return Frame(left, right, bottom, top, slopes, flats, tuple(points))


def ticks(low: float, high: float, most: int = 13) -> list[int]:
    """Powers of ten between two, thinned out to ``most``."""
    whole = list(range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1))
    return whole[:: max(1, math.ceil(len(whole) / most))]


def tick_label(power: int, unit: str) -> str:
    """``10``, ``0.01``, ``100 GFLOP/s``."""
    if unit:
        number, prefixed = units.si_parts(10.0**power, unit)
        return f"{float(number):g} {prefixed}" if 0 <= power < 21 else f"1e{power}"
    return f"{10.0**power:g}"


def _roofs(rooflines: Sequence[Roofline], *, slope: bool) -> tuple[Roof, ...]:
    """Distinct ceilings, the highest first; those that read the same as one."""
    found: list[Roof] = []
    ceilings = [
        ceiling
        for each in rooflines
        for ceiling in (([each.bandwidth] if each.bandwidth else []) if slope else each.compute)
    ]
    for ceiling in sorted(ceilings, key=lambda each: -each.value):
        if not _drawable(ceiling.value):
            continue
        names = () if slope else (ceiling.name,)
        # The name of the data type stands before it already.
        kind = ceiling.text.replace(f"{ceiling.name} ", "")
        text = f"{kind}, {shown(ceiling.value, ceiling.unit)}"
        last = found[-1] if found else None
        if last is not None and last.text == text:
            joined = tuple(dict.fromkeys((*last.names, *names)))
            found[-1] = Roof(joined, last.value, last.text)
        else:
            found.append(Roof(names, ceiling.value, text))
    return tuple(found)


def _drawable(value: float) -> bool:
    """Whether a figure is one that any machine could have."""
    return 1e-9 < value < 1e30


def _range(values: Sequence[float], below: float, above: float) -> tuple[float, float]:
    logs = [math.log10(value) for value in values]
    high = max(logs) + math.log10(above)
    return max(min(logs) - math.log10(below), high - _MOST_DECADES), high


def _place(value: float, low: float, high: float) -> float:
    return min(1.0, max(0.0, (math.log10(value) - low) / (high - low)))
