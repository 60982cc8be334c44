"""The head of the home screen: the machine, its alerts, and its devices now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import fmean

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method
from gpuwatch.core.text import clean
from gpuwatch.core.units import NS, UNKNOWN, bounded, duration, memory_usage, number, percent, si
from gpuwatch.tui.feed.processes import ProcessNow, owner_text
from gpuwatch.tui.feed.snapshot import MISSING, DeviceNow, Panel, Snapshot
from gpuwatch.tui.widgets.device_rows import grid_rows, more_values, power_text
from gpuwatch.tui.widgets.gauge_rows import axis_row, gauge_rows, longest_fitting
from gpuwatch.tui.widgets.line import Line, area, fit, pad, wrap

_LEAST_BAR = 5
_LEAST_NAME = 8
"""Columns of the GPUs' names for which who, where and when are left out of the head."""
_LEAST_GRAPH, _TALLEST_GRAPH = 4, 31
"""Rows of a graph for which a third one has a place, and most of any."""
_HISTORY_FROM = 100
"""Columns from which on every GPU has a history."""
_LEAST_HISTORY = 8
"""Columns of a history below that width, where a GPU has rows for it."""
_OWNER_FROM = 110
"""Columns from which on every GPU names its user and program."""
_LEAST_OWNER, _MOST_OWNER = 10, 20
"""Columns of these below that width, where they stand in the place of the memory's bar."""
_OWNERS = "user, program"
_BANDWIDTH_FROM = 80
_ID, _USE, _MEMORY, _BANDWIDTH, _POWER, _TEMPERATURE = 5, 8, 16, 12, 12, 8
"""Columns of each field of a GPU's row."""


def head_row(snapshot: Snapshot, running: int, here: str, width: int) -> Line:
    """The machine in one row: its GPUs, CPU and host memory (without a GPU the CPU's name; its
    values stand below), what runs, ``here`` (who, where and when), and what fits of the rest."""
    row = Line(width).add(" gpuwatch ", "brand")
    lost = {alert.device for alert in snapshot.alerts if alert.kind == "lost"}
    names = Counter(clean(gpu.row.name) for gpu in snapshot.gpus if gpu.row.id not in lost)
    text = "  ".join(f"{many} × {name}" if many > 1 else name for name, many in names.items())
    if snapshot.cpu and not snapshot.gpus:
        text = snapshot.cpu.title
    of_host = host_texts(snapshot.cpu) if snapshot.cpu and snapshot.gpus else []
    here = f" {here} "
    # A lost GPU may have no name, and must not go where names are cut.
    host = "  ".join([*([f"{len(lost)} lost"] if lost else []), *of_host[:2]])
    right, room = f"▶ {running} running " if running else "", row.left - len(host) - 4
    if len(text) > room - len(right) - len(here):
        text, right = text.replace("NVIDIA ", ""), right.replace("running ", "")
    if room - len(right) - len(here) < min(len(text), _LEAST_NAME):
        here = ""
    end = len(right) + len(here)
    text = "  ".join(filter(None, (fit(text, room - end), host)))
    for more in (*of_host[2:], _driver(snapshot)):
        if more and len(text) + len(more) + end + 4 <= row.left:
            text += f"  {more}"
    return row.add(text, "strong").to(width - end).add(right, "good").add(here, "muted")


def host_texts(cpu: DeviceNow) -> list[str]:
    """``CPU 12 %``, ``RAM 3.6/23.5 GiB``, and load and swap where they are known."""
    load, swap = cpu.value("system.cpu.load_average.1m"), cpu.value("system.paging.usage")
    texts = [f"CPU {percent(cpu.value('hw.cpu.utilization'))}", f"RAM {cpu.memory}"]
    texts += [f"load {load:.2f}"] if load is not None else []
    total = cpu.attribute("swap.total")
    return texts + ([f"swap {memory_usage(swap, total)}"] if swap is not None else [])


def _driver(snapshot: Snapshot) -> str:
    """``driver 575.57.08, CUDA 12.9``; empty where no GPU tells it."""
    given = snapshot.gpus[0].row.attributes if snapshot.gpus else {}
    parts = (("driver", given.get("driver.version")), ("CUDA", given.get("cuda.driver.version")))
    return ", ".join(f"{name} {clean(str(value))}" for name, value in parts if value)


