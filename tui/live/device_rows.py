"""The devices as rows of text: one line for each GPU, and the details of the selected one."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.core.metrics import Method
from gpuwatch.core.units import UNKNOWN, digits, memory_usage, number, percent, si
from gpuwatch.tui.feed.hardware.device_facts import attribute, memory_total, number_of
from gpuwatch.tui.feed.snapshot import DeviceNow
from gpuwatch.tui.widgets.graph import bar
from gpuwatch.tui.widgets.line import Line

_ONE_ROW = 144
"""From this width on a GPU's six numbers fit in a row, at their longest."""
_BESIDE = 116
"""Columns from which on two GPUs stand beside each other."""
_PAIR = 60
"""The same where they would not fit below each other."""
_BAR = 4
"""Columns of the shortest bar."""
_SHORT = 72
"""Columns below which names are shortened."""
_POWER_LIMIT = "power.limit"


def columns_for(width: int) -> int:
    """GPUs beside each other."""
    return 2 if width >= _BESIDE else 1


def grid_rows(
    gpus: Sequence[DeviceNow], selected: str | None, width: int, most: int, *, mark_used: bool
) -> list[Line]:
    """One compact cell for each GPU, in at most ``most`` rows around the selected one: where they
    would not fit two beside each other, and where those do not either the last row says so.

    ``mark_used``: say which of them the run uses.
    """
    beside = columns_for(width)
    if most == 1 and len(gpus) > beside:
        return [_only(gpus, selected, width, mark_used)]
    if len(gpus) > beside * most and width >= _PAIR:
        beside = 2
    rows = -(-len(gpus) // beside)
    place = next((i for i, gpu in enumerate(gpus) if gpu.row.id == selected), 0)
    cut = most < rows
    seen = min(rows, most - cut)
    first = max(0, min(place % rows - seen // 2, rows - seen))
    lines = []
    for row in range(first, first + seen):
        line = Line(width)
        for gpu, column in zip(gpus[row::rows], range(beside), strict=False):
            cell = _cell(gpu, gpu.row.id == selected, width // beside - 2, mark_used)
            line.to(column * (width // beside)).join(cell)
        lines.append(line)
    if cut:
        hidden = len(gpus) - sum(len(gpus[row::rows]) for row in range(first, first + seen))
        more = Line(width).add(f"  … {hidden} more, ", "muted").add("g", "key", press="g")
        lines.append(more.add(" shows all", "muted"))
    return lines


def _only(gpus: Sequence[DeviceNow], selected: str | None, width: int, mark_used: bool) -> Line:
    """The selected one, and how many there are beside it."""
    gpu = next((each for each in gpus if each.row.id == selected), gpus[0])
    more = f"  … {len(gpus) - 1} more"
    line = Line(width).join(_cell(gpu, True, width - len(more) - 1, mark_used))
    return line.add(more, "muted")


def _cell(gpu: DeviceNow, selected: bool, width: int, mark_used: bool) -> Line:
    use = gpu.value("hw.gpu.utilization")
    memory = memory_usage(gpu.value("hw.gpu.memory.usage"), memory_total(gpu))
    watts = number(gpu.value("hw.gpu.power"), "W")
    degrees = number(gpu.value("hw.gpu.temperature"), "°C")
    line = Line(width)
    line.add("▸" if selected else " ", "key").add(f"{number_of(gpu):>2}", "strong")
    line.add((" run " if gpu.row.used else "  ·  ") if mark_used else "  ", "muted")
    parts = [f"{percent(use):>6}", f"  {memory:>14}", f"  {watts:>6}", f"  {degrees:>6}"]
    while len(parts) > 1 and len("".join(parts)) + _BAR > line.left:
        parts.pop()
    tail = "".join(parts)
    filled, empty = bar(use, max(_BAR, line.left - len(tail)))
    return (
        line.add(filled, "utilization")
        .add(empty, "faint")
        .add(tail, "strong" if selected else "text")
    )


class Fields:
    """Named numbers side by side, in columns of equal width; a long one moves the next along, and
    a row that would not fit has them one behind the other."""

    def __init__(self, width: int, per_row: int) -> None:
        self._width = width
        self._per_row = per_row
        self._fields: list[tuple[str, str]] = []

    def add(self, name: str, value: str) -> Fields:
        self._fields.append((name, value))
        return self

    def rows(self) -> list[Line]:
        step = (self._width - 1) // self._per_row
        lines = []
        for first in range(0, len(self._fields), self._per_row):
            fields = self._fields[first : first + self._per_row]
            line = self._row(fields, step)
            lines.append(line if line.used <= self._width else self._row(fields, 0))
        return [Line(self._width).join(line) for line in lines]

    def _row(self, fields: Sequence[tuple[str, str]], step: int) -> Line:
        line = Line(2 * self._width)
        for index, (name, value) in enumerate(fields):
            line.to(max(1 + index * step, line.used + 2 * (index > 0)))
            line.add(f"{name} ", "muted")
            line.add(value, "muted" if value.startswith(UNKNOWN) else "strong")
        return line


def detail_rows(device: DeviceNow, width: int, *, last: bool = False) -> list[Line]:
    """Memory, power, temperature, clocks, PCIe of the selected device, in two rows or one.

    ``last``: they are the last ones of a run that is over, which is said.
    """
    fields = Fields(width, 6 if width >= _ONE_ROW else 3)
    memory = "last: memory" if last else "memory"
    if device.row.kind == "cpu":
        fields.add(memory, memory_usage(device.value("hw.memory.usage"), memory_total(device))).add(
            "clock", si(device.value("hw.cpu.frequency"), "Hz")
        ).add("power", number(device.value("hw.cpu.power"), "W"))
        return fields.rows()
    short = width < _SHORT
    limit = attribute(device, _POWER_LIMIT)
    power = number(device.value("hw.gpu.power"), "W")
    if limit is not None and device.value("hw.gpu.power") is not None:
        power = f"{device.value('hw.gpu.power'):.0f}/{limit:.0f} W"
    sent, received = (device.value(f"hw.gpu.pcie.{way}") for way in ("transmit", "receive"))
    return (
        fields.add(memory, memory_usage(device.value("hw.gpu.memory.usage"), memory_total(device)))
        .add("power", power)
        .add("temp" if short else "temperature", number(device.value("hw.gpu.temperature"), "°C"))
        .add("SM" if short else "SM clock", si(device.value("hw.gpu.clock.sm"), "Hz"))
        .add("mem" if short else "memory clock", si(device.value("hw.gpu.clock.memory"), "Hz"))
        .add(
            "PCIe",
            f"↑{si(sent, 'B/s')} ↓{si(received, 'B/s')}"
            if (sent, received) != (None, None)
            else UNKNOWN,
        )
        .rows()
    )


_PIPES = (
    ("SM", "SM", "hw.gpu.sm.activity"),
    ("occupancy", "occ.", "hw.gpu.sm.occupancy"),
    ("tensor", "tensor", "hw.gpu.tensor.activity"),
    ("FP64", "FP64", "hw.gpu.fp64.activity"),
    ("FP32", "FP32", "hw.gpu.fp32.activity"),
    ("FP16", "FP16", "hw.gpu.fp16.activity"),
    ("DRAM", "DRAM", "hw.gpu.dram.activity"),
)
"""Name, short name and metric of what GPM and DCGM tell of a GPU's parts."""


def pipe_row(device: DeviceNow, width: int) -> Line | None:
    """How busy the parts of the GPU are, and NVLink; ``None`` where no counter tells."""
    known = [
        (long if width >= 100 else short, device.value(metric))
        for long, short, metric in _PIPES
        if device.get(metric).method is not Method.UNAVAILABLE
    ]
    if not known:
        return None
    row = Line(width).add(" ")
    for name, value in known:
        shown = UNKNOWN if value is None else f"{value * 100:.0f} %"
        if len(name) + len(shown) + 2 > row.left:
            break
        row.add(f"{name} ", "muted").add(shown, "muted" if value is None else "strong").add("  ")
    sent, received = (device.value(f"hw.gpu.nvlink.{way}") for way in ("transmit", "receive"))
    if (sent, received) != (None, None):
        text = f"↑{si(sent, 'B/s')} ↓{si(received, 'B/s')}"
        if len(text) + 7 <= row.left:
            row.add("NVLink ", "muted").add(text, "strong")
    return row


def host_row(devices: Sequence[DeviceNow], width: int) -> Line | None:
    """The host's CPU and memory, and the workload's own share of them."""
    cpu = next((device for device in devices if device.row.kind == "cpu"), None)
    process = next((device for device in devices if device.row.kind == "workload"), None)
    fields = Fields(width, 6 if width >= 120 else 3)
    if cpu is not None:
        fields.add("host CPU", percent(cpu.value("hw.cpu.utilization")))
        fields.add("host memory", memory_usage(cpu.value("hw.memory.usage"), memory_total(cpu)))
    if process is not None:
        cores = process.value("process.cpu.time")
        fields.add("process", UNKNOWN if cores is None else f"{digits(cores)} cores")
        if width >= 120:
            memory = process.value("process.memory.usage")
            fields.add("resident", memory_usage(memory, None))
            read, written = (process.value(f"process.io.{way}") for way in ("read", "write"))
            fields.add("reads", si(read, "B/s")).add("writes", si(written, "B/s"))
    rows = fields.rows()
    return rows[0] if rows else None
