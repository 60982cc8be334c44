"""The head of the home screen: the machine, its alerts, and its devices now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method
from gpuwatch.core.text import clean
from gpuwatch.core.units import UNKNOWN, memory_usage, number, percent, si
from gpuwatch.tui.feed.processes import ProcessNow
from gpuwatch.tui.feed.snapshot import DeviceNow, Panel, Reading, Snapshot
from gpuwatch.tui.widgets.cells import fit, pad, wrap
from gpuwatch.tui.widgets.device_rows import more_values, power_text
from gpuwatch.tui.widgets.gauge_rows import axis_row, gauge_rows
from gpuwatch.tui.widgets.graph import area
from gpuwatch.tui.widgets.grid_rows import history_columns as panel_history_columns
from gpuwatch.tui.widgets.grid_rows import panel_rows
from gpuwatch.tui.widgets.line import Line

_MOST_ALERTS = 3
_LEAST_BAR = 5
_TALL_GRAPH = 8
_HISTORY_FROM = 100
"""Columns from which on every GPU has a history."""
_OWNER_FROM = 110
"""Columns from which on every GPU names its user and program."""
_BANDWIDTH_FROM = 100
_ID, _USE, _MEMORY, _BANDWIDTH, _POWER, _TEMPERATURE = 5, 7, 15, 12, 12, 7
"""Columns of each field of a GPU's row."""


def head_row(snapshot: Snapshot, running: int, here: str, width: int) -> Line:
    """The machine in one row: its GPUs, CPU and host memory, what runs, then what fits of ``here``
    (who, where and when) and the rest."""
    row = Line(width).add(" gpuwatch ", "brand")
    lost = {alert.device for alert in snapshot.alerts if alert.kind == "lost"}
    names = Counter(clean(gpu.row.name) for gpu in snapshot.gpus if gpu.row.id not in lost)
    text = "  ".join(f"{many} × {name}" if many > 1 else name for name, many in names.items())
    right = f"▶ {running} running " if running else ""
    cpu = snapshot.cpu
    if cpu is not None:
        # A lost GPU may have no name, and must not go where names are cut.
        host = (f"{len(lost)} lost  " if lost else "") + _host(cpu)
        text = f"{fit(text, row.left - len(host) - len(right) - 4)}  {host}" if text else host
    here = f" {here} " if len(text) + len(here) + len(right) + 6 <= row.left else ""
    end = len(right) + len(here)
    for more in (*(_rest_of_host(cpu) if cpu is not None else ()), _driver(snapshot)):
        if more and len(text) + len(more) + end + 4 <= row.left:
            text += f"  {more}"
    row.add(text, "strong")
    return row.to(width - end).add(right, "good").add(here, "muted") if end < row.left else row


def _host(cpu: DeviceNow) -> str:
    memory = cpu.memory
    return f"CPU {percent(cpu.value('hw.cpu.utilization'))}  RAM {memory}"


def _rest_of_host(cpu: DeviceNow) -> Sequence[str]:
    load, swap = cpu.value("system.cpu.load_average.1m"), cpu.value("system.paging.usage")
    total = cpu.attribute("swap.total")
    return (
        f"load {load:.2f}" if load is not None else "",
        f"swap {memory_usage(swap, total)}" if swap is not None else "",
    )


def _driver(snapshot: Snapshot) -> str:
    """``driver 575.57.08, CUDA 12.9``; empty where no GPU tells it."""
    given = snapshot.gpus[0].row.attributes if snapshot.gpus else {}
    parts = (("driver", given.get("driver.version")), ("CUDA", given.get("cuda.driver.version")))
    return ", ".join(f"{name} {clean(str(value))}" for name, value in parts if value)


def alert_rows(
    alerts: Sequence[str], width: int, most: int = _MOST_ALERTS, rest: str = "press i"
) -> list[Line]:
    """The gravest alerts, one row each; the last says how many more there are, and ``rest`` where
    they stand."""
    shown = alerts if len(alerts) <= most else alerts[: max(1, most - 1)]
    hidden = len(alerts) - len(shown)
    more = f"{hidden} more warning{'s' * (hidden > 1)}, {rest}"
    beside = f"  {more} " if len(alerts) > len(shown) and len(shown) == most else ""
    rows = [
        Line(width).add(" ! ", "warn").add(fit(clean(each), width - 4 - len(beside)))
        for each in shown
    ]
    if beside:
        rows[-1].end(beside, "warn")
    elif len(alerts) > len(shown):
        rows.append(Line(width).add(f" ! {more}", "warn"))
    return rows


