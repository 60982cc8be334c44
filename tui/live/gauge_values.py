"""A gauge's value and the end of its scale, as texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gpuwatch.core.metrics import Method
from gpuwatch.core.units import (
    binary_parts,
    digits,
    loss,
    milliseconds,
    percent,
    scale_label,
    si_parts,
)
from gpuwatch.tui.feed.snapshot import Gauge

_PLAIN: Mapping[str, Callable[[float], str]] = {
    "By": lambda value: " ".join(binary_parts(value)),
    "s": milliseconds,
    "": loss,
    "W": lambda value: f"{value:.0f} W",
    "°C": lambda value: f"{value:.0f} °C",
    "cores": lambda value: f"{digits(value)} cores",
}
"""Formats of units without an SI prefix: a number, a space and the unit."""


def value_parts(gauge: Gauge) -> tuple[str, str]:
    """The gauge's number and unit, as shown."""
    if gauge.unit == "1":
        text = percent(gauge.reading.value)
        number, _, unit = text.partition(" ")
        return number, unit
    if gauge.unit in _PLAIN and gauge.reading.value is not None:
        number, _, unit = _PLAIN[gauge.unit](gauge.reading.value).partition(" ")
        return number, unit
    number, unit = si_parts(gauge.reading.value, gauge.unit)
    at_most = gauge.reading.method is Method.BOUND and gauge.reading.value is not None
    return (f"≤{number}" if at_most else number), unit


def scale_end(value: float, unit: str, columns: int) -> str:
    """The end of a scale or a ceiling, in fewer than ``columns`` columns."""
    if unit == "By":
        number, prefixed = binary_parts(value)
        return f"{float(number.replace(',', '')):g}{prefixed.removesuffix('B')}"[: columns - 1]
    if unit == "s" and 0 < value < 1:
        size, name = (value * 1e3, "ms") if value >= 1e-3 else (value * 1e6, "µs")
        exact = f"{size:g}{name}"
        return exact if len(exact) < columns else f"{size:.0f}{name}"
    label = scale_label(value, unit)
    return label if len(label) < columns else "".join(si_parts(value, "")).replace(" ", "")
