"""Texts for a rate as a share of its ceiling; each names the ceiling."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from gpuwatch.analysis.hardware.ceilings import MEASURED, PEAK, SHEET
from gpuwatch.core.metrics import Method
from gpuwatch.core.units import percent, si
from gpuwatch.tui.feed.snapshot import Gauge

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
