"""Changes and p values, with the same digits in every report."""

from __future__ import annotations

from gpuwatch.analysis.comparison.wording import change_text, signed
from gpuwatch.analysis.results import Verdict
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


def tests(verdict: Verdict) -> tuple[str, str]:
    """Names of the t test and of the rank test behind ``p_zero`` and ``p_rank``."""
    if verdict.paired:
        return "paired t-test", "Wilcoxon signed-rank test"
    return "Welch's t-test", "Mann-Whitney U test"


def p_value(p: float | None) -> str:
    """Two digits; a dash for unknown."""
    return units.UNKNOWN if p is None else f"{p:.2g}"
