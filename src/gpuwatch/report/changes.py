"""Changes and p values, with the same digits in every report."""

from __future__ import annotations

from gpuwatch.analysis.comparison.wording import change_text, signed
from gpuwatch.analysis.statistics.intervals import Interval
from gpuwatch.core import units


def estimate(change: float, interval: Interval | None = None) -> str:
    """A relative change with as many digits as its interval justifies: ``+3.1 %``."""
    if interval is None:
        return f"{signed(change, 1 if abs(change) < 1 else 0)} %"
    return change_text(interval).partition(" (")[0]


def ends(interval: Interval) -> str:
    """``+2.7 to +3.5``, in per cent, with the digits of ``estimate``."""
    return change_text(interval).partition(" (")[2].removesuffix(")")


def p_value(p: float | None) -> str:
    """Two digits; a dash for unknown."""
    return units.UNKNOWN if p is None else f"{p:.2g}"