def device_rows(snapshot: Snapshot, width: int, height: int) -> list[Line]:
    """The devices in at most ``height`` rows: a row for each GPU, or graphs of a single one."""
    gpus = snapshot.gpus
    if len(gpus) > 1:
        return _table(snapshot, width, height)
    if gpus:
        return _graphs(snapshot, gpus[0], width, height)
    reason = f"no GPU: workloads run on the CPU ({clean(snapshot.no_gpu or 'none was found')})"
    rows = [Line(width).add(f" {part}", "muted") for part in wrap(reason, width - 2, 2)]
    cpu = snapshot.cpu
    return [*rows, _cpu(cpu, width)] if cpu is not None else rows


def grid_rows(snapshot: Snapshot, width: int, height: int) -> list[Line]:
    """All GPUs as panels with a history each."""
    return panel_rows(snapshot.panels, None, width, height, mark_used=False)


def panel_columns(gpus: int, width: int, height: int) -> int:
    """Columns of the history of each panel of :func:`grid_rows`."""
    return panel_history_columns(gpus, width, height)


def history_columns(gpus: int, width: int) -> int:
    """Columns of each history in the rows of so many GPUs; 0 where they have none."""
    return gpu_layout(width, bandwidth=True).history if gpus > 1 else 0


# Several GPUs: a row each.


@dataclass(frozen=True)
class GpuLayout:
    """Columns of the fields that change with the width."""

    bar: int
    history: int
    memory_bar: int
    bandwidth: int
    owner: int


