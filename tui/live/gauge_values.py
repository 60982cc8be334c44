"""A gauge as texts: its value, the end of its scale, its share of a ceiling, which is named."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rich.cells import cell_len

from gpuwatch.analysis.hardware.ceilings import MEASURED, PEAK, SHEET
from gpuwatch.core.metrics import Method
from gpuwatch.core.units import (
    binary_parts,
    digits,
    loss,
    milliseconds,
    percent,
    scale_label,
    si,
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


_CACHE_REUSE = 1.05
"""Share of the bandwidth above which counted bytes were partly read from caches: 1, and 5 % for
the error of a measured ceiling."""
_BENCHMARKS = {True: "copy", False: "product"}
"""What a measured ceiling timed: for the bandwidth a copy, else a matrix product."""
_WORDS = {PEAK: "peak", SHEET: "sheet peak"}
_PLURAL = {"copy": "copies", "product": "products", "peak": "peaks", "sheet peak": "sheet peaks"}


def share_texts(gauge: Gauge) -> tuple[str, ...]:
    """Texts for the gauge's share, the longest first; empty: no ceiling or no value is known."""
    ceiling = gauge.named_ceiling
    if ceiling is None or gauge.share is None:
        return ()
    share = percent(gauge.share)
    size = si(ceiling.value, ceiling.unit.replace("By/s", "B/s"))
    full, _, extent = ceiling.text.partition(", ")
    all_of = f", {extent}" if extent else ""
    sum_of = "sum of " if extent else ""
    word = (
        _BENCHMARKS[gauge.key == "bandwidth"] if ceiling.kind == MEASURED else _WORDS[ceiling.kind]
    )
    count = extent.removeprefix("sum over ").removesuffix(" GPUs")
    short_of = f"{count} {_PLURAL.get(word, word)}" if extent else word
    short = full.removesuffix(" at maximum clock")
    return (
        f"{share} of {full} {size}{all_of}",
        f"{share} of {sum_of}{short} {size}",
        f"{share} of {sum_of}{short}",
        f"{share} of {short_of}",
    )


def cache_texts(gauge: Gauge) -> tuple[str, ...]:
    """Texts for algorithmic bytes above the bandwidth, the longest first; empty: they are not."""
    counted = gauge.key == "bandwidth" and gauge.reading.method is Method.COUNTED
    if not counted or gauge.share is None or gauge.share <= _CACHE_REUSE:
        return ()
    return ("over the ceiling: cache reuse", "over: cache reuse", "cache reuse")


def longest_fitting(texts: Sequence[str], width: int) -> str:
    """The first of ``texts`` that fits in ``width`` cells; empty: none does."""
    return next((text for text in texts if cell_len(text) <= width), "")
