"""Every number of a session as rows of text: the page on ``i``."""

from __future__ import annotations

from rich.cells import cell_len

from gpuwatch.core.metrics import CATALOGUE, Method, label
from gpuwatch.core.text import clean
from gpuwatch.core.units import bounded, quantity
from gpuwatch.tui.feed.shares import over_texts, share_texts
from gpuwatch.tui.feed.snapshot import Gauge, Reading, Snapshot
from gpuwatch.tui.live.counter_rows import counter_rows, wrapped
from gpuwatch.tui.live.gauge_rows import mean_text
from gpuwatch.tui.widgets.cells import pad, wrap
from gpuwatch.tui.widgets.page import Row

_SOURCE = 58
"""Column of a source, and one at its right."""
_MOST = 6
"""Rows of a source or a reason; a file of someone else's may hold any text."""


def number_lines(snapshot: Snapshot, width: int) -> list[Row]:
    """Each number: value, method, and its source or the reason why there is none."""
    rows: list[Row] = []
    if snapshot.warnings:
        rows.append(((" warnings", "strong"),))
        for text in snapshot.warnings:
            rows += wrapped(text, width, mark="!", role="text")
        rows.append((("", "text"),))
    rows.append(((" gauges of the run", "strong"),))
    for gauge in snapshot.gauges[1:]:
        rows += _number(gauge.title, gauge.reading, width, gauge.unit)
        rows += _lines(mean_text(gauge), 5, width, "muted")
        rows += _ceiling(gauge, width)
    bandwidth = snapshot.gauges[1]
    if bandwidth.reading.method is not Method.COUNTED and not snapshot.machine_only:
        rows += _number("Algorithmic bytes/s", snapshot.algorithmic, width, "B/s")
    if snapshot.counters is not None:
        rows += [(("", "text"),), *counter_rows(snapshot.counters, width)]
    order = {name: index for index, name in enumerate(CATALOGUE)}
    kinds = {"gpu": 0, "cpu": 1, "workload": 2}
    for device in sorted(snapshot.devices, key=lambda each: kinds.get(each.row.kind, 3)):
        rows.append((("", "text"),))
        rows.append(((f" {clean(device.row.id)}  {clean(device.row.name)}", "strong"),))
        for metric in sorted(device.readings, key=lambda name: order.get(name, 99)):
            rows += _number(metric, device.readings[metric], width)
    if snapshot.event is not None:
        rows += [(("", "text"),), ((" last event", "strong"),)]
        of = f"{snapshot.event.device} " if snapshot.event.device else ""
        rows += wrapped(f"{of}{snapshot.event.kind}: {snapshot.event.text}", width, role="text")
    return rows


def _ceiling(gauge: Gauge, width: int) -> list[Row]:
    """The share of the ceiling, where that comes from, and what disturbed its measurement."""
    if gauge.against is None:
        return []
    told = (*share_texts(gauge), f"ceiling: {gauge.against.text}")[0]
    over = "".join(f"; {text}" for text in over_texts(gauge)[:1])
    rows = _lines(f"{told}{over}", 5, width, "text")
    rows += _lines(gauge.against.source, 7, width, "muted")
    return rows + _lines(gauge.against.doubt or "", 7, width, "warn")


def _lines(text: str, indent: int, width: int, role: str) -> list[Row]:
    """Text in as many rows as it needs."""
    found = wrap(clean(text), max(10, width - indent - 1), _MOST)
    return [((" " * indent + line, role),) for line in found]


def _number(name: str, reading: Reading, width: int, unit: str | None = None) -> list[Row]:
    if unit is None:
        metric = CATALOGUE.get(name)
        name, unit = label(name), metric.unit if metric else ""
        if metric and metric.kind.value == "counter":  # its reading is what it gains in a second
            name, unit = f"{name}/s", f"{unit}/s"
    unavailable = reading.method is Method.UNAVAILABLE
    is_bound = reading.method is Method.BOUND and reading.value is not None
    value = bounded(quantity(reading.value, unit), "at most" if is_bound else None)
    row: Row = (
        (f"   {pad(clean(name), 26)}", "text"),
        (f"{value:>14}  ", "muted" if reading.value is None else "strong"),
        (f"{reading.method.value:<12}", "warn" if unavailable else "muted"),
    )
    source = "" if unavailable else clean(reading.source)
    below: list[Row] = []
    if cell_len(source) <= width - _SOURCE:
        row = (*row, (source, "muted"))
    else:
        below = _lines(source, 5, width, "muted")
    return [row, *below, *_lines(reading.reason or "", 5, width, "muted")]