def alert_rows(alerts: Sequence[str], width: int, most: int, rest: str = "press i") -> list[Line]:
    """The gravest alerts, one row each; the last says how many more there are, and ``rest`` where
    they stand."""
    hidden = len(alerts) - most
    more = f"  {hidden} more, {rest} " if hidden > 0 else ""
    rows = []
    for at, text in enumerate(alerts[:most], 1):
        room = width - 4 - (len(more) if at == most else 0)
        rows.append(Line(width).add(" ! ", "warn").add(fit(clean(text), room)))
    if more:
        rows[-1].end(more, "warn")
    return rows


def says_no_gpu(snapshot: Snapshot, text: str) -> bool:
    """Whether a warning is why there is no GPU, which stands in the place of one."""
    return bool(snapshot.no_gpu) and clean(snapshot.no_gpu) in text


def device_rows(snapshot: Snapshot, width: int, height: int) -> list[Line]:
    """The devices in at most ``height`` rows: some for each GPU, or graphs of a single one."""
    gpus = snapshot.gpus
    if len(gpus) > 1:
        return _table(snapshot, width, height)
    if gpus:
        figures = _figures(gpus[0], width, 2 if height >= 4 * _LEAST_GRAPH else 1)
    else:
        told = next((text for text in snapshot.warnings if says_no_gpu(snapshot, text)), None)
        reason = clean(told or snapshot.no_gpu or "none was found")
        reason = f"no GPU: runs use the CPU; {reason.removeprefix('no NVIDIA GPU is seen: ')}"
        lines = 2 if height > _LEAST_GRAPH else min(1, height - 1)  # the CPU's values matter more
        figures = [Line(width).add(f" {part}", "muted") for part in wrap(reason, width - 2, lines)]
        if (cpu := snapshot.cpu) is not None:
            figures += _cpu_figures(cpu, width)
    return [*figures, *_graphs(snapshot, width, height - len(figures))][:height]


def history_columns(gpus: int, width: int) -> int:
    """Columns of each history in the rows of so many GPUs; 0 where they have none."""
    return gpu_layout(width, bandwidth=True).history if gpus > 1 else 0


# Several GPUs: a row each, or more where there is room.


@dataclass(frozen=True)
class GpuLayout:
    """Columns of the fields that change with the width."""

    bar: int
    history: int
    memory_bar: int
    bandwidth: int
    owner: int

    @property
    def values_at(self) -> int:
        """Where the memory begins."""
        return _ID + self.bar + _USE + 2 + (self.history + 2 if self.history else 0)


