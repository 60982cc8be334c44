"""One number together with how it was obtained."""

from __future__ import annotations

from dataclasses import replace

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method


@dataclass(frozen=True)
class MeasuredValue:
    """A number, in ``unit``; ``None`` is unknown, and then ``method`` is unavailable."""

    value: float | None
    unit: str
    method: Method
    source: str
    """How it was obtained, and over what."""
    reason: str | None = None
    """Why it is unknown, or why only a bound follows."""
    error: float | None = None
    """Largest relative error; ``None``: none is known."""


def unknown(unit: str, reason: str, source: str = "") -> MeasuredValue:
    """An unknown value, and why."""
    return MeasuredValue(None, unit, Method.UNAVAILABLE, source, reason)


def divided(
    figure: MeasuredValue, by: float | None, unit: str, of: str, reason: str
) -> MeasuredValue:
    """``figure`` divided by ``by``; unknown for ``reason`` where ``by`` is not positive.

    ``of`` names the divisor in the source, such as ``the timed steps``.
    """
    if figure.value is None:
        return unknown(unit, figure.reason or reason, figure.source)
    if not by or by <= 0:
        return unknown(unit, reason, figure.source)
    source = f"{figure.source}, over {of}"
    return replace(figure, value=figure.value / by, unit=unit, source=source)
