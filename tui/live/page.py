"""The live screen as rows of text, of one GPU or a small panel for each: a pure function of the
snapshot and the screen's size."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.analysis.hardware.ceilings import UNKNOWN_GPUS
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method
from gpuwatch.core.text import clean
from gpuwatch.core.units import UNKNOWN, number, percent, si
from gpuwatch.tui.feed.snapshot import Panel, Snapshot
from gpuwatch.tui.live.rows import (
    Options,
    event_columns,
    event_rows,
    log_rows,
    parts_row,
    progress_row,
    strip_rows,
    workload_rows,
    zoom_text,
)
from gpuwatch.tui.widgets.device_rows import (
    activity_row,
    columns_for,
    detail_rows,
    gpu_cell,
    grid_rows,
    host_row,
    more_values,
    power_text,
)
from gpuwatch.tui.widgets.gauge_rows import axis_row, empty_rows, gauge_rows, is_empty, time_row
from gpuwatch.tui.widgets.head_rows import banner_rows, notable, position_row, slider, title_row
from gpuwatch.tui.widgets.line import Line, area, filled, fit, rule
from gpuwatch.tui.widgets.process_rows import process_rows

TALL = 30
"""Least rows of a screen with all parts."""
_PHASES_HEIGHT, _STUDY_HEIGHT = 22, 20
"""Least rows of a screen with phases, and with the runs of the study."""

_FIXED_ROWS = 2
"""Rows of the device's name and the time axis, at least."""
_MIN_ROWS = 8
"""Rows kept free for the gauges and the log."""
_DIGITS_HEIGHT = 7
"""Least rows of a gauge with large digits."""
_MOST_ROWS = 12
"""Most rows of a gauge of a run that goes on: higher ones send more at each change."""
_SMALL_ROWS = 3
"""Rows of the loss, which is drawn unasked where the gauges keep large digits."""
_FOLDED = ("bandwidth", "flops")
"""Gauges that are a text in one row while they have neither a value nor a history."""
_MIN_LOG = 6
"""Least rows of the log and the last event on a large screen."""
_MIN_PROCESSES, _MAX_PROCESSES = 3, 6


@dataclass(frozen=True)
class Page:
    """The rows of the screen, and the areas that can be clicked."""

    lines: list[Line]
    gpus: tuple[tuple[range, range, str], ...] = ()
    """Columns and rows of each GPU's panel, and its id."""
    timeline: range = range(0)
    """Rows of the histories, and of the time axis below them."""
    bar: int | None = None
    """Row of the session's bar; ``None``: not drawn."""


def page_of(snapshot: Snapshot, options: Options, width: int, height: int) -> Page:
    """The whole screen, without the row of keys."""
    if snapshot.view.grid and snapshot.panels:
        return _all_gpus(snapshot, options, width, height)
    return _one_gpu(snapshot, options, width, height)


def _head(
    snapshot: Snapshot, options: Options, width: int, height: int
) -> tuple[list[Line], int | None]:
    """Title, messages, position in the session and study; and the row of the session's bar."""
    top = [title_row(snapshot, width, paused=options.paused), *banner_rows(snapshot, width)]
    bar = None
    if snapshot.replay is not None or not snapshot.status.live:
        bar = len(top) if slider(snapshot, width) else None
        top.append(position_row(snapshot, width))
    if snapshot.study is not None and height >= _STUDY_HEIGHT:
        top += strip_rows(snapshot.study, width, 4 if height >= TALL else 1)
    return top, bar


