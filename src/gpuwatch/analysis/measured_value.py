"""One number together with how it was obtained."""

from __future__ import annotations

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method


@dataclass(frozen=True)
class MeasuredValue:
    """A number, in ``unit``; ``None`` is unknown, and then ``method`` is unavailable."""

    value: float | None
    unit: str
    method: Method
    source: str
    """How it was obtained, with what it is over."""
    reason: str | None = None
    """Why it is unknown, or why only a bound follows."""


def unknown(unit: str, reason: str, source: str = "") -> MeasuredValue:
    """No number, and why."""
    return MeasuredValue(None, unit, Method.UNAVAILABLE, source, reason)


def divided(
    figure: MeasuredValue, by: float | None, unit: str, of: str, reason: str
) -> MeasuredValue:
    """``figure`` for each of ``by`` things, named ``of``; ``reason`` where there are none."""
    if figure.value is None:
        return unknown(unit, figure.reason or reason, figure.source)
    if not by or by <= 0:
        return unknown(unit, reason, figure.source)
    source = f"{figure.source}, over {of}"
    return MeasuredValue(figure.value / by, unit, figure.method, source, figure.reason)
