"""The live screen as rows of text: a pure function of the snapshot and the screen's size."""

from __future__ import annotations

from gpuwatch.analysis.hardware.ceilings import UNKNOWN_GPUS
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method
from gpuwatch.tui.feed.hardware.device_facts import name_of
from gpuwatch.tui.feed.snapshot import Gauge, Snapshot
from gpuwatch.tui.live import grid_rows as grid
from gpuwatch.tui.live.device_rows import columns_for, detail_rows, grid_rows, host_row, pipe_row
from gpuwatch.tui.live.gauge_rows import axis_row, gauge_rows
from gpuwatch.tui.live.head_rows import banner_rows, title_row
from gpuwatch.tui.live.rows import (
    ZOOMS,
    Options,
    event_columns,
    event_rows,
    log_rows,
    progress_row,
    rule,
    workload_rows,
)
from gpuwatch.tui.live.study_rows import strip_rows
from gpuwatch.tui.live.time_rows import notable, position_row
from gpuwatch.tui.processes.rows import process_rows
from gpuwatch.tui.widgets.line import Line

TALL = 30
"""Rows from which on there is room for more than what a small screen needs."""
_LOW, _LOWEST = 22, 20
"""Rows from which on phases, and the runs of the study, have a place."""

_FIXED = 2
"""Rows of the device's name and of the time axis."""
_LEAST = 8
"""Rows of the gauges, two each, and of the log, which GPUs and details leave."""
_DIGITS = 7
"""Rows from which on a gauge has large digits, and a blank row below."""
_LOG = 6
"""Rows of the log and the last event where there is room for more than a line."""
_FEWEST_PROCESSES, _MOST_PROCESSES = 3, 6


@dataclass(frozen=True)
class Drawn:
    """The rows, and where what can be clicked stands on them."""

    lines: list[Line]
    gpus: tuple[tuple[range, range, str], ...] = ()
    """Columns and rows of each GPU's panel or line, and its id."""
    axis: int | None = None
    """The row of the time axis."""
    bar: int | None = None
    """The row of the whole session's bar."""

    def gpu_at(self, x: int, y: int) -> str | None:
        """The id of the GPU that stands there."""
        return next((id_ for xs, ys, id_ in self.gpus if x in xs and y in ys), None)


def drawn(snapshot: Snapshot, options: Options, width: int, height: int) -> Drawn:
    """The whole screen, without its line of keys."""
    if snapshot.view.grid and snapshot.panels:
        return _all_gpus(snapshot, options, width, height)
    return _one_gpu(snapshot, options, width, height)


def shows_fourth(height: int) -> bool:
    """Whether a picked metric is drawn below the three gauges; else it takes the place of one."""
    return height >= TALL


def _top(
    snapshot: Snapshot, options: Options, width: int, height: int
) -> tuple[list[Line], int | None]:
    """What runs, what is wrong, which moment that is and in which row, how far the study is."""
    top = [title_row(snapshot, width, paused=options.paused), *banner_rows(snapshot, width)]
    bar = None
    if snapshot.replay is not None:
        bar = len(top)
        top.append(position_row(snapshot, width))
    if snapshot.study is not None and height >= _LOWEST:
        top += strip_rows(snapshot.study, width, 4 if height >= TALL else 1)
    return top, bar