def _one_gpu(snapshot: Snapshot, options: Options, width: int, height: int) -> Page:
    top, bar = _head(snapshot, options, width, height)
    if snapshot.machine_only:
        bottom = event_rows(snapshot, options, width, 2 if height >= TALL else 1)
    else:
        phases = 2 if height >= TALL else 1 if height >= _PHASES_HEIGHT else 0
        bottom = workload_rows(snapshot, width, phases)
    gpus = snapshot.gpus
    free = height - len(top) - len(bottom)
    device = snapshot.device(snapshot.selected)
    details = detail_rows(device, width, snapshot.process) if device else []
    if len(gpus) > 4 and height < TALL:
        details = details[1:]
    gpu_lines: list[Line] = []
    if len(gpus) > 1:
        rows = -(-len(gpus) // columns_for(width))
        if rows > free - len(details) - _FIXED_ROWS - _MIN_ROWS:
            details = []
        max_rows = max(1, min(rows, free - len(details) - _FIXED_ROWS - _MIN_ROWS))
        gpu_lines = grid_rows(
            gpus, snapshot.selected, width, max_rows, mark_used=_marks_used(snapshot)
        )
    activities = activity_row(device, width) if device and device.row.kind == "gpu" else None
    if activities is not None and free - len(gpu_lines) - len(details) - _FIXED_ROWS > _MIN_ROWS:
        details.append(activities)
    host = host_row(snapshot, width) if device and device.row.kind == "gpu" else None
    if host is not None and height >= TALL:
        details.append(host)
    picked = [] if snapshot.picked is None else [snapshot.picked]
    gauges = [*snapshot.gauges, *(picked if snapshot.view.metric else ())]
    empty = [each for each in gauges if each.key in _FOLDED and is_empty(each)]
    gauges = [each for each in gauges if each not in empty]
    small = [] if snapshot.view.metric else picked
    if empty:  # the loss has the room of what is not there
        gauges, small = [*gauges, *small], []
    marks = event_columns(notable(snapshot.events), snapshot.t, snapshot.window)
    axis = [axis_row(snapshot.window, width, marks)]
    if height >= _PHASES_HEIGHT:
        axis += parts_row(snapshot.parts, snapshot.window, width)
    details = [*empty_rows(empty, width), *details]
    free -= len(gpu_lines) + 1 + len(axis) + len(details)
    table = _processes(snapshot, width, free - _DIGITS_HEIGHT * len(gauges) - _MIN_LOG)
    details += table
    free -= len(table)
    if not snapshot.machine_only:
        printed = len(snapshot.log) + bool(snapshot.log)
        told = len(event_rows(snapshot, options, width, _MIN_LOG if options.message else 2))
        free -= min(_log_height(free, len(gauges)), printed + told)
    if free < (_DIGITS_HEIGHT - 1) * len(gauges) + _SMALL_ROWS:
        small = []
    free -= _SMALL_ROWS * len(small)
    most = _MOST_ROWS if snapshot.goes_on else free
    gauge_height = max(1, min(most, free // len(gauges)))
    rest = _SMALL_ROWS + free - gauge_height * len(gauges)
    higher = rest - _SMALL_ROWS if gauge_height < most and not small else 0
    lines = [*top, *gpu_lines, _device_title(snapshot, width)]
    first = len(lines)
    for at, gauge in enumerate(gauges):
        lines += gauge_rows(gauge, gauge_height + (at < higher), width)
    for gauge in small:
        lines += gauge_rows(gauge, min(_MOST_ROWS, rest), width)
    timeline = range(first, len(lines) + 1)
    lines += [*axis, *details, *bottom]
    if not snapshot.machine_only:
        lines += log_rows(snapshot, options, width, height - len(lines))
    return Page(filled(lines, width, height), (), timeline, bar)


def _processes(snapshot: Snapshot, width: int, spare: int) -> list[Line]:
    """Processes of the run and of the selected GPU, in half of the spare rows."""
    max_rows = min(_MAX_PROCESSES, spare // 2)
    if max_rows < _MIN_PROCESSES:
        return []
    gpu = next((gpu.row.id for gpu in snapshot.gpus if gpu.row.id == snapshot.selected), None)
    rows = process_rows(snapshot.processes, width, max_rows, selected=gpu)
    last = "" if snapshot.status.live else ", as sampled last"
    return [rule(f"processes{last}", width), *rows] if rows else []


def panel_columns(snapshot: Snapshot, options: Options, width: int, height: int) -> int:
    """Columns of the history in each panel on a screen of that size."""
    above, below, _ = _frame(snapshot, options, width, height)
    grid = _layout([gpu.row.id for gpu in snapshot.gpus], None, width, _room(above, below, height))
    return max(1, grid.width - _GAP - _LABEL)


def _frame(
    snapshot: Snapshot, options: Options, width: int, height: int
) -> tuple[list[Line], list[Line], int | None]:
    """The rows above and below the panels of all GPUs; and the row of the session's bar."""
    top, bar = _head(snapshot, options, width, height)
    head = Line(width).add(f" {len(snapshot.gpus)} GPUs", "strong")
    if _marks_used(snapshot):
        used = sum(bool(gpu.row.used) for gpu in snapshot.gpus)
        head.add(f", the run uses {used or 'none'}", "text")
    bottom = event_rows(snapshot, options, width, 1)
    if snapshot.work is not None and (snapshot.work.reports or snapshot.phase or snapshot.printed):
        said = [progress_row(snapshot, snapshot.work, width)]
        bottom = [*(workload_rows(snapshot, width, 1) if height >= TALL else said), *bottom]
    room = _room([*top, head], bottom, height)
    if _layout([gpu.row.id for gpu in snapshot.gpus], None, width, room).height >= _DRAWN_HEIGHT:
        zoom = zoom_text(snapshot, head.left - len("utilization, "))
        head.end(f"utilization, {zoom}" if zoom else "utilization ", "muted")
    return [*top, head], bottom, bar


def _room(above: list[Line], below: list[Line], height: int) -> int:
    return max(1, height - len(above) - len(below))


def _all_gpus(snapshot: Snapshot, options: Options, width: int, height: int) -> Page:
    top, bottom, bar = _frame(snapshot, options, width, height)
    room, first = _room(top, bottom, height), len(top)
    panels, selected = snapshot.panels, snapshot.selected
    rows = panel_rows(panels, selected, width, room, mark_used=_marks_used(snapshot))
    ids = [panel.device.row.id for panel in panels]
    grid = _layout(ids, selected, width, room)
    areas = []
    for at, id_ in enumerate(ids[grid.first * grid.per_row :][: grid.rows * grid.per_row]):
        row, column = divmod(at, grid.per_row)
        top_row = first + row * grid.height
        columns = range(column * grid.width, (column + 1) * grid.width)
        areas.append((columns, range(top_row, top_row + grid.height), id_))
    lines = [*top, *rows]
    if grid.height >= _DRAWN_HEIGHT:
        lines[-1] = axis = Line(width)
        for columns, below, _ in areas:
            if below.stop == len(lines):
                axis.to(columns.start).join(time_row(snapshot.window, _LABEL - 1, len(columns)))
    if not snapshot.machine_only:
        most = height - len(lines) - len(event_rows(snapshot, options, width, 1))
        said = workload_rows(snapshot, width, min(2, max(0, most - 3)))
        lines += said[len(said) > most :][:most]
        bottom = log_rows(snapshot, options, width, height - len(lines))
    lines = [*filled(lines, width, height - len(bottom)), *bottom]
    return Page(filled(lines, width, height), tuple(areas), bar=bar)


def _marks_used(snapshot: Snapshot) -> bool:
    """Whether to mark the run's GPUs: some are known to be unused."""
    return not snapshot.machine_only and any(gpu.row.used is False for gpu in snapshot.gpus)


def _log_height(free: int, gauges: int) -> int:
    """Rows of the log and the last event; at least one row is left for each gauge."""
    if free >= 15:
        return max(_MIN_LOG, min(free // 4, free - _DIGITS_HEIGHT * gauges))
    wanted = free - max(_DIGITS_HEIGHT, 3 * gauges) if free >= 11 else free - 6
    return max(2, min(wanted, free - 3))


def _device_title(snapshot: Snapshot, width: int) -> Line:
    device = snapshot.device(snapshot.selected)
    row = Line(width).add(" ")
    row.add(device.title if device else "no device recorded", "strong")
    on_gpu = device is not None and device.row.kind == "gpu"
    tab, role = "", "muted"
    notes: tuple[str, ...] = ("",)
    if snapshot.off_gpus and not on_gpu:
        if not any(alert.kind == "unused" for alert in snapshot.alerts):
            row.add(f"  the run {'uses' if snapshot.status.live else 'used'} no GPU", "muted")
    elif len(snapshot.gpus) > 1:
        place = [gpu.row.id for gpu in snapshot.gpus].index(str(snapshot.selected)) + 1
        row.add(f"  {place} of {len(snapshot.gpus)}", "muted")
        tab = ", Tab for the next"
    elif not snapshot.gpus and snapshot.devices:
        row.add("  no GPU recorded", "muted")
    if device is not None and on_gpu and (snapshot.off_gpus or device.row.used is False):
        notes, role = ("  not used by this run",), "warn"
    elif device is not None and device.row.used is None:
        notes = (f"  {UNKNOWN_GPUS}", "  GPUs not known")
        if snapshot.phase:
            notes = ("  perhaps not the run's: CUDA has not started", "  no use seen yet")
    fitting = ((key, note) for note in notes for key in (tab, "") if len(key + note) <= row.left)
    tab, note = next(fitting, ("", notes[-1]))
    row.add(tab, "muted").add(note, role)
    return row.end(zoom_text(snapshot, row.left), "muted")


_MIN_WIDTH = 36
"""Least columns of a panel."""
_LEAST_HEIGHT = 4
"""Least rows of a panel; lower ones are a single row."""
_HISTORY_HEIGHT, _DRAWN_HEIGHT = 7, 6
"""Least rows of a panel with a useful history, and with any."""
_MORE_HEIGHT = 10
"""Least rows of a panel with clocks, PCIe and fans."""
_LABEL = 5
"""Columns of the scale of the history."""
_GAP = 1
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


def _layout(ids: Sequence[str], selected: str | None, width: int, height: int) -> Layout:
    """The fewest panels in a row that are high enough for a history, else the highest panels, else
    a row for each GPU."""
    count, at = len(ids), next((at for at, id_ in enumerate(ids) if id_ == selected), 0)
    most = max(1, min(count, width // _MIN_WIDTH))
    heights = {n: height // -(-count // n) for n in range(1, most + 1)}
    tall = [n for n, rows in heights.items() if rows >= _HISTORY_HEIGHT]
    per_row = tall[0] if tall else max(heights, key=lambda n: (heights[n], -n))
    if heights[per_row] < _LEAST_HEIGHT:
        per_row = next((n for n, rows in heights.items() if rows), most)
    rows = -(-count // per_row)
    panel_height = min(16, heights[per_row]) if heights[per_row] >= _LEAST_HEIGHT else 1
    visible_rows = max(1, min(rows, height // panel_height))
    first = max(0, min(at // per_row - visible_rows // 2, rows - visible_rows))
    return Layout(per_row, width // per_row, panel_height, first, visible_rows)


def panel_rows(
    panels: Sequence[Panel], selected: str | None, width: int, height: int, *, mark_used: bool
) -> list[Line]:
    """A panel per GPU in at most ``height`` rows; ``mark_used``: mark the GPUs of the run."""
    grid = _layout([panel.device.row.id for panel in panels], selected, width, height)
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
    memory = f" {device.peak + device.memory:>13}"
    used = f"{percent(use):>{len(memory)}}"
    _bar(rows[1].add(" util.").to(9), use, used, "utilization")
    _bar(rows[2].add(" memory").to(9), device.memory_share, memory, "progress")
    degrees = number(device.value("hw.gpu.temperature"), "°C")
    reading = panel.bandwidth
    at_most = "≤" * (reading.method is Method.BOUND and reading.value is not None)
    rate = f"{at_most}{si(reading.value, 'B/s')}"  # as wide with and without ``≤``
    fields = [("bandwidth ", f"{rate:<10}"), ("", f"{power_text(device):<9}"), ("", degrees)]
    rows[3].add(" ").join(_fitting(fields, width - 1))
    first = 4
    if height >= _MORE_HEIGHT:
        more = [(f"{name} ", text) for name, text in more_values(device)]
        rows[first].add(" ").join(_fitting(more, width - 1))
        first += 1
    if height >= _DRAWN_HEIGHT:
        below = rows[first : height - 1]
        shown = panel.history[_LABEL - width :]  # if not all of it fits, the newest part
        for at, (row, text) in enumerate(zip(below, area(shown, 1.0, len(below)), strict=True)):
            label = "100%" if at == 0 else "0" if at == len(below) - 1 else ""
            row.add(f"{label:>{_LABEL - 1}}", "muted").add("┤" if label else "│", "faint")
            row.add(text, "utilization")
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
