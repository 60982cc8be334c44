"""The live screen as rows of text: a pure function of the snapshot and the screen's size."""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len

from gpuwatch.text import clean
from gpuwatch.tui.cells import fit, wrap
from gpuwatch.tui.device_rows import (
    Fields,
    columns_for,
    detail_rows,
    grid_rows,
    host_row,
    name_of,
    number_of,
    pipe_row,
)
from gpuwatch.tui.gauge_rows import axis_row, gauge_rows
from gpuwatch.tui.graph import bar
from gpuwatch.tui.head_rows import banner_rows, title_row
from gpuwatch.tui.line import Line
from gpuwatch.tui.snapshot import Snapshot, Work
from gpuwatch.units import UNKNOWN, clock_time, digits, loss, milliseconds, percent

NS = 1_000_000_000

ZOOMS: tuple[tuple[int | None, str], ...] = (
    (10, "10 s"),
    (60, "1 min"),
    (300, "5 min"),
    (None, "all"),
)


@dataclass(frozen=True)
class Options:
    """How the person wants it drawn."""

    paused: bool = False
    big_log: bool = False
    zoom: int = 1
    message: str = ""
    """The answer to what was just done."""


def live_rows(snapshot: Snapshot, options: Options, width: int, height: int) -> list[Line]:
    """The whole screen, without its line of keys."""
    top = [title_row(snapshot, width, paused=options.paused), *banner_rows(snapshot, width)]
    if snapshot.machine_only:
        bottom = _events(snapshot, options, width, 2 if height >= 30 else 1)
    else:
        bottom = [*_workload(snapshot, width)]
    middle_fixed = 0
    gpus = snapshot.gpus
    grid: list[Line] = []
    left = height - len(top) - len(bottom)
    if len(gpus) > 1:
        rows = -(-len(gpus) // columns_for(width))
        most = max(1, min(rows, left - 11))
        # Which GPUs a run uses is known where some are known not to be used.
        told = not snapshot.machine_only and any(not gpu.row.used for gpu in gpus)
        grid = grid_rows(gpus, snapshot.selected, width, most, mark_used=told)
    device = snapshot.device(snapshot.selected)
    details = detail_rows(device, width) if device else []
    if len(grid) > 4 and height < 30:
        details = details[1:]
    pipes = pipe_row(device, width) if device and device.row.kind == "gpu" else None
    if pipes is not None and left - len(grid) - 2 - len(details) > 6:
        details.append(pipes)
    host = host_row(snapshot.devices, width) if height >= 30 and gpus else None
    middle_fixed = 2 + len(details) + (host is not None)
    left -= len(grid) + middle_fixed
    log_height = 0
    if not snapshot.machine_only:
        log_height = _log_height(left, options.big_log)
        left -= log_height
    each = max(1, min(12, left // 3))
    rows_: list[Line] = [*top, *grid, _device_title(snapshot, options, width)]
    for gauge in snapshot.gauges:
        rows_ += gauge_rows(gauge, each, width)
    rows_.append(axis_row(snapshot.window, width))
    rows_ += details
    if host is not None:
        rows_.append(host)
    rows_ += bottom
    if not snapshot.machine_only:
        rows_ += _log(snapshot, options, width, height - len(rows_))
    while len(rows_) < height:
        rows_.append(Line(width))
    return rows_[:height]


def _log_height(left: int, big: bool) -> int:
    """Rows of the log and the last event; the gauges get the rest, at least a row each."""
    if big:
        return max(3, left - 3)
    if left >= 15:
        return max(6, left // 3)
    wanted = left - 9 if left >= 12 else left - 6
    return max(2, min(wanted, left - 3))


def _device_title(snapshot: Snapshot, options: Options, width: int) -> Line:
    row = Line(width).add(" ", "text")
    row.add(name_of(snapshot.device(snapshot.selected)), "strong")
    if len(snapshot.gpus) > 1:
        place = [gpu.row.id for gpu in snapshot.gpus].index(str(snapshot.selected)) + 1
        row.add(f"  {place} of {len(snapshot.gpus)}, Tab for the next", "muted")
    elif not snapshot.gpus and snapshot.devices:
        row.add("  no GPU recorded", "muted")
    label = "all" if snapshot.view.seconds is None else ZOOMS[options.zoom][1]
    text = "history: all" if label == "all" else f"history: {label}"
    if row.left > len(text) + 1:
        row.end(f"{text} ", "muted")
    return row


def rule(title: str, width: int) -> Line:
    """A line across with a title in it."""
    row = Line(width).add("── ", "faint").add(title, "muted").add(" ", "faint")
    return row.add("─" * row.left, "faint")


def _workload(snapshot: Snapshot, width: int) -> list[Line]:
    work = snapshot.work
    if work is None:
        return []
    parts = [f"batch {work.batch_size}" if work.batch_size else None, work.dtype, work.model]
    title = "  ".join(["workload", *(clean(part) for part in parts if part)])
    rows = [rule(title, width)]
    if work.reports or snapshot.phase:
        rows.append(_progress(snapshot, work, width))
    if not work.reports:
        row = Line(width).add(" ")
        if snapshot.imported:
            row.add("an imported profile: ", "muted").add("K", "key").add(
                " shows its kernels", "muted"
            )
        elif snapshot.status.live:
            row.add("no step lines so far", "muted").add(
                "; any program can print them: docs/step-lines.md", "muted"
            )
        else:
            row.add("the run printed no step lines: no throughput, step times or loss", "muted")
        return [*rows, row]
    fields = Fields(width, 6 if width >= 120 else 3)
    fields.add("samples/s", samples_rate(work.throughput.value))
    fields.add("median step", milliseconds(work.step_seconds))
    fields.add("loss", loss(work.loss))
    if width >= 120:
        fields.add("median over", f"{work.step_count:,} steps")
    return [*rows, *fields.rows()]


def samples_rate(value: float | None) -> str:
    """Samples per second: ``11,700``, ``3.21``."""
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if value >= 1000 else digits(value)


def _progress(snapshot: Snapshot, work: Work, width: int) -> Line:
    """Step of total, a bar, the share, the time left."""
    row = Line(width).add(" ")
    if work.step is None:
        words = "waiting for the first step" if snapshot.status.live else "no step"
        row.add("step ", "muted").add(UNKNOWN, "muted").add("  ")
        row.add(snapshot.phase or words, "muted")
        return row
    name = "warm-up step " if work.warmup else "step "
    row.add(name, "muted").add(f"{work.step:,}", "strong")
    if work.total is None:
        return row.add(" of an unknown number", "muted")
    row.add(f"/{work.total:,}  ", "text")
    share = min(1.0, work.step / work.total)
    tail = Line(width).add(f" {percent(share):>6}", "strong")
    if snapshot.status.live:
        eta = UNKNOWN if work.eta_seconds is None else clock_time(work.eta_seconds)
        tail.add("  ETA ", "muted").add(f"{eta} ", "strong")
    else:
        tail.add(" ")
    filled, empty = bar(share, max(5, row.left - tail.used))
    return row.add(filled, "progress").add(empty, "faint").join(tail)


def _log(snapshot: Snapshot, options: Options, width: int, height: int) -> list[Line]:
    """The end of the log, and the last event."""
    footer = _events(snapshot, options, width, 2 if height > 4 else 1)
    space = height - len(footer) - 1
    if height <= 3:
        rows, space = [], height - len(footer)
    else:
        rows = [rule("log", width)]
    if space <= 0:
        return footer[:height]
    lines = list(snapshot.log[-space:]) if space else []
    for entry in lines:
        row = Line(width)
        if width >= 100:
            row.add(f" {clock_time(entry.t / NS):>8}", "faint")
        if entry.stream == "stderr":
            row.add(" err ", "warn").add(fit(clean(entry.text), row.left), "text")
        else:
            row.add(" out ", "faint").add(fit(clean(entry.text), row.left), "text")
        rows.append(row)
    if not lines and space:
        rows.append(Line(width).add("     nothing printed so far", "muted"))
    while len(rows) < height - len(footer):
        rows.append(Line(width))
    return rows + footer


def _events(snapshot: Snapshot, options: Options, width: int, most: int) -> list[Line]:
    """The answer to a key, else the last event and the GPU it is of, in at most ``most`` rows."""
    row = Line(width).add(" ")
    if options.message:
        return [row.add("» ", "key").add(clean(options.message), "strong")]
    event = snapshot.event
    if event is None:
        return [row.add("no events", "faint")]
    row.add(clock_time(event.t / NS), "muted").add(" event ")
    device = snapshot.device(event.device)
    if device is not None and device.row.kind == "gpu":
        row.add(f"GPU {number_of(device)} ", "strong")
    row.add(f"{clean(event.kind)}: ", "warn")
    text, indent = clean(event.text), row.used
    if cell_len(text) > row.left and most > 1:
        first, *rest = wrap(text, width - indent - 1, most)
        return [row.add(first), *(Line(width).to(indent).add(each) for each in rest)]
    return [row.add(text)]
