"""A rate as a share of its ceiling, in words that always say which ceiling it is."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from gpuwatch.analysis.hardware.ceilings import MEASURED
from gpuwatch.core.metrics import Method
from gpuwatch.core.units import percent, si
from gpuwatch.tui.feed.snapshot import Gauge

OVER = 1.05
"""Above this share, counted bytes cannot all have come from memory; 5 % is left for the error of a
measured ceiling."""
_MEASURED = {True: "copy", False: "product"}
"""What was timed for a measured ceiling: of the bandwidth, of a data type."""
_PLURAL = {"copy": "copies", "product": "products", "peak": "peaks"}


def share_texts(gauge: Gauge) -> tuple[str, ...]:
    """The longest first; empty where no ceiling or no value is known."""
    ceiling = gauge.against
    if ceiling is None or gauge.share is None:
        return ()
    share = percent(gauge.share)
    size = si(ceiling.value, ceiling.unit.replace("By/s", "B/s"))
    full, _, several = ceiling.text.partition(", ")
    all_of = f", {several}" if several else ""
    sum_of = "sum of " if several else ""
    word = ceiling.kind if ceiling.kind != MEASURED else _MEASURED[gauge.key == "bandwidth"]
    count = several.removeprefix("sum over ").removesuffix(" GPUs")
    short_of = f"{count} {_PLURAL.get(word, word)}" if several else word
    short = full.removesuffix(" at maximum clock")
    return (
        f"{share} of {full} {size}{all_of}",
        f"{share} of {sum_of}{short} {size}",
        f"{share} of {sum_of}{short}",
        f"{share} of {short_of}",
    )


def over_texts(gauge: Gauge) -> tuple[str, ...]:
    """What algorithmic bytes beyond the bandwidth mean; empty where they are not."""
    counted = gauge.key == "bandwidth" and gauge.reading.method is Method.COUNTED
    if not counted or gauge.share is None or gauge.share <= OVER:
        return ()
    return ("over the ceiling: cache reuse", "over: cache reuse", "cache reuse")


def fitting(texts: Sequence[str], width: int) -> str:
    """The longest of ``texts`` in ``width`` cells; nothing rather than half a statement."""
    return next((text for text in texts if cell_len(text) <= width), "")
