"""The devices now at the head of the home screen, and who is on the GPUs."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.core.text import clean
from gpuwatch.core.units import memory_usage, number, percent, si
from gpuwatch.tui.feed.hardware.device_facts import memory_total, name_of, number_of
from gpuwatch.tui.feed.snapshot import DeviceNow, Snapshot
from gpuwatch.tui.live.device_rows import columns_for
from gpuwatch.tui.live.rows import rule
from gpuwatch.tui.processes.rows import process_rows
from gpuwatch.tui.widgets.cells import pad
from gpuwatch.tui.widgets.graph import bar
from gpuwatch.tui.widgets.line import Line

_MOST_PROCESSES = 6
_LEAST_BAR = 5
_TALL = 18
"""Rows of the screen from which on the memory of a GPU that is alone has a row of its own."""
_BESIDE = 140
"""Columns from which on GPUs stand beside each other, however many rows there are."""


def device_rows(snapshot: Snapshot, width: int, height: int) -> list[Line]:
    """GPUs and CPU as they are now, in a share of a screen of ``height`` rows."""
    gpus = snapshot.gpus
    rows: list[Line] = []
    if len(gpus) > 1:
        rows.append(Line(width).add(f" {_names(gpus)}", "strong"))
        rows += _grid(gpus, width, max(3, min(16, height - 14)))
    elif gpus:
        rows += _one(gpus[0], width, tall=height >= _TALL)
    else:
        rows.append(
            Line(width)
            .add(" no GPU", "warn")
            .add(": workloads run on the CPU", "text")
            .add(f" ({clean(snapshot.no_gpu)})" if snapshot.no_gpu else "", "muted")
        )
    cpu = next((device for device in snapshot.devices if device.row.kind == "cpu"), None)
    return rows + _cpu(cpu, width) if cpu is not None else rows


def on_gpu_rows(snapshot: Snapshot, width: int, space: int) -> list[Line]:
    """The processes on the GPUs under a heading, the biggest first; empty without a GPU, and where
    ``space`` has no room for one."""
    if not snapshot.gpus or space < 2:
        return []
    on = [process for process in snapshot.processes if process.gpus and process.running]
    if not on:
        return [rule("no process on the GPUs", width)]
    rows = process_rows(on, width, min(_MOST_PROCESSES, space - 2))
    return [rule("on the GPUs", width), *rows] if rows else []


def _names(gpus: Sequence[DeviceNow]) -> str:
    names = [clean(gpu.row.name) for gpu in gpus]
    return "   ".join(f"{names.count(name)} × {name}" for name in dict.fromkeys(names))


def _grid(gpus: Sequence[DeviceNow], width: int, most: int) -> list[Line]:
    """A cell for each GPU; where not all fit, how many more there are."""
    beside = 1 if len(gpus) <= most and width < _BESIDE else columns_for(width)
    rows = -(-len(gpus) // beside)
    shown = rows if rows <= most else most - 1
    lines = []
    for y in range(shown):
        line = Line(width)
        for x in range(beside):
            if x * rows + y < len(gpus):
                cell = _cell(gpus[x * rows + y], width // beside - 1)
                line.to(x * (width // beside)).join(cell)
        lines.append(line)
    if shown < rows:
        hidden = len(gpus) - sum(
            x * rows + y < len(gpus) for y in range(shown) for x in range(beside)
        )
        lines.append(Line(width).add(f"    {hidden} more GPUs", "muted"))
    return lines


def _cell(gpu: DeviceNow, width: int) -> Line:
    """One GPU: the bars of its utilization and its memory, power and temperature."""
    use = gpu.value("hw.gpu.utilization")
    used, total = gpu.value("hw.gpu.memory.usage"), memory_total(gpu)
    share = used / total if used is not None and total else None
    tail = (
        f"  {number(gpu.value('hw.gpu.power'), 'W'):>5}"
        f"  {number(gpu.value('hw.gpu.temperature'), '°C'):>5}"
    )
    told, memory = f" {percent(use):>6}", f" {memory_usage(used, total):>13}"
    line = Line(width).add(f" {number_of(gpu):>2}  ", "strong")
    room = line.left - len(told) - len(memory) - len(tail)
    if room < 2 * _LEAST_BAR + 2:
        filled, empty = bar(use, max(0, room))
        return line.add(filled, "utilization").add(empty, "faint").add(told + memory + tail)
    filled, empty = bar(use, (room - 2) // 2)
    line.add(filled, "utilization").add(empty, "faint").add(told, "strong").add("  ")
    filled, empty = bar(share, (room - 2) - (room - 2) // 2)
    line.add(filled, "bandwidth").add(empty, "faint").add(memory, "strong")
    return line.add(tail, "text")


def _bar_row(name: str, value: float | None, width: int, role: str) -> Line:
    row = Line(width).add(f" {pad(name, 12)}", "muted")
    filled, empty = bar(value, min(40, width // 3))
    return row.add(filled, role).add(empty, "faint").add(f" {percent(value):>6}  ", "strong")


def _one(gpu: DeviceNow, width: int, *, tall: bool) -> list[Line]:
    use = _bar_row("utilization", gpu.value("hw.gpu.utilization"), width, "utilization")
    used, total = gpu.value("hw.gpu.memory.usage"), memory_total(gpu)
    beside = (
        number(gpu.value("hw.gpu.power"), "W"),
        number(gpu.value("hw.gpu.temperature"), "°C"),
    )
    for text in beside if tall else (memory_usage(used, total), *beside):
        use.add(f"  {text}", "text")
    rows = [Line(width).add(f" {name_of(gpu)}", "strong"), use]
    if tall:
        share = used / total if used is not None and total else None
        row = _bar_row("memory", share, width, "bandwidth")
        rows.append(row.add(f"  {memory_usage(used, total)}", "text"))
    return rows


def _cpu(cpu: DeviceNow, width: int) -> list[Line]:
    row = _bar_row("utilization", cpu.value("hw.cpu.utilization"), width, "bandwidth")
    row.add(f"  {memory_usage(cpu.value('hw.memory.usage'), memory_total(cpu))}", "text")
    clock = cpu.value("hw.cpu.frequency")
    if clock is not None:
        row.add(f"  {si(clock, 'Hz')}", "text")
    return [Line(width).add(f" {name_of(cpu)}", "strong"), row]
