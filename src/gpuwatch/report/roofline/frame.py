"""The plane of a roofline plot: ranges, roofs and points, shared by text and SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gpuwatch.analysis.hardware.ceilings import Ceiling
from gpuwatch.analysis.hardware.points import Point
from gpuwatch.analysis.hardware.roofline import Roofline
from gpuwatch.core import units
from gpuwatch.core.lazy_dataclass import dataclass

_MOST_DECADES = 12
_MOST_POINTS = 40


@dataclass(frozen=True)
class Roof:
    """A ceiling in the plot: flat (FLOP/s) or a slope (By/s)."""

    names: tuple[str, ...]
    value: float
    text: str
    """Kind and value of the ceiling."""
    doubt: str | None = None
    """Why it may have been measured too low."""
    points: tuple[int, ...] = ()
    """Numbers of the points to which it applies; empty: all."""

    @property
    def label(self) -> str:
        of = f" (of {', '.join(map(str, self.points))})" if self.points else ""
        doubtful = ", doubtful" if self.doubt else ""
        named = f"{', '.join(self.names)}: {self.text}" if self.names else self.text
        return f"{named}{doubtful}{of}"


@dataclass(frozen=True)
class Frame:
    """The plot's contents; ranges are exponents of ten, FLOP per byte by FLOP/s."""

    left: float
    right: float
    bottom: float
    top: float
    slopes: tuple[Roof, ...]
    flats: tuple[Roof, ...]
    """Highest first."""
    points: tuple[Point, ...]
    numbers: tuple[tuple[int, ...], ...]
    """For each roofline the numbers of its points, counted from 1."""

    def across(self, intensity: float) -> float:
        """Position of an intensity (FLOP per byte), 0 at the left to 1 at the right, clamped."""
        return _place(intensity, self.left, self.right)

    def upward(self, rate: float) -> float:
        """Position of a rate (FLOP/s), 0 at the bottom to 1 at the top, clamped."""
        return _place(rate, self.bottom, self.top)

    def ridge(self, flat: Roof) -> float:
        """FLOP per byte from which ``flat`` is lower than the highest slope."""
        steepest = max((slope.value for slope in self.slopes), default=0.0)
        return flat.value / steepest if steepest else 10**self.left


def frame_of(rooflines: Sequence[Roofline]) -> Frame | None:
    """The plane that holds all points and ceilings; ``None`` without a point or any ceiling."""
    points: list[Point] = []
    numbers: list[tuple[int, ...]] = []
    for each in rooflines:
        of_run = [p for p in each.points if _drawable(p.intensity) and _drawable(p.rate)]
        of_run = of_run[: _MOST_POINTS - len(points)]
        numbers.append(tuple(range(len(points) + 1, len(points) + len(of_run) + 1)))
        points += of_run
    if not points:
        return None
    slopes = _roofs(rooflines, numbers, slope=True)
    flats = _roofs(rooflines, numbers, slope=False)
    if not slopes and not flats:
        return None
    intensities = [point.intensity for point in points]
    intensities += [flat.value / slope.value for flat in flats for slope in slopes]
    rates = [point.rate for point in points] + [flat.value for flat in flats]
    rates += [min(intensities) * slope.value for slope in slopes]
    left, right = _range(intensities, 3, 8)
    bottom, top = _range(rates, 3, 3)
    return Frame(left, right, bottom, top, slopes, flats, tuple(points), tuple(numbers))


def ticks(low: float, high: float, most: int = 13) -> list[int]:
    """Integer exponents from ``low`` to ``high``, thinned out to ``most``."""
    powers = list(range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1))
    return powers[:: max(1, math.ceil(len(powers) / most))]


def tick_label(power: int, unit: str) -> str:
    """``10``, ``0.01``, ``100 GFLOP/s``."""
    if unit:
        number, prefixed = units.si_parts(10.0**power, unit)
        return f"{float(number):g} {prefixed}" if 0 <= power < 21 else f"1e{power}"
    return f"{10.0**power:g}"


def _roofs(
    rooflines: Sequence[Roofline], numbers: Sequence[tuple[int, ...]], *, slope: bool
) -> tuple[Roof, ...]:
    """Distinct ceilings, highest first; ceilings with the same text are merged."""
    of_text: dict[str, list[tuple[Ceiling, tuple[int, ...]]]] = {}
    for each, of_run in zip(rooflines, numbers, strict=True):
        if not of_run:
            continue
        bandwidth = (each.bandwidth,) if each.bandwidth else ()
        for ceiling in bandwidth if slope else each.compute:
            if _drawable(ceiling.value):
                # The label has the name of the data type already.
                kind = ceiling.text.replace(f"{ceiling.name} ", "")
                text = f"{kind}, {units.quantity(ceiling.value, ceiling.unit)}"
                of_text.setdefault(text, []).append((ceiling, of_run))
    everything = {number for of_run in numbers for number in of_run}
    roofs = []
    for text, ceilings in of_text.items():
        names = () if slope else tuple(dict.fromkeys(ceiling.name for ceiling, _ in ceilings))
        points = sorted({number for _, of_run in ceilings for number in of_run})
        doubt = next((ceiling.doubt for ceiling, _ in ceilings if ceiling.doubt), None)
        covered = () if set(points) == everything else tuple(points)
        roofs.append(Roof(names, ceilings[0][0].value, text, doubt, covered))
    return tuple(sorted(roofs, key=lambda roof: -roof.value))


def _drawable(value: float) -> bool:
    """Whether a value is physically plausible."""
    return 1e-9 < value < 1e30


def _range(values: Sequence[float], below: float, above: float) -> tuple[float, float]:
    logs = [math.log10(value) for value in values]
    high = max(logs) + math.log10(above)
    return max(min(logs) - math.log10(below), high - _MOST_DECADES), high


def _place(value: float, low: float, high: float) -> float:
    return min(1.0, max(0.0, (math.log10(value) - low) / (high - low)))