def _one_gpu(snapshot: Snapshot, options: Options, width: int, height: int) -> Drawn:
    top, bar = _top(snapshot, options, width, height)
    if snapshot.machine_only:
        bottom = event_rows(snapshot, options, width, 2 if height >= TALL else 1)
    else:
        phases = 2 if height >= TALL else 1 if height >= _LOW else 0
        bottom = workload_rows(snapshot, width, phases)
    gpus = snapshot.gpus
    left = height - len(top) - len(bottom)
    device = snapshot.device(snapshot.selected)
    last = not snapshot.status.live
    details = detail_rows(device, width, last=last) if device else []
    if len(gpus) > 4 and height < TALL:
        details = details[1:]
    listed: list[Line] = []
    if len(gpus) > 1:
        rows = -(-len(gpus) // columns_for(width))
        if rows > left - len(details) - _FIXED - _LEAST:
            details = []
        most = max(1, min(rows, left - len(details) - _FIXED - _LEAST))
        listed = grid_rows(gpus, snapshot.selected, width, most, mark_used=_told(snapshot))
    pipes = pipe_row(device, width) if device and device.row.kind == "gpu" else None
    if pipes is not None and left - len(listed) - len(details) - _FIXED > _LEAST:
        details.append(pipes)
    host = host_row(snapshot.devices, width) if height >= TALL and gpus else None
    if host is not None:
        details.append(host)
    left -= len(listed) + _FIXED + len(details)
    gauges = _gauges(snapshot, height)
    table = _processes(snapshot, width, left - _DIGITS * len(gauges) - _LOG)
    details += table
    left -= len(table)
    if not snapshot.machine_only:
        left -= _log_height(left, len(gauges))
    each = max(1, min(12, left // len(gauges)))
    lines = [*top, *listed, _device_title(snapshot, options, width)]
    for gauge in gauges:
        lines += gauge_rows(gauge, each, width)
    axis = len(lines)
    marks = event_columns(notable(snapshot.events), snapshot.t, snapshot.window)
    lines += [axis_row(snapshot.window, width, marks), *details, *bottom]
    if not snapshot.machine_only:
        lines += log_rows(snapshot, options, width, height - len(lines))
    return Drawn(_filled(lines, width, height), (), axis, bar)


def _processes(snapshot: Snapshot, width: int, spare: int) -> list[Line]:
    """Who is on the selected GPU and what the run's processes use, in half of the spare rows."""
    most = min(_MOST_PROCESSES, spare // 2)
    if most < _FEWEST_PROCESSES:
        return []
    gpu = next((gpu.row.id for gpu in snapshot.gpus if gpu.row.id == snapshot.selected), None)
    rows = process_rows(snapshot.processes, width, most, selected=gpu)
    return [rule("processes", width), *rows] if rows else []


def panel_columns(snapshot: Snapshot, options: Options, width: int, height: int) -> int:
    """Columns of the history in each panel of all GPUs on a screen of that size."""
    frame = _frame(snapshot, options, width, height)
    return grid.history_columns(len(snapshot.gpus), width, frame.room)


@dataclass(frozen=True)
class _Frame:
    """What stands around the panels of all GPUs, and the rows that it leaves them."""

    top: list[Line]
    bottom: list[Line]
    room: int
    bar: int | None


def _frame(snapshot: Snapshot, options: Options, width: int, height: int) -> _Frame:
    top, bar = _top(snapshot, options, width, height)
    head = Line(width).add(f" {len(snapshot.gpus)} GPUs", "strong")
    if _told(snapshot):
        head.add(f", the run uses {sum(bool(gpu.row.used) for gpu in snapshot.gpus)}", "text")
    text = f"history: {ZOOMS[options.zoom][1]} "
    head.end(text if head.left > len(text) else "", "muted")
    bottom = event_rows(snapshot, options, width, 1)
    if snapshot.work is not None and (snapshot.work.reports or snapshot.phase):
        bottom = [progress_row(snapshot, snapshot.work, width), *bottom]
    top.append(head)
    return _Frame(top, bottom, max(1, height - len(top) - len(bottom)), bar)


def _all_gpus(snapshot: Snapshot, options: Options, width: int, height: int) -> Drawn:
    frame = _frame(snapshot, options, width, height)
    panels, chosen = snapshot.panels, snapshot.selected
    rows = grid.panel_rows(panels, chosen, width, frame.room, mark_used=_told(snapshot))
    first = len(frame.top)
    blank = [Line(width) for _ in range(frame.room - len(rows))]
    gpus = tuple(
        (xs, range(first + ys.start, first + ys.stop), id_)
        for xs, ys, id_ in grid.places(panels, chosen, width, frame.room)
    )
    lines = [*frame.top, *rows, *blank, *frame.bottom]
    return Drawn(_filled(lines, width, height), gpus, None, frame.bar)


def _told(snapshot: Snapshot) -> bool:
    """Whether it is known which GPUs the run uses: where some are known not to be used."""
    return not snapshot.machine_only and any(gpu.row.used is False for gpu in snapshot.gpus)


def _filled(lines: list[Line], width: int, height: int) -> list[Line]:
    return [*lines, *(Line(width) for _ in range(height - len(lines)))][:height]


def _gauges(snapshot: Snapshot, height: int) -> list[Gauge]:
    """The three, and the picked one: below them, or in place of one that says nothing, else of the
    last."""
    gauges = list(snapshot.gauges)
    if snapshot.picked is None:
        return gauges
    if shows_fourth(height):
        return [*gauges, snapshot.picked]
    silent = [at for at, each in enumerate(gauges) if each.reading.method is Method.UNAVAILABLE]
    gauges[silent[0] if silent else -1] = snapshot.picked
    return gauges


def _log_height(left: int, gauges: int) -> int:
    """Rows of the log and the last event; the gauges get the rest, at least a row each."""
    if left >= 15:
        return max(_LOG, min(left // 4, left - _DIGITS * gauges))
    wanted = left - 9 if left >= 11 else left - 6
    return max(2, min(wanted, left - 3))


def _device_title(snapshot: Snapshot, options: Options, width: int) -> Line:
    row = Line(width).add(" ", "text")
    row.add(name_of(snapshot.device(snapshot.selected)), "strong")
    device, choices = snapshot.device(snapshot.selected), snapshot.choices
    on_gpu = device is not None and device.row.kind == "gpu"
    if snapshot.off_gpus and not on_gpu:
        row.add("  the run uses no GPU; Tab shows them", "muted")
    elif len(choices) > 1:
        place = [gpu.row.id for gpu in snapshot.gpus].index(str(snapshot.selected)) + 1
        row.add(f"  {place} of {len(snapshot.gpus)}, Tab for the next", "muted")
    elif not snapshot.gpus and snapshot.devices:
        row.add("  no GPU recorded", "muted")
    if device is not None and on_gpu and (snapshot.off_gpus or device.row.used is False):
        row.add("  not used by this run", "warn")
    elif device is not None and device.row.used is None:
        fits = len(UNKNOWN_GPUS) + 2 <= row.left
        row.add(f"  {UNKNOWN_GPUS if fits else 'GPUs not known'}", "muted")
    label = "all" if snapshot.view.seconds is None else ZOOMS[options.zoom][1]
    text = f"history: {label}"
    if row.left > len(text) + 1:
        row.end(f"{text} ", "muted")
    return row