def gpu_layout(width: int, *, bandwidth: bool, history: bool = True) -> GpuLayout:
    """How wide each field of a GPU's row is."""
    shown = _BANDWIDTH if bandwidth and width >= _BANDWIDTH_FROM else 0
    owner = min(40, width // 5) if width >= _OWNER_FROM else 0
    room = width - _ID - _USE - _MEMORY - shown - _POWER - _TEMPERATURE - owner - 1
    narrow = room - _LEAST_BAR - 4
    if not history or (width < _HISTORY_FROM and narrow < _LEAST_HISTORY):
        if not owner and narrow + 3 >= _LEAST_OWNER:
            owner = min(_MOST_OWNER, narrow + 3)
            return GpuLayout(room - owner, 0, 0, shown, owner)
        return GpuLayout(max(_LEAST_BAR, room // 2), 0, max(0, room - room // 2 - 2), shown, owner)
    if width < _HISTORY_FROM:
        return GpuLayout(_LEAST_BAR, narrow, 0, shown, owner)
    quarter = room // 4
    return GpuLayout(quarter - 2, room - 2 * quarter, quarter - 2, shown, owner)


def _table(snapshot: Snapshot, width: int, height: int) -> list[Line]:
    panels = {panel.device.row.id: panel for panel in snapshot.panels}
    readings = [panel.bandwidth for panel in snapshot.panels]  # a bound of an idle GPU is none
    known = any(e.value is not None or e.earlier_method is Method.BOUND for e in readings)
    gpus, headed, summed = snapshot.gpus, height > 1, height > 3
    room = max(1, height - headed - summed)
    each, spare = divmod(room, len(gpus))
    history = each > 1 or width >= _HISTORY_FROM
    layout = gpu_layout(width, bandwidth=known, history=history and each > 0)
    if not layout.history:
        each = spare = 0
    if len(gpus) > room:
        rows = grid_rows(gpus, None, width, room + headed, mark_used=False, key="i")
    else:
        seconds = round((snapshot.window.end - snapshot.window.start) / NS)
        order = "first" if snapshot.window.end > snapshot.t else "last"
        rows = [gpu_heading(layout, width, f"{order} {duration(seconds)}")] if headed else []
        for at, gpu in enumerate(gpus):
            panel, high = panels.get(gpu.row.id), min(_TALLEST_GRAPH, max(1, each + (at < spare)))
            rows += gpu_rows(gpu, panel, snapshot.processes, layout, width, high)
    return rows + ([_total(snapshot, layout, width)] if summed else [])


def gpu_heading(layout: GpuLayout, width: int, history: str = "") -> Line:
    """``history``: what the histories are of."""
    row = Line(width).add(pad(" GPU", _ID), "muted")
    row.to(_ID).add(fit("utilization", layout.bar + _USE), "muted")
    row.to(_ID + layout.bar + _USE + 2).add(fit(history, layout.history), "muted")
    row.to(layout.values_at).add("memory", "muted")
    column = layout.values_at + layout.memory_bar + _MEMORY
    if layout.bandwidth:
        row.to(column).add(pad("bandwidth", layout.bandwidth, ">"), "muted")
    column += layout.bandwidth
    row.to(column).add(pad("power", _POWER, ">") + pad("temp", _TEMPERATURE, ">"), "muted")
    if layout.owner:
        names = longest_fitting((_OWNERS, "user"), layout.owner - 2)
        row.add(f"  {names}", "muted")
    return row


def gpu_rows(
    gpu: DeviceNow,
    panel: Panel | None,
    processes: Sequence[ProcessNow],
    layout: GpuLayout,
    width: int,
    height: int = 1,
) -> list[Line]:
    """The GPU's row; in further ones its history goes on, with more values and processes."""
    use = gpu.value("hw.gpu.utilization")
    graph = _history(panel.history if panel is not None else (), layout, height)
    on = [each for each in processes if gpu.row.id in [use.device for use in each.gpus]]
    narrow = layout.owner - 2 < len(_OWNERS)  # there programs would be cut alike
    owners = [
        clean(each.user) if narrow and each.user else owner_text(each)
        for each in on
        if each.running
    ]
    if height == 1 and len(owners) > 1:
        owners = [f"+{len(owners) - 1} {owners[0]}"]
    values_end = width - layout.owner - 1
    values = [(name, text, "muted") for name, text in more_values(gpu)] if height > 1 else []
    more = _packed(values, Line(values_end - layout.values_at), height - 1)
    rows = []
    for at, drawn in enumerate(graph):
        row = Line(width)
        if not at:
            mark, role = use_level(use)
            row.add("!" if panel and panel.problem else " ", "warn")
            row.add(f"{gpu.number:>2}  ", "strong")
            row.bar(use, layout.bar, role)
            row.add(f"{_marked(mark, percent(use)):>{_USE}}", role)
        row.to(_ID + layout.bar + _USE + 2).join(drawn).to(layout.values_at)
        if not at:
            _now(row, gpu, panel, layout)
        elif at <= len(more):
            row.join(more[at - 1])
        if layout.owner and at < len(owners):
            row.to(values_end).add(f"  {fit(owners[at], layout.owner - 2)}")
        rows.append(row)
    return rows


def _history(values: Sequence[float | None], layout: GpuLayout, height: int) -> list[Line]:
    """Shares of time over time as a graph of so many rows; its right end is now."""
    rows = [Line(layout.history) for _ in range(height)]
    room = layout.history - (height > 1)
    shown = values[-room:] if layout.history else ()
    for row, text in zip(rows, area(shown, 1.0, height) if shown else (), strict=False):
        row.add("│" * (height > 1), "faint").add(" " * (room - len(shown)))
        row.add(text, "utilization")
    return rows


def _now(row: Line, gpu: DeviceNow, panel: Panel | None, layout: GpuLayout) -> None:
    """Add memory, bandwidth, power and temperature."""
    mark, role = memory_level(gpu.memory_share)
    row.bar(gpu.memory_share, layout.memory_bar, role)
    row.add(f"{_marked(mark, gpu.memory):>{_MEMORY}}", role)
    if layout.bandwidth:
        reading = panel.bandwidth if panel is not None else MISSING
        bound = reading.method is Method.BOUND and reading.value is not None
        text = bounded(si(reading.value, "B/s"), "at most" if bound else None)
        row.add(pad(text, layout.bandwidth, ">"), "muted" if text == UNKNOWN else "text")
    row.add(pad(power_text(gpu), _POWER, ">"))
    mark, role = temperature_level(gpu)
    celsius = number(gpu.value("hw.gpu.temperature"), "°C")
    row.add(pad(_marked(mark, celsius), _TEMPERATURE, ">"), role)


def _marked(mark: str, text: str) -> str:
    return f"{mark} {text}".strip()


def _packed(figures: Iterable[tuple[str, str, str]], first: Line, most: int) -> list[Line]:
    """Names, values and their roles, behind what stands in the ``first`` row, in at most so many
    rows."""
    lines, indent = [first], first.used
    for name, text, role in figures:
        name, gap = f"{name} " if name else "", "   " if lines[-1].used > indent else ""
        if len(gap) + len(name) + len(text) > lines[-1].left:
            if len(lines) >= most:
                break
            lines.append(Line(first.width).to(indent))
            gap = ""
        lines[-1].add(gap).add(name, "muted").add(text, role)
    return lines


def _total(snapshot: Snapshot, layout: GpuLayout, width: int) -> Line:
    """Of all GPUs that are not lost: how many are busy, their memory and power, and the mean
    utilization, now and over time."""
    lost = {alert.device for alert in snapshot.alerts if alert.kind == "lost"}
    gpus = [gpu for gpu in snapshot.gpus if gpu.row.id not in lost]
    uses = [use for gpu in gpus if (use := gpu.value("hw.gpu.utilization")) is not None]
    used, size, power, limit = (
        None if None in values else sum(value for value in values if value is not None)
        for values in (
            [gpu.memory_used for gpu in gpus],
            [gpu.memory_total for gpu in gpus],
            [gpu.value("hw.gpu.power") for gpu in gpus],
            [gpu.attribute("power.limit") for gpu in gpus],
        )
    )
    row = Line(width).add(pad(" all", _ID), "strong")
    memory_at = layout.values_at + layout.memory_bar
    memory = memory_usage(used, size)
    busy, mean = sum(use > 0 for use in uses), f", mean {percent(fmean(uses))}" if uses else ""
    texts = (f"{busy} of {len(uses)} busy{mean}", f"{busy}/{len(uses)} busy{mean}")
    left = memory_at + _MEMORY - len(memory) - 1 - row.used
    row.add(longest_fitting((*texts, texts[1].removesuffix(mean)), left), "strong")
    known = [panel.history for panel in snapshot.panels if panel.device.row.id not in lost]
    means = [
        fmean(some) if (some := [u for u in column if u is not None]) else None
        for column in zip(*known, strict=True)
    ]
    row.to(max(row.used + 1, _ID + layout.bar + _USE + 2))
    history = max(0, layout.values_at - 2 - row.used)
    row.join(*_history(means, replace(layout, history=history), 1))
    if row.used < layout.values_at:  # else there is no room for a bar
        share = used / size if used is not None and size else None
        row.to(layout.values_at).bar(share, layout.memory_bar, "progress")
    row.add(f"{memory:>{memory_at + _MEMORY - row.used}}", "strong").add(" " * layout.bandwidth)
    watts = number(power, "W")
    if power is not None and limit is not None:
        watts = f"{power:.0f}/{limit:.0f} W"
        if len(watts) >= _POWER:
            spec = ".1f" if power < 1e4 else ".0f"
            watts = f"{power / 1e3:{spec}}/{limit / 1e3:{spec}} kW"
    row.add(pad(watts, _POWER, ">"), "strong")
    rest = [gpu for gpu in gpus if gpu.value("hw.gpu.utilization") == 0]
    idle = ", ".join(gpu.number for gpu in rest if not gpu.held)
    held = ", ".join(gpu.number for gpu in rest if gpu.held)
    free = [f"idle {idle}"] if idle else []
    told = "; ".join([*free, f"held without work {held}"] if held else free)
    resting = told, told.replace(" without work", ""), *free
    text = longest_fitting(resting, row.left - 3)
    return row.add(f"  {text}" if text else "", "muted")


# One GPU or none: large graphs.


def _graphs(snapshot: Snapshot, width: int, height: int) -> list[Line]:
    """Graphs of utilization, memory bandwidth, and memory where there is room for it."""
    gauges = [each for each in snapshot.gauges if each.key in ("utilization", "bandwidth")]
    gauges = gauges if snapshot.gpus else gauges[:1]
    known = [each for each in gauges if each.reading.method is not Method.UNAVAILABLE]
    rows: list[Line] = []
    for gauge in gauges:
        if gauge not in known and height > 2:
            why = clean(gauge.reading.reason or "not recorded")
            text = f" {gauge.title.lower()} unavailable: {why}"
            rows.append(Line(width).add(fit(text, width - 1), "muted"))
    room = height - len(rows) - 1
    if snapshot.picked is not None and room >= _LEAST_GRAPH * (len(known) + 1):
        known.append(snapshot.picked)
    if not known or room < 1:
        return rows
    each, more = divmod(room, len(known))
    drawn: list[Line] = []
    for at, gauge in enumerate(known):
        if high := min(_TALLEST_GRAPH, each + (at < more)):
            drawn += gauge_rows(gauge, high, width)
    return [*drawn, axis_row(snapshot.window, width), *rows]


def _cpu_figures(cpu: DeviceNow, width: int) -> list[Line]:
    """The CPU's numbers, with their levels; each has the room of the longest one, so that no other
    moves to the next row."""
    use, load = cpu.value("hw.cpu.utilization"), cpu.value("system.cpu.load_average.1m")
    clock, cores = cpu.value("hw.cpu.frequency"), cpu.attribute("core.logical.count")
    figures = [("CPU", 7, percent(use), *use_level(use))]
    figures += [("memory", 15, cpu.memory, *memory_level(cpu.memory_share))]
    if load is not None:
        share = None if cores is None else load / cores
        figures += [("load", 8, f"{load:.2f}", *_level(share, *_LOAD_LEVELS))]
    if (swap := cpu.value("system.paging.usage")) is not None:
        size = memory_usage(swap, cpu.attribute("swap.total"))
        figures += [("swap", 13, size, "", "text")]
    if clock is not None:
        figures += [("clock", 8, si(clock, "Hz"), "", "text")]
    shown = [
        (name, f"{_marked(mark, text):<{columns}}", role)
        for name, columns, text, mark, role in figures
    ]
    return _packed(shown, Line(width).to(1), 2)


def _figures(gpu: DeviceNow, width: int, rows: int) -> list[Line]:
    """The GPU's numbers in at most ``rows`` rows."""
    use, celsius = gpu.value("hw.gpu.utilization"), gpu.value("hw.gpu.temperature")
    figures = [
        ("utilization", percent(use), *use_level(use)),
        ("memory", gpu.memory, *memory_level(gpu.memory_share)),
        ("power", power_text(gpu), " ", "text"),
        ("", number(celsius, "°C"), *temperature_level(gpu)),
    ]
    marked = [(name, _marked(mark, text), role) for name, text, mark, role in figures]
    marked += [(name, text, "text") for name, text in more_values(gpu)]
    return _packed(marked, Line(width).add(f" GPU {gpu.number}  ", "strong"), rows)


Sign = tuple[str, str]
"""A mark of one cell, and the role of its colour."""

_LEVELS: tuple[Sign, ...] = ((" ", "good"), ("•", "warn"), ("▲", "bad"))
_USES: tuple[Sign, ...] = ((" ", "muted"), ("•", "text"), ("▲", "good"))
"""Of use, where a high one is what people want."""
_NO_LEVEL: Sign = (" ", "strong")
_USE_LEVELS, _MEMORY_LEVELS = (0.10, 0.75), (0.50, 0.90)
_LOAD_LEVELS = 1.0, 2.0
"""From which shares on they are medium and high; of use as in nvitop, of load for each core."""


def use_level(share: float | None) -> Sign:
    """Of a share of time."""
    return _level(share, *_USE_LEVELS, signs=_USES)


def memory_level(share: float | None) -> Sign:
    """Of a share of the memory."""
    return _level(share, *_MEMORY_LEVELS)


def temperature_level(gpu: DeviceNow) -> Sign:
    """Medium above what the card is made for, high where it slows itself down; no level where the
    driver tells neither."""
    limits = (gpu.attribute(f"temperature.{name}") for name in ("operating.max", "slowdown"))
    return _level(gpu.value("hw.gpu.temperature"), *limits)


def _level(
    value: float | None,
    medium: float | None,
    high: float | None,
    *,
    signs: Sequence[Sign] = _LEVELS,
) -> Sign:
    if value is None or (medium is None and high is None):
        return _NO_LEVEL
    if high is not None and value >= high:
        return signs[2]
    return signs[medium is not None and value >= medium]
