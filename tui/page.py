"""A page of text over a screen: help, and every number of a session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from gpuwatch.metrics import CATALOGUE, Method
from gpuwatch.text import clean
from gpuwatch.tui.canvas import Canvas, Line, Span
from gpuwatch.tui.cells import pad, wrap
from gpuwatch.tui.keys import keys_row
from gpuwatch.tui.painted import PaintedScreen
from gpuwatch.tui.shares import over_texts, share_texts
from gpuwatch.tui.snapshot import Gauge, Reading, Snapshot
from gpuwatch.units import UNKNOWN, binary, percent, si

Row = tuple[Span, ...]


def help_lines(keys: Sequence[tuple[str, str]]) -> list[Row]:
    """Keys and what they do."""
    return [((f" {key:<18}", "key"), (what, "text")) for key, what in keys]


def number_lines(snapshot: Snapshot, width: int) -> list[Row]:
    """Each number: value, method, and its source or the reason why there is none."""
    rows: list[Row] = []
    if snapshot.warnings:
        rows.append(((" warnings", "strong"),))
        for text in snapshot.warnings:
            lines = wrap(text, width - 6, 4)
            rows += [
                ((" ! " if n == 0 else "   ", "warn"), (each, "text"))
                for n, each in enumerate(lines)
            ]
        rows.append((("", "text"),))
    rows.append(((" gauges of the run", "strong"),))
    for gauge in snapshot.gauges[1:]:
        rows += _number(gauge.title, gauge.reading, gauge.unit)
        rows += _ceiling(gauge, width)
    bandwidth = snapshot.gauges[1]
    if bandwidth.reading.method is not Method.COUNTED and not snapshot.machine_only:
        rows += _number("Algorithmic bytes/s", snapshot.algorithmic, "B/s")
    order = {name: index for index, name in enumerate(CATALOGUE)}
    kinds = {"gpu": 0, "cpu": 1, "workload": 2}
    for device in sorted(snapshot.devices, key=lambda each: kinds.get(each.row.kind, 3)):
        rows.append((("", "text"),))
        rows.append(((f" {clean(device.row.id)}  {clean(device.row.name)}", "strong"),))
        for metric in sorted(device.readings, key=lambda name: order.get(name, 99)):
            rows += _number(metric, device.readings[metric])
    return rows


def _ceiling(gauge: Gauge, width: int) -> list[Row]:
    """The share of the ceiling, and where that comes from."""
    if gauge.against is None:
        return []
    told = (*share_texts(gauge), f"ceiling: {gauge.against.text}")[0]
    over = "".join(f"; {text}" for text in over_texts(gauge)[:1])
    source = wrap(clean(gauge.against.source), width - 8, 3)
    return [((f"     {told}{over}", "text"),), *(((f"       {line}", "muted"),) for line in source)]


def _number(name: str, reading: Reading, unit: str | None = None) -> list[Row]:
    metric = CATALOGUE.get(name)
    if unit is None:
        unit = metric.unit if metric else ""
        if metric and metric.kind.value == "counter":
            unit += "/s"
    unavailable = reading.method is Method.UNAVAILABLE
    row = (
        (f"   {pad(clean(name), 26)}", "text"),
        (f"{shown(reading.value, unit):>14}  ", "muted" if reading.value is None else "strong"),
        (f"{reading.method.value:<12}", "warn" if unavailable else "muted"),
        ("" if unavailable else clean(reading.source), "muted"),
    )
    if not reading.reason:
        return [row]
    return [row, ((f"     {clean(reading.reason)}", "muted"),)]


def shown(value: float | None, unit: str) -> str:
    """A value in its metric's unit, as people read it."""
    if value is None:
        return UNKNOWN
    if unit == "1":
        return percent(value)
    if unit == "By":
        return binary(value)
    if unit == "s/s":
        return f"{value:.2f} cores"
    if unit == "Cel":
        return f"{value:.0f} °C"
    if unit in ("W", "J/s"):
        return f"{value:.0f} W"
    return si(value, unit.replace("By/s", "B/s"))


class PageScreen(PaintedScreen):
    """Rows that scroll with the arrow keys; any other key of leaving closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,question_mark,i", "close", show=False),
        Binding("down,j", "scroll_by(1)", show=False),
        Binding("up,k", "scroll_by(-1)", show=False),
        Binding("pagedown,space", "scroll_by(20)", show=False),
        Binding("pageup", "scroll_by(-20)", show=False),
        Binding("home", "scroll_by(-1000000)", show=False),
        Binding("end", "scroll_by(1000000)", show=False),
    ]

    def __init__(self, title: str, rows: Callable[[int], Sequence[Row]]) -> None:
        """``rows``: what is shown on a screen of so many columns."""
        super().__init__()
        self._heading = title
        self._make = rows
        self._first = 0

    def on_mount(self) -> None:
        self.call_after_refresh(self.paint)

    def paint(self) -> None:
        width, height = self.app.size
        lines = [Line(width).add(" gpuwatch ", "brand").add(self._heading, "strong"), Line(width)]
        rows = self._make(width)
        space = max(1, height - 3)
        self._first = max(0, min(self._first, len(rows) - space))
        for row in rows[self._first : self._first + space]:
            line = Line(width)
            for text, role in row:
                line.add(text, role)
            lines.append(line)
        lines += [Line(width) for _ in range(height - 1 - len(lines))]
        keys = [("Esc", "back")]
        if len(rows) > space:
            keys.append(("↑ ↓", f"scroll, {self._first + 1} of {len(rows)}"))
        lines.append(keys_row(keys, width))
        self.query_one(Canvas).show(lines)

    def action_scroll_by(self, by: int) -> None:
        self._first += by
        self.paint()

    def action_close(self) -> None:
        self.dismiss(None)
