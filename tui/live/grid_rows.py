"""All GPUs at once: one small panel each."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method
from gpuwatch.core.text import clean
from gpuwatch.core.units import UNKNOWN, memory_usage, number, percent, si
from gpuwatch.tui.feed.hardware.device_facts import attribute, memory_total, number_of
from gpuwatch.tui.feed.snapshot import Panel
from gpuwatch.tui.widgets.cells import fit
from gpuwatch.tui.widgets.graph import area, bar
from gpuwatch.tui.widgets.line import Line

_NARROWEST = 36
"""Columns of a panel."""
_TALL = 7
"""Rows from which on a panel holds a history worth looking at."""
_LABEL = 5
"""Columns of the history's scale."""
_GAP = 2
"""Columns right of a panel."""


@dataclass(frozen=True)
class Layout:
    """Where the panels stand."""

    beside: int
    """Panels in a row."""
    width: int
    height: int
    """Of one panel."""
    first: int
    """The row of panels that stands at the top."""
    rows: int
    """Rows of panels that are seen."""


def layout(count: int, width: int, height: int, selected: int = 0) -> Layout:
    """Few columns of high panels where there is room, else as high as they can be."""
    most = max(1, min(count, width // _NARROWEST))
    heights = {beside: height // -(-count // beside) for beside in range(1, most + 1)}
    tall = [beside for beside, rows in heights.items() if rows >= _TALL]
    beside = tall[0] if tall else max(heights, key=lambda each: (min(3, heights[each]), -each))
    rows = -(-count // beside)
    each = max(1, min(16, heights[beside]))
    seen = max(1, min(rows, height // each))
    first = max(0, min(selected // beside - seen // 2, rows - seen))
    return Layout(beside, width // beside, each, first, seen)


def history_columns(count: int, width: int, height: int) -> int:
    """Columns of the history of each of ``count`` panels in so much room."""
    return max(1, layout(count, width, height).width - _GAP - _LABEL)


def panel_rows(
    panels: Sequence[Panel], selected: str | None, width: int, height: int, *, mark_used: bool
) -> list[Line]:
    """At most ``height`` rows with a panel for each GPU; ``mark_used``: say which the run uses."""
    placed = _layout(panels, selected, width, height)
    lines: list[Line] = []
    for row in range(placed.first, placed.first + placed.rows):
        beside = [
            _panel(panel, panel.device.row.id == selected, placed, mark_used)
            for panel in panels[row * placed.beside : (row + 1) * placed.beside]
        ]
        for y in range(placed.height):
            line = Line(width)
            for column, rows in enumerate(beside):
                line.to(column * placed.width).join(rows[y])
            lines.append(line)
    return lines


def places(
    panels: Sequence[Panel], selected: str | None, width: int, height: int
) -> list[tuple[range, range, str]]:
    """Columns and rows of each panel that is seen, and its GPU's id."""
    placed = _layout(panels, selected, width, height)
    first = placed.first * placed.beside
    found = []
    for at, panel in enumerate(panels[first : first + placed.rows * placed.beside]):
        row, column = divmod(at, placed.beside)
        xs = range(column * placed.width, (column + 1) * placed.width)
        ys = range(row * placed.height, (row + 1) * placed.height)
        found.append((xs, ys, panel.device.row.id))
    return found


def _layout(panels: Sequence[Panel], selected: str | None, width: int, height: int) -> Layout:
    at = next((i for i, panel in enumerate(panels) if panel.device.row.id == selected), 0)
    return layout(len(panels), width, height, at)


def _panel(panel: Panel, selected: bool, placed: Layout, mark_used: bool) -> list[Line]:
    width, height = placed.width - _GAP, placed.height
    rows = [Line(width) for _ in range(height)]
    head = rows[0].add("▸" if selected else " ", "key")
    head.add(f"GPU {number_of(panel.device)}", "strong")
    head.add((" run" if panel.device.row.used else "    ") if mark_used else "", "muted")
    head.add(" !" if panel.wrong else "", "warn")
    if height < 4:
        figure = f"{percent(_use(panel)):>7}"
        figure += f" {_memory(panel):>14}" if height == 1 and width > 48 else ""
        _bar(head.to(13), _use(panel), figure, "utilization")
        if height == 3:
            _memory_bar(rows[1].add("   memory").to(13), panel)
        if height > 1:
            rows[-1].add("   ").join(_figures(panel, width - 3, memory=height == 2))
        return rows
    name = panel.wrong or clean(panel.device.row.name)
    head.add(f" {fit(name, head.left - 1)}", "text" if panel.wrong else "muted")
    _bar(rows[1].add(" busy").to(9), _use(panel), f"{percent(_use(panel)):>14}", "utilization")
    _memory_bar(rows[2].add(" memory").to(9), panel)
    rows[3].add(" ").join(_figures(panel, width - 1, memory=False))
    if height >= _TALL - 1:
        _history(panel, rows[4 : height - 1])
    return rows


def _use(panel: Panel) -> float | None:
    return panel.device.value("hw.gpu.utilization")


def _memory(panel: Panel) -> str:
    return memory_usage(panel.device.value("hw.gpu.memory.usage"), memory_total(panel.device))


def _memory_bar(row: Line, panel: Panel) -> None:
    used, total = panel.device.value("hw.gpu.memory.usage"), memory_total(panel.device)
    share = None if used is None or total is None else used / total
    _bar(row, share, f"{_memory(panel):>14}", "progress")


def _bar(row: Line, share: float | None, figure: str, role: str) -> None:
    """A bar up to the panel's end, and its figure."""
    filled, empty = bar(share, max(3, row.left - len(figure)))
    row.add(filled, role).add(empty, "faint").add(figure, "strong")


def _figures(panel: Panel, width: int, *, memory: bool) -> Line:
    """Bandwidth, power and temperature, each in a place of its own; what does not fit is left
    out."""
    device = panel.device
    limit, power = attribute(device, "power.limit"), device.value("hw.gpu.power")
    watts = number(power, "W") if limit is None or power is None else f"{power:.0f}/{limit:.0f} W"
    told = [("memory ", f"{_memory(panel):<13}") if memory else _bandwidth(panel)]
    told += [("", f"{watts:<9}"), ("", number(device.value("hw.gpu.temperature"), "°C"))]
    row = Line(width)
    for name, text in told:
        if row.left < len(name + text) + 2 * bool(row.used):
            break
        row.add("  " if row.used else "").add(name, "muted")
        row.add(text, "muted" if text.startswith(UNKNOWN) else "text")
    return row


def _bandwidth(panel: Panel) -> tuple[str, str]:
    """Its name and its value, in the same width with the mark of a bound and without."""
    reading = panel.bandwidth
    text = si(reading.value, "B/s")
    if reading.method is Method.BOUND and reading.value is not None:
        return "bandwidth", f"{'≤' + text:>10}"
    return "bandwidth ", f"{text:<9}"


def _history(panel: Panel, rows: list[Line]) -> None:
    """Utilization over the window, from 0 to 100 %: where not all of it fits, the newest."""
    shown = panel.history[_LABEL - rows[0].width :]
    for at, (row, spans) in enumerate(zip(rows, area(shown, 1.0, len(rows)), strict=True)):
        label = "100%" if at == 0 else "0" if at == len(rows) - 1 else ""
        row.add(f"{label:>{_LABEL - 1}}", "muted").add("┤" if label else "│", "faint")
        for text, edge in spans:
            row.add(text, "utilization" if edge else "utilization-fill")
