"""A linear axis: its range, its ticks, and the position of a value on it."""

from __future__ import annotations

import math
from collections.abc import Iterable

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.units import nice


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
