"""All GPUs at once: one small panel each."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method
from gpuwatch.core.text import clean
from gpuwatch.core.units import UNKNOWN, number, percent, si
from gpuwatch.tui.feed.snapshot import Panel
from gpuwatch.tui.widgets.cells import fit
from gpuwatch.tui.widgets.device_rows import gpu_cell, more_values, power_text
from gpuwatch.tui.widgets.graph import area
from gpuwatch.tui.widgets.line import Line

_MIN_WIDTH = 36
"""Least columns of a panel."""
_LEAST_HEIGHT = 4
"""Least rows of a panel; lower ones are a single row."""
_HISTORY_HEIGHT = 7
"""Least rows of a panel with a useful history."""
_MORE_HEIGHT = 10
"""Least rows of a panel with clocks, PCIe and fans."""
_LABEL = 5
"""Columns of the scale of the history."""
_GAP = 2
"""Columns between two panels."""


@dataclass(frozen=True)
class Layout:
    """The arrangement of the panels."""

    per_row: int
    """Number of panels in a row."""
    width: int
    """Columns of one panel, with the gap."""
    height: int
    """Rows of one panel."""
    first: int
    """Index of the first visible row of panels."""
    rows: int
    """Number of visible rows of panels."""


def layout(count: int, width: int, height: int, selected: int = 0) -> Layout:
    """The fewest panels in a row that are high enough for a history, else the highest panels, else
    a row for each GPU."""
    most = max(1, min(count, width // _MIN_WIDTH))
    heights = {n: height // -(-count // n) for n in range(1, most + 1)}
    tall = [n for n, rows in heights.items() if rows >= _HISTORY_HEIGHT]
    per_row = tall[0] if tall else max(heights, key=lambda n: (heights[n], -n))
    if heights[per_row] < _LEAST_HEIGHT:
        per_row = next((n for n, rows in heights.items() if rows), most)
    rows = -(-count // per_row)
    panel_height = min(16, heights[per_row]) if heights[per_row] >= _LEAST_HEIGHT else 1
    visible_rows = max(1, min(rows, height // panel_height))
    first = max(0, min(selected // per_row - visible_rows // 2, rows - visible_rows))
    return Layout(per_row, width // per_row, panel_height, first, visible_rows)


def history_columns(count: int, width: int, height: int) -> int:
    """Columns of a panel's history, for ``count`` panels on ``width`` by ``height`` cells."""
    return max(1, layout(count, width, height).width - _GAP - _LABEL)


def panel_rows(
    panels: Sequence[Panel], selected: str | None, width: int, height: int, *, mark_used: bool
) -> list[Line]:
    """A panel per GPU in at most ``height`` rows; ``mark_used``: mark the GPUs of the run."""
    grid = _layout(panels, selected, width, height)
    lines: list[Line] = []
    for row in range(grid.first, grid.first + grid.rows):
        neighbours = [
            _panel(panel, panel.device.row.id == selected, grid, mark_used)
            for panel in panels[row * grid.per_row : (row + 1) * grid.per_row]
        ]
        for y in range(grid.height):
            line = Line(width)
            for column, rows in enumerate(neighbours):
                line.to(column * grid.width).join(rows[y])
            lines.append(line)
    return lines


def panel_areas(
    panels: Sequence[Panel], selected: str | None, width: int, height: int
) -> list[tuple[range, range, str]]:
    """Columns and rows of each visible panel, and the id of its GPU."""
    grid = _layout(panels, selected, width, height)
    first = grid.first * grid.per_row
    areas = []
    for at, panel in enumerate(panels[first : first + grid.rows * grid.per_row]):
        row, column = divmod(at, grid.per_row)
        columns = range(column * grid.width, (column + 1) * grid.width)
        rows = range(row * grid.height, (row + 1) * grid.height)
        areas.append((columns, rows, panel.device.row.id))
    return areas


def _layout(panels: Sequence[Panel], selected: str | None, width: int, height: int) -> Layout:
    at = next((i for i, panel in enumerate(panels) if panel.device.row.id == selected), 0)
    return layout(len(panels), width, height, at)


def _panel(panel: Panel, selected: bool, grid: Layout, mark_used: bool) -> list[Line]:
    width, height = grid.width - _GAP, grid.height
    rows = [Line(width) for _ in range(height)]
    head = rows[0].add("▸" if selected else " ", "key")
    head.add(f"GPU {panel.device.number}", "strong")
    head.add((" run" if panel.device.row.used else "    ") if mark_used else "", "muted")
    head.add(" !" if panel.problem else "", "warn")
    if height < _LEAST_HEIGHT:
        row = rows[0].join(gpu_cell(panel.device, selected, width - 2, mark_used))
        return [row.add(" !" if panel.problem else "", "warn")]
    name = panel.problem or clean(panel.device.row.name)
    head.add(f" {fit(name, head.left - 1)}", "text" if panel.problem else "muted")
    device, use = panel.device, panel.device.value("hw.gpu.utilization")
    _bar(rows[1].add(" util.").to(9), use, f"{percent(use):>14}", "utilization")
    _bar(rows[2].add(" memory").to(9), device.memory_share, f"{device.memory:>14}", "progress")
    degrees = number(device.value("hw.gpu.temperature"), "°C")
    fields = [_bandwidth(panel), ("", f"{power_text(device):<9}"), ("", degrees)]
    rows[3].add(" ").join(_fitting(fields, width - 1))
    first = 4
    if height >= _MORE_HEIGHT:
        more = [(f"{name} ", text) for name, text in more_values(device)]
        rows[first].add(" ").join(_fitting(more, width - 1))
        first += 1
    if height >= _HISTORY_HEIGHT - 1:
        _history(panel, rows[first : height - 1])
    return rows


def _bar(row: Line, share: float | None, value: str, role: str) -> None:
    """Add a bar and its value up to the end of the panel."""
    row.bar(share, max(3, row.left - len(value)), role).add(value, "strong")


def _fitting(fields: Sequence[tuple[str, str]], width: int) -> Line:
    row = Line(width)
    for name, text in fields:
        if row.left < len(name + text) + 2 * bool(row.used):
            break
        row.add("  " if row.used else "").add(name, "muted")
        row.add(text, "muted" if text.startswith(UNKNOWN) else "text")
    return row


def _bandwidth(panel: Panel) -> tuple[str, str]:
    """Name and value of the bandwidth, in the same width with and without ``≤``."""
    reading = panel.bandwidth
    text = si(reading.value, "B/s")
    if reading.method is Method.BOUND and reading.value is not None:
        return "bandwidth", f"{'≤' + text:>10}"
    return "bandwidth ", f"{text:<9}"


def _history(panel: Panel, rows: list[Line]) -> None:
    """Draw the utilization from 0 to 100 %; if not all of it fits, the newest part."""
    shown = panel.history[_LABEL - rows[0].width :]
    for at, (row, spans) in enumerate(zip(rows, area(shown, 1.0, len(rows)), strict=True)):
        label = "100%" if at == 0 else "0" if at == len(rows) - 1 else ""
        row.add(f"{label:>{_LABEL - 1}}", "muted").add("┤" if label else "│", "faint")
        for text, edge in spans:
            row.add(text, "utilization" if edge else "utilization-fill")
