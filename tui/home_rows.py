"""The home screen as rows of text: devices now, sessions, what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from gpuwatch.session.status import State
from gpuwatch.text import clean
from gpuwatch.tui.cells import fit, pad
from gpuwatch.tui.commands import Entry
from gpuwatch.tui.device_rows import grid_rows, memory_total, name_of
from gpuwatch.tui.graph import bar
from gpuwatch.tui.head_rows import MARKS
from gpuwatch.tui.line import Line
from gpuwatch.tui.live_rows import rule, samples_rate
from gpuwatch.tui.snapshot import DeviceNow, Snapshot
from gpuwatch.units import UNKNOWN, clock_time, milliseconds, number, of_total, percent, si


@dataclass(frozen=True)
class HomeState:
    """Everything the home screen draws."""

    devices: Snapshot | None = None
    devices_trouble: str | None = None
    entries: tuple[Entry, ...] | None = None
    """``None`` while the list is being read."""
    complaint: str | None = None
    cursor: int = 0
    marked: tuple[Path, ...] = ()
    places: Mapping[Path, str] = field(default_factory=dict)
    """Of the sessions that are of a study of several: block and run."""
    message: str = ""


def home_rows(state: HomeState, width: int, height: int) -> list[Line]:
    """The whole screen, without its line of keys."""
    rows = [Line(width).add(" gpuwatch ", "brand").add("devices now", "muted")]
    rows += _devices(state, width, max(3, min(16, height - 14)))
    entries = state.entries or ()
    title = f"sessions  {len(entries)}" if entries else "sessions"
    rows += [Line(width), rule(title, width)]
    foot = _foot(state, width)
    space = height - len(rows) - len(foot)
    if entries:
        rows += _table(state, entries, width, space)
    else:
        rows += _first_contact(state, width)[:space]
    rows += [Line(width) for _ in range(height - len(rows) - len(foot))]
    return (rows + foot)[:height]


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


def _first_contact(state: HomeState, width: int) -> list[Line]:
    if state.complaint:
        return [Line(width).add(" ✗ ", "bad").add(state.complaint, "text")]
    if state.entries is None:
        return [Line(width).add(" reading the sessions …", "muted")]
    return [
        Line(width),
        Line(width).add(" No run was recorded yet.", "strong"),
        Line(width),
        Line(width).add("  n", "key").add("  starts the first one: a built-in model, or a command"),
        Line(width).add("     of your own"),
        Line(width).add("  ?", "key").add("  all keys"),
    ]


_COLUMNS = (
    ("status", 13, "<"),
    ("workload", 13, "<"),
    ("environment", 12, "<"),
    ("run", 0, "<"),
    ("started", 12, "<"),
    ("took", 8, ">"),
    ("step", 9, ">"),
    ("samples/s", 10, ">"),
)
"""Name, width at 80 columns, alignment; what is left goes to workload and environment."""
_JOINTS = {(False, False): " ", (False, True): "╭", (True, True): "│", (True, False): "╰"}
"""Whether the session above and the one below are of the same study."""
_RUN, _RATE = 3, 7
"""Places of the two that are not always there."""


def _widths(width: int, places: Iterable[str]) -> list[int]:
    """``places`` of runs in their studies take the room of the rate where there is too little."""
    widths = [size for _, size, _ in _COLUMNS]
    longest = max(map(len, places), default=0)
    if longest:
        widths[_RUN] = longest + 3
        if sum(widths) + 3 > width:
            widths[_RATE] = 0
    spare = max(0, width - sum(widths) - 3)
    more = min(24, spare // 2)
    widths[1] += more
    widths[2] += more
    return widths


def _table(state: HomeState, entries: Sequence[Entry], width: int, space: int) -> list[Line]:
    widths = _widths(width, state.places.values())
    head = Line(width).add("   ")
    for (name, _, align), size in zip(_COLUMNS, widths, strict=True):
        head.add(_cell(name, size, align), "muted")
    visible = max(1, space - 1)
    first = max(0, min(state.cursor - visible // 2, len(entries) - visible))
    seen = range(first, min(len(entries), first + visible))
    return [head, *(_entry(state, entries, index, widths, width) for index in seen)]


def _run(state: HomeState, entries: Sequence[Entry], index: int) -> str:
    """The place of a run in its study, on a line that joins it to its neighbours in the list."""
    path = entries[index].path
    place = state.places.get(path)
    if place is None:
        return ""
    above = index > 0 and entries[index - 1].path.parent == path.parent
    below = index + 1 < len(entries) and entries[index + 1].path.parent == path.parent
    return f"{_JOINTS[above, below]} {place}"


def _cell(text: str, width: int, align: str) -> str:
    """One column, with a blank at its right so that neighbours never touch."""
    if not width:
        return ""
    if align == ">":
        return pad(text, width, ">")
    return pad(text, width - 1) + " "


def _entry(
    state: HomeState, entries: Sequence[Entry], index: int, widths: Sequence[int], width: int
) -> Line:
    item, marked = entries[index], state.marked
    current = index == state.cursor
    mark = str(marked.index(item.path) + 1) if item.path in marked else " "
    row = Line(width).add("▸" if current else " ", "key").add(f"{mark} ", "key")
    try:
        sign, role = MARKS[State(item.status)]
    except ValueError:
        sign, role = "!", "warn"
    steps = milliseconds(item.step_seconds)
    values = (
        f"{sign} {item.status}",
        item.workload,
        item.environment,
        _run(state, entries, index),
        started(item.started),
        UNKNOWN if item.seconds is None else clock_time(item.seconds),
        steps,
        samples_rate(item.samples_per_second),
    )
    for at, ((_, _, align), size, value) in enumerate(zip(_COLUMNS, widths, values, strict=True)):
        colour = role if at == 0 else "strong" if at == 1 else "text"
        row.add(_cell(value, size, align), colour)
    return row.painted("select") if current else row


def started(text: str) -> str:
    """``11-20 22:54`` in the local time of the terminal."""
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return fit(text, 11)
    return moment.astimezone().strftime("%m-%d %H:%M")


def _foot(state: HomeState, width: int) -> list[Line]:
    """Marked sessions that are not in the list, and a word or the path under the cursor."""
    entries = state.entries or ()
    listed = {item.path for item in entries}
    rows = [
        Line(width)
        .add(f" {place} ", "key")
        .add("not listed: ", "muted")
        .add(clean(f"{path.parent.name}/{path.name}"))
        for place, path in enumerate(state.marked, 1)
        if entries and path not in listed
    ]
    row = Line(width).add(" ")
    if state.message:
        row.add("» ", "key").add(state.message, "strong")
    elif entries and 0 <= state.cursor < len(entries):
        row.add(clean(entries[state.cursor].path), "faint")
    return [*rows, row]