def gpu_layout(width: int, *, bandwidth: bool, history: bool = True) -> GpuLayout:
    """How wide each field of a GPU's row is."""
    shown = _BANDWIDTH if bandwidth and width >= _BANDWIDTH_FROM else 0
    owner = min(40, width // 5) if width >= _OWNER_FROM else 0
    room = width - _ID - _USE - _MEMORY - shown - _POWER - _TEMPERATURE - owner - 1
    if width < _HISTORY_FROM or not history:
        return GpuLayout(max(_LEAST_BAR, room // 2), 0, max(0, room - room // 2 - 2), shown, owner)
    third = room // 3
    return GpuLayout(third - 2, room - 2 * third - 2, third - 2, shown, owner)


def _table(snapshot: Snapshot, width: int, height: int) -> list[Line]:
    panels = {panel.device.row.id: panel for panel in snapshot.panels}
    known = any(panel.bandwidth.value is not None for panel in snapshot.panels)
    layout = gpu_layout(width, bandwidth=known)
    gpus = snapshot.gpus
    room = max(1, height - 1)
    shown = gpus if len(gpus) <= room else gpus[: room - 1]
    rows = [gpu_heading(layout, width)] if height > 1 else []
    rows += [
        gpu_row(gpu, panels.get(gpu.row.id), snapshot.processes, layout, width) for gpu in shown
    ]
    if len(shown) < len(gpus):
        more = Line(width).add(f"    {len(gpus) - len(shown)} more GPUs, ", "muted")
        rows.append(more.add("g", "key", press="g").add(" shows all", "muted"))
    return rows


def gpu_heading(layout: GpuLayout, width: int) -> Line:
    row = Line(width).add(pad(" GPU", _ID), "muted")
    row.to(_ID).add(fit("utilization", layout.bar + _USE), "muted")
    column = _ID + layout.bar + _USE + 2
    if layout.history:
        row.to(column).add("last minute", "muted")
        column += layout.history + 2
    row.to(column).add("memory", "muted")
    column += layout.memory_bar + _MEMORY
    if layout.bandwidth:
        row.to(column).add(pad("bandwidth", layout.bandwidth, ">"), "muted")
    column += layout.bandwidth
    row.to(column).add(pad("power", _POWER, ">") + pad("temp", _TEMPERATURE, ">"), "muted")
    if layout.owner:
        row.add("  user, program", "muted")
    return row


def gpu_row(
    gpu: DeviceNow,
    panel: Panel | None,
    processes: Sequence[ProcessNow],
    layout: GpuLayout,
    width: int,
) -> Line:
    use = gpu.value("hw.gpu.utilization")
    row = Line(width).add("!" if panel and panel.problem else " ", "warn")
    row.add(f"{gpu.number:>2}  ", "strong")
    row.bar(use, layout.bar, "utilization").add(f"{percent(use):>{_USE}}  ", "strong")
    if layout.history:
        history = panel.history[-layout.history :] if panel is not None else ()
        row.add(" " * (layout.history - len(history)))
        for text, _ in area(history, 1.0, 1)[0] if history else ():
            row.add(text, "utilization")
        row.add("  ")
    row.bar(gpu.memory_share, layout.memory_bar, "progress")
    row.add(f"{gpu.memory:>{_MEMORY}}", "strong")
    if layout.bandwidth:
        text = _bandwidth(panel.bandwidth) if panel is not None else UNKNOWN
        row.add(pad(text, layout.bandwidth, ">"), "muted" if text == UNKNOWN else "text")
    row.add(pad(power_text(gpu), _POWER, ">"))
    row.add(pad(number(gpu.value("hw.gpu.temperature"), "°C"), _TEMPERATURE, ">"))
    if layout.owner:
        row.add(f"  {fit(_owner(gpu, processes), layout.owner - 2)}")
    return row


def _bandwidth(reading: Reading) -> str:
    if reading.value is None:
        return UNKNOWN
    return ("≤" if reading.method is Method.BOUND else "") + si(reading.value, "B/s")


def _owner(gpu: DeviceNow, processes: Sequence[ProcessNow]) -> str:
    """User and program of the process with the most memory on the GPU, and how many others."""
    on = [
        process
        for process in processes
        if process.running and any(use.device == gpu.row.id for use in process.gpus)
    ]
    if not on:
        return ""
    first = on[0]
    text = " ".join(clean(part) for part in (first.user, first.name) if part) or f"PID {first.pid}"
    return f"+{len(on) - 1} {text}" if len(on) > 1 else text


# One GPU: large graphs.


def _graphs(snapshot: Snapshot, gpu: DeviceNow, width: int, height: int) -> list[Line]:
    """Its numbers, then graphs of utilization and memory bandwidth."""
    rows = _figures(gpu, width, 2 if height >= 2 * _TALL_GRAPH else 1)
    gauges = [gauge for gauge in snapshot.gauges if gauge.key in ("utilization", "bandwidth")]
    known = [gauge for gauge in gauges if gauge.reading.method is not Method.UNAVAILABLE]
    room = height - len(rows)
    if known and room >= 2:
        each = min(_TALL_GRAPH, max(1, (room - 1) // len(known)))
        for gauge in known:
            rows += gauge_rows(gauge, each, width)
        if len(rows) < height:
            rows.append(axis_row(snapshot.window, width))
    for gauge in gauges:
        if gauge not in known and len(rows) < height:
            why = clean(gauge.reading.reason or "not recorded")
            text = f" {gauge.title.lower()} unavailable: {why}"
            rows.append(Line(width).add(fit(text, width - 1), "muted"))
    return rows[:height]


def _figures(gpu: DeviceNow, width: int, rows: int) -> list[Line]:
    """The GPU's numbers in at most ``rows`` rows."""
    lines = [Line(width).add(f" GPU {gpu.number}  ", "strong")]
    texts = [
        f"utilization {percent(gpu.value('hw.gpu.utilization'))}",
        f"memory {gpu.memory}",
        f"power {power_text(gpu)}",
        number(gpu.value("hw.gpu.temperature"), "°C"),
        *(f"{name} {text}" for name, text in more_values(gpu)),
    ]
    for text in texts:
        if len(text) + 3 > lines[-1].left:
            if len(lines) == rows:
                break
            lines.append(Line(width).to(8))
        lines[-1].add(f"{text}   ")
    return lines


def _cpu(cpu: DeviceNow, width: int) -> Line:
    row = Line(width).add(f" {fit(cpu.title, width // 2)}  ", "strong")
    use = cpu.value("hw.cpu.utilization")
    row.bar(use, max(_LEAST_BAR, min(40, row.left - 24)), "bandwidth")
    row.add(f" {percent(use):>6}", "strong")
    clock = cpu.value("hw.cpu.frequency")
    return row.add(f"  {si(clock, 'Hz')}") if clock is not None else row
