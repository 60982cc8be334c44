"""A linear axis: its range, its ticks, and where a value lies on it."""

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
        """Place of ``value`` in per cent, 0 at the low end; what lies outside is moved in."""
        return 100 * min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high

    def ticks(self, most: int) -> list[float]:
        """Round numbers inside the range, about ``most``."""
        step = nice((self.high - self.low) / most)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [at * step for at in range(first, last + 1)]


def over(values: Iterable[float], *, space: float = 0.06) -> Axis:
    """An axis that holds all ``values``, with a share of ``space`` at both ends."""
    known = [value for value in values if math.isfinite(value)]
    low, high = min(known, default=0.0), max(known, default=1.0)
    around = space * (high - low) or 0.05 * abs(high) or 1.0
    return Axis(low - around, high + around)


_LARGEST = 1e300
"""A file from elsewhere may hold numbers for which there is no larger round one."""


def from_zero(largest: float) -> Axis:
    """An axis from 0 to a round number that is not below ``largest``."""
    largest = min(largest, _LARGEST)
    step = nice(largest / 4)
    return Axis(0.0, step * math.ceil(largest / step - 1e-9) if largest > 0 else 1.0)


def anchor(share: float) -> str:
    """How a tick's number stands at ``share`` per cent, so that it stays inside the picture."""
    return "start" if share < 3 else "end" if share > 97 else "middle"


def label(value: float) -> str:
    """A tick's number: no exponent, no trailing zeros."""
    return f"{value:.6g}" if abs(value) > 1e-9 else "0"
