"""The devices as rows of text: a line per GPU, and the details of the selected device."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gpuwatch.core.metrics import Method
from gpuwatch.core.units import UNKNOWN, number, percent, quantity, si
from gpuwatch.tui.feed.snapshot import DeviceNow, Snapshot
from gpuwatch.tui.widgets.line import Line

_SIX_COLUMNS = 144
"""Least columns of the screen for six numbers in a row."""
_TWO_GPUS = 116
"""Least columns of the screen for two GPUs in a row."""
_MIN_TWO_GPUS = 60
"""The same if there are too few rows for one GPU each."""
_MIN_BAR = 4
"""Columns of the shortest bar."""
_SHORT = 72
"""Columns below which names are shortened."""
_SHORT_CELL = 31
"""Columns of a GPU's cell below which the unit of its memory is one letter."""


def columns_for(width: int) -> int:
    """Number of GPUs in a row."""
    return 2 if width >= _TWO_GPUS else 1


def grid_rows(
    gpus: Sequence[DeviceNow],
    selected: str | None,
    width: int,
    max_rows: int,
    *,
    mark_used: bool,
    key: str = "g",
) -> list[Line]:
    """A compact cell per GPU, in at most ``max_rows`` rows around the selected one.

    If not all fit with two GPUs in a row, the last of several rows tells how many are hidden, and
    the ``key`` that shows them. ``mark_used``: mark the GPUs of the run.
    """
    per_row = columns_for(width)
    if len(gpus) > per_row * max_rows and width >= _MIN_TWO_GPUS:
        per_row = 2
    rows = -(-len(gpus) // per_row)
    index = next((i for i, gpu in enumerate(gpus) if gpu.row.id == selected), 0)
    cut = max_rows < rows
    visible_rows = max(1, min(rows, max_rows - cut))
    first = max(0, min(index % rows - visible_rows // 2, rows - visible_rows))
    lines = []
    for row in range(first, first + visible_rows):
        line = Line(width)
        for gpu, column in zip(gpus[row::rows], range(per_row), strict=False):
            cell = gpu_cell(gpu, gpu.row.id == selected, width // per_row - 2, mark_used)
            line.to(column * (width // per_row)).join(cell)
        lines.append(line)
    if cut and max_rows > 1:
        hidden = len(gpus) - sum(len(gpus[row::rows]) for row in range(first, first + visible_rows))
        more = Line(width).add(f"  … {hidden} more, ", "muted").add(key, "key", press=key)
        lines.append(more.add(" shows all", "muted"))
    return lines


def gpu_cell(gpu: DeviceNow, selected: bool, width: int, mark_used: bool) -> Line:
    """One GPU in a row: utilization as a bar, and what fits of memory, power and temperature."""
    utilization = gpu.value("hw.gpu.utilization")
    memory = f"{gpu.peak + gpu.memory:>14}"
    if width < _SHORT_CELL:
        memory = memory.strip().replace(" GiB", "G").rjust(10)
    watts = number(gpu.value("hw.gpu.power"), "W")
    degrees = number(gpu.value("hw.gpu.temperature"), "°C")
    line = Line(width)
    line.add("▸" if selected else " ", "key").add(f"{gpu.number:>2}", "strong")
    line.add((" run " if gpu.row.used else "  ·  ") if mark_used else "  ", "muted")
    parts = [f"{percent(utilization):>6}", f"  {memory}", f"  {watts:>6}", f"  {degrees:>6}"]
    while len(parts) > 1 and len("".join(parts)) + _MIN_BAR > line.left:
        parts.pop()
    tail = "".join(parts)
    line.bar(utilization, max(_MIN_BAR, line.left - len(tail)), "utilization")
    return line.add(tail, "strong" if selected else "text")


class Fields:
    """Named numbers in columns of equal width; a long number shifts the next one, a row that is
    too long is not aligned, and has no number in part."""

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
            lines.append(self._row(fields, step))
            while lines[-1].used > self._width and fields:
                lines[-1] = self._row(fields, 0)
                fields = fields[:-1]
        return [Line(self._width).join(line) for line in lines]

    def _row(self, fields: Sequence[tuple[str, str]], step: int) -> Line:
        line = Line(2 * self._width)
        for index, (name, value) in enumerate(fields):
            line.to(max(1 + index * step, line.used + 2 * (index > 0)))
            line.add(f"{name} ", "muted")
            line.add(value, "muted" if value.startswith(UNKNOWN) else "strong")
        return line


def detail_rows(device: DeviceNow, width: int, process: DeviceNow | None) -> list[Line]:
    """Memory, power, temperature (and fans), clocks and PCIe of a device, in one or two rows; of
    a CPU also what the workload's ``process`` uses."""
    if device.row.kind == "cpu":
        fields = Fields(width, 6 if width >= 120 else 3).add(f"{device.peak}memory", device.memory)
        if process is not None:
            _of_process(fields, process, memory=True)
        for name, metric, unit in (("clock", "frequency", "Hz"), ("power", "power", "W")):
            reading = device.get(f"hw.cpu.{metric}")
            if reading.method is not Method.UNAVAILABLE:
                fields.add(name, si(reading.value, unit))
        return fields.rows()[: 1 if width < 120 else 2]
    fields = Fields(width, 6 if width >= _SIX_COLUMNS else 3)
    short = width < _SHORT
    temperature = number(device.value("hw.gpu.temperature"), "°C")
    fan = device.value("hw.gpu.fan.speed_ratio")
    if fan is not None:
        temperature += f" fan {percent(fan)}"
    fields.add(f"{device.peak}memory", device.memory).add("power", power_text(device))
    fields.add("temp" if short else "temperature", temperature)
    fields.add("SM" if short else "SM clock", si(device.value("hw.gpu.clock.sm"), "Hz"))
    fields.add("mem" if short else "memory clock", si(device.value("hw.gpu.clock.memory"), "Hz"))
    return fields.add("PCIe", _both_ways(device, "pcie") or UNKNOWN).rows()


def _both_ways(device: DeviceNow, link: str) -> str:
    """``↑1.1 GB/s ↓3.4 GB/s``; empty: neither is known."""
    sent, received = (device.value(f"hw.gpu.{link}.{way}") for way in ("transmit", "receive"))
    if (sent, received) == (None, None):
        return ""
    return f"↑{si(sent, 'B/s')} ↓{si(received, 'B/s')}"


_ACTIVITIES = (
    ("SM", "SM", "hw.gpu.sm.activity"),
    ("occupancy", "occ.", "hw.gpu.sm.occupancy"),
    ("tensor", "tensor", "hw.gpu.tensor.activity"),
    ("FP64", "FP64", "hw.gpu.fp64.activity"),
    ("FP32", "FP32", "hw.gpu.fp32.activity"),
    ("FP16", "FP16", "hw.gpu.fp16.activity"),
    ("DRAM", "DRAM", "hw.gpu.dram.activity"),
)
"""Name, short name and metric of the activities from GPM or DCGM."""


def activity_row(device: DeviceNow, width: int) -> Line | None:
    """Activities of the GPU's units, and NVLink; ``None``: no counters are available."""
    known = [
        (long if width >= 100 else short, device.value(metric))
        for long, short, metric in _ACTIVITIES
        if device.get(metric).method is not Method.UNAVAILABLE
    ]
    if not known:
        return None
    row = Line(width).add(" ")
    for name, value in known:
        shown = percent(value, whole=width < _SIX_COLUMNS)
        if len(name) + len(shown) + 2 > row.left:
            break
        row.add(f"{name} ", "muted").add(shown, "muted" if value is None else "strong").add("  ")
    nvlink = _both_ways(device, "nvlink")
    if nvlink and len(nvlink) + 7 <= row.left:
        row.add("NVLink ", "muted").add(nvlink, "strong")
    return row


def host_row(snapshot: Snapshot, width: int) -> Line | None:
    """CPU and memory of the host and of the workload."""
    fields = Fields(width, 6 if width >= 120 else 3)
    if (cpu := snapshot.cpu) is not None:
        fields.add("host CPU", percent(cpu.value("hw.cpu.utilization")))
        fields.add(f"{cpu.peak}host memory", cpu.memory)
    if snapshot.process is not None:
        _of_process(fields, snapshot.process, memory=width >= 120)
    rows = fields.rows()
    return rows[0] if rows else None


def _of_process(fields: Fields, process: DeviceNow, *, memory: bool) -> None:
    """Add the workload's CPU, and its ``memory`` and what it reads and writes."""
    fields.add("process", quantity(process.value("process.cpu.time"), "s/s"))
    if memory:
        fields.add(f"{process.peak}resident", process.memory)
        for way in ("read", "write"):
            reading = process.get(f"process.io.{way}")
            if reading.method is not Method.UNAVAILABLE:
                fields.add(f"{way}s", si(reading.value, "B/s"))


def power_text(gpu: DeviceNow) -> str:
    """``531/700 W``: board power, and its limit where that is known."""
    limit, power = gpu.attribute("power.limit"), gpu.value("hw.gpu.power")
    return number(power, "W") if limit is None or power is None else f"{power:.0f}/{limit:.0f} W"


_MORE: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("memory busy", "hw.gpu.memory.busy", percent),
    ("SM clock", "hw.gpu.clock.sm", lambda hertz: si(hertz, "Hz")),
    ("memory clock", "hw.gpu.clock.memory", lambda hertz: si(hertz, "Hz")),
    ("fan", "hw.gpu.fan.speed_ratio", percent),
    ("PCIe ↑", "hw.gpu.pcie.transmit", lambda rate: si(rate, "B/s")),
    ("PCIe ↓", "hw.gpu.pcie.receive", lambda rate: si(rate, "B/s")),
    ("encoder", "hw.gpu.encoder.utilization", percent),
    ("decoder", "hw.gpu.decoder.utilization", percent),
)
"""Name, metric and form of what stands behind the main values where there is room."""


def more_values(gpu: DeviceNow) -> list[tuple[str, str]]:
    """Names and values of what else the GPU tells; what it does not is left out."""
    return [
        (name, form(value))
        for name, metric, form in _MORE
        # Encoder and decoder are mostly idle.
        if (value := gpu.value(metric)) or (value is not None and not name.endswith("coder"))
    ]
