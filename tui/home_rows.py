"""The home screen as rows of text: devices now, sessions, what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpuwatch.text import clean
from gpuwatch.tui.cells import fit, pad
from gpuwatch.tui.commands import Entry
from gpuwatch.tui.device_rows import grid_rows, memory_total, name_of
from gpuwatch.tui.graph import bar
from gpuwatch.tui.home_edit import Edit, edit_row
from gpuwatch.tui.home_first import Found, first_rows
from gpuwatch.tui.home_list import ORDERS, Arrangement, Item
from gpuwatch.tui.home_table import details, table
from gpuwatch.tui.line import Line
from gpuwatch.tui.live_rows import rule
from gpuwatch.tui.snapshot import DeviceNow, Snapshot
from gpuwatch.units import number, of_total, percent, si

_MOST_UNLISTED = 3


@dataclass(frozen=True)
class HomeState:
    """Everything the home screen draws."""

    devices: Snapshot | None = None
    devices_trouble: str | None = None
    entries: tuple[Entry, ...] | None = None
    """All sessions; ``None`` while the list is being read."""
    items: tuple[Item, ...] = ()
    """The rows, as they were asked for."""
    how: Arrangement = field(default_factory=Arrangement)
    complaint: str | None = None
    cursor: int = 0
    """Place in ``items``."""
    marked: tuple[Path, ...] = ()
    """Sessions and folders of studies, in the order in which they were marked."""
    found: tuple[Found, ...] | None = None
    """What can run here, once it was looked at."""
    edit: Edit | None = None
    message: str = ""

    @property
    def current(self) -> Item | None:
        """The row under the cursor."""
        return self.items[self.cursor] if 0 <= self.cursor < len(self.items) else None


@dataclass(frozen=True)
class Layout:
    """Where the list stands on the screen."""

    top: int = 0
    """Row of the first item that is shown."""
    first: int = 0
    """Its place in ``items``."""
    count: int = 0

    def item(self, y: int) -> int | None:
        """Place of the item in a row of the screen."""
        at = y - self.top
        return self.first + at if 0 <= at < self.count else None


def home_rows(state: HomeState, width: int, height: int) -> tuple[list[Line], Layout]:
    """The whole screen, without its line of keys; and where the list stands."""
    rows = [Line(width).add(" gpuwatch ", "brand").add("devices now", "muted")]
    rows += _devices(state, width, max(3, min(16, height - 14)))
    rows += [*([Line(width)] if height >= 20 else []), _heading(state, width)]
    foot = _foot(state, width, height)
    space = max(0, height - len(rows) - len(foot))
    layout = Layout()
    if state.items:
        drawn, first = table(state.items, state.cursor, state.marked, width, space)
        layout = Layout(len(rows) + 1, first, len(drawn) - 1)
        rows += drawn
    else:
        rows += _nothing(state, width, space)
    rows += [Line(width) for _ in range(height - len(rows) - len(foot))]
    return (rows + foot)[:height], layout


def _heading(state: HomeState, width: int) -> Line:
    """How many there are, how many of them are shown, and in which order."""
    entries, how = state.entries or (), state.how
    if not entries:
        return rule("sessions", width)
    alone = sum(item.entry is not None and item.study is None for item in state.items)
    shown = alone + sum(len(item.runs) for item in state.items)
    title = f"sessions  {shown} of {len(entries)}" if how.query else f"sessions  {len(entries)}"
    studies = sum(item.entry is None for item in state.items)
    if studies:
        title += f"  in {studies} {'study' if studies == 1 else 'studies'}"
        title += f" and {alone} alone" if alone else ""
    if how.query:
        title += f"  /{fit(how.query, 24)}"
    return rule(f"{title}  by {ORDERS[how.order].name} {'↓' if how.falling else '↑'}", width)


def _devices(state: HomeState, width: int, most: int) -> list[Line]:
    if state.devices is None:
        text = state.devices_trouble or "looking at the devices …"
        role = "warn" if state.devices_trouble else "muted"
        return [
            Line(width).add(" ").add("! " if state.devices_trouble else "", role).add(text, role)
        ]
    gpus = state.devices.gpus
    rows: list[Line] = []
    if len(gpus) > 1:
        rows += [Line(width).add(f" {_names(gpus)}", "strong")]
        rows += grid_rows(gpus, None, width, most, mark_used=False)
    elif gpus:
        rows += _one(gpus[0], width)
    else:
        rows.append(
            Line(width)
            .add(" no GPU", "warn")
            .add(": workloads run on the CPU", "text")
            .add(f" ({clean(state.devices.no_gpu)})" if state.devices.no_gpu else "", "muted")
        )
    cpu = next((device for device in state.devices.devices if device.row.kind == "cpu"), None)
    if cpu is not None:
        rows += _cpu(cpu, width)
    return rows


def _names(gpus: Sequence[DeviceNow]) -> str:
    names = [clean(gpu.row.name) for gpu in gpus]
    return "   ".join(f"{names.count(name)} × {name}" for name in dict.fromkeys(names))


def _bar_row(name: str, value: float | None, width: int, role: str) -> Line:
    row = Line(width).add(f" {pad(name, 12)}", "muted")
    filled, empty = bar(value, min(40, width // 3))
    row.add(filled, role).add(empty, "faint").add(f" {percent(value):>6}  ", "strong")
    return row


def _one(gpu: DeviceNow, width: int) -> list[Line]:
    use = gpu.value("hw.gpu.utilization")
    row = _bar_row("utilization", use, width, "utilization")
    for text in (
        of_total(gpu.value("hw.gpu.memory.usage"), memory_total(gpu)),
        number(gpu.value("hw.gpu.power"), "W"),
        number(gpu.value("hw.gpu.temperature"), "°C"),
    ):
        row.add(f"  {text}", "text")
    return [Line(width).add(f" {name_of(gpu)}", "strong"), row]


def _cpu(cpu: DeviceNow, width: int) -> list[Line]:
    row = _bar_row("utilization", cpu.value("hw.cpu.utilization"), width, "bandwidth")
    row.add(f"  {of_total(cpu.value('hw.memory.usage'), memory_total(cpu))}", "text")
    row.add(f"  {si(cpu.value('hw.cpu.frequency'), 'Hz')}", "text")
    return [Line(width).add(f" {name_of(cpu)}", "strong"), row]


def _nothing(state: HomeState, width: int, space: int) -> list[Line]:
    """Why there is no row."""
    if state.complaint:
        return [Line(width).add(" ✗ ", "bad").add(state.complaint, "text")]
    if state.entries is None:
        return [Line(width).add(" reading the sessions …", "muted")]
    if state.entries:
        row = Line(width).add(f" nothing matches {fit(state.how.query, 30)}: ", "muted")
        return [row.add("Esc", "key", press="escape").add(" shows all again", "muted")]
    return first_rows(state.found, width, space)


def _foot(state: HomeState, width: int, height: int) -> list[Line]:
    """Marked sessions that are not in the list, more of the row under the cursor, and the line
    that is written, a word, or the path."""
    rows = _unlisted(state, width)
    lines = 0 if height < 18 else 3 if height < 40 else 6
    current = state.current
    if state.entries and lines:
        told = details(current, width, lines) if current is not None else []
        # Always as many, so that the list does not jump with the cursor.
        rows += [*told, *(Line(width) for _ in range(lines - len(told)))]
    if state.edit is not None:
        return [*rows, edit_row(state.edit, width)]
    row = Line(width).add(" ")
    if state.message:
        row.add("» ", "key").add(state.message, "strong")
    elif current is not None:
        row.add(clean(current.path), "muted")
    return [*rows, row]


def _unlisted(state: HomeState, width: int) -> list[Line]:
    if not state.marked or not state.entries:
        return []
    listed = {item.path for item in state.entries}
    listed |= {item.path.parent for item in state.entries}
    return [
        Line(width)
        .add(f" {place} ", "key")
        .add("not listed: ", "muted")
        .add(clean(f"{path.parent.name}/{path.name}"))
        for place, path in enumerate(state.marked, 1)
        if path not in listed
    ][:_MOST_UNLISTED]
