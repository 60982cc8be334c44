"""Pages of text over a screen, rows that scroll; and the page of every number, on ``i``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual.binding import Binding, BindingType

from gpuwatch.analysis.hardware.profile import Counters, tool_name
from gpuwatch.analysis.samples.step_lines import GIVE_STEPS, NO_STEPS, NO_STEPS_YET
from gpuwatch.core.metrics import CATALOGUE, Method, reading_of
from gpuwatch.core.text import clean
from gpuwatch.core.units import bounded, clock_time, counted, quantity, si
from gpuwatch.tui.feed.snapshot import DeviceNow, Reading, Snapshot, Work
from gpuwatch.tui.widgets.base_screen import FIND, FindScreen
from gpuwatch.tui.widgets.gauge_rows import is_cache_reuse, mean_text, share_texts
from gpuwatch.tui.widgets.head_rows import age_text, event_text
from gpuwatch.tui.widgets.line import Line, Span, pad, wrap

Row = tuple[Span, ...]

SCROLLING: list[BindingType] = [
    Binding("down,j", "scroll_by(1)", "down", show=False, tooltip="one row down"),
    Binding("up,k", "scroll_by(-1)", "up", show=False, tooltip="one row up"),
    Binding("pagedown,space", "scroll_by(20)", "page down", show=False),
    Binding("pageup", "scroll_by(-20)", "page up", show=False),
    Binding("home", "scroll_by(-1000000)", "first row", show=False),
    Binding("end", "scroll_by(1000000)", "last row", show=False),
]
"""What scrolls a page of rows that has ``action_scroll_by``."""


def found(rows: Sequence[Row], wanted: str) -> list[Row]:
    """The rows with ``wanted``, in small or capital letters, each below its heading, and with the
    rows that are indented below it."""
    shown: list[Row] = []
    heading: list[Row] = []
    inside = 0
    for row in rows:
        text = "".join(text for text, _ in row).casefold()
        depth = len(text) - len(text.lstrip())
        if wanted.casefold() in text:
            shown += [*heading, row]
            heading, inside = [], min(inside or depth, depth)
            continue
        inside = inside if depth > inside else 0
        shown += [row] if inside else []
        heading = [row] if depth <= 1 else heading
    return shown


class PageScreen(FindScreen):
    """Rows that scroll, and can be searched; the keys that open such a page close it too."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,i,K,r", "close", "back"),
        Binding("slash", "find", "find", tooltip="only rows with a text; Esc shows all again"),
        *SCROLLING,
    ]

    def __init__(self, title: str, rows: Callable[[int], Sequence[Row]]) -> None:
        """``rows``: what is shown on a screen of so many columns."""
        super().__init__()
        self._heading = title
        self._make = rows
        self._first = 0

    def paint(self) -> None:
        width, height = self.room
        lines = [Line(width).add(" gpuwatch ", "brand").add(self._heading, "strong"), Line(width)]
        rows = found(self._make(width), self._wanted)
        if self._wanted or self.field.display:
            lines[1].add(FIND, "key").add(self._wanted)
            self.field.stand(len(FIND), 1, width - len(FIND))
        space = max(1, height - 2)
        self._first = max(0, min(self._first, len(rows) - space))
        if self._wanted and not rows:
            lines.append(Line(width).add(f" nothing matches {self._wanted}", "muted"))
        for row in rows[self._first : self._first + space]:
            line = Line(width)
            for text, role in row:
                line.add(text, role)
            lines.append(line)
        if len(rows) > space:
            last = min(len(rows), self._first + space)
            lines[0].end(f"{self._first + 1} to {last} of {len(rows)} ", "muted")
        self.show(lines)

    def action_scroll_by(self, by: int) -> None:
        self._first += by
        self.paint()


_SOURCE = 58
"""First column of the source, plus one."""
_MAX_ROWS = 6
"""Most rows of a source or a reason; foreign files may contain long ones."""
KERNELS = "kernels"
"""The page that is of no moment."""
_POLL_SECONDS = 0.5
"""Time between two checks for a newer snapshot."""


def number_lines(snapshot: Snapshot, width: int) -> list[Row]:
    """Each number with its value, method, source and reason."""
    rows: list[Row] = []
    if snapshot.warnings:
        rows.append(((" warnings", "strong"),))
        for text in snapshot.warnings:
            rows += wrapped(text, width, mark="!", role="text")
        rows.append((("", "text"),))
    if snapshot.gauges:
        rows += _gauges(snapshot, width)
    if snapshot.work is not None:
        rows += _steps(snapshot, snapshot.work, width)
        if not snapshot.work.reports and snapshot.work.no_steps == NO_STEPS_YET:
            rows += wrapped(GIVE_STEPS, width, mark="→")
        for event in snapshot.events:
            if event.kind == "progress-lines" and event.t <= snapshot.t:
                rows += wrapped(event.text, width)
    if snapshot.counters is not None:
        rows += [(("", "text"),), *counter_rows(snapshot.counters, width)]
    order = {name: index for index, name in enumerate(CATALOGUE)}
    kinds = {"gpu": 0, "cpu": 1, "workload": 2}
    means = f", mean of the {snapshot.means}, of memory the peak" if snapshot.means else ""
    for device in sorted(snapshot.devices, key=lambda item: kinds.get(item.row.kind, 3)):
        rows += [(("", "text"),)] if rows else []
        known = device.row.kind in ("gpu", "cpu")
        title = device.title if known else f"{clean(device.row.id)}  {clean(device.row.name)}"
        rows.append(((f" {title}", "strong"), (means, "muted")))
        for metric in sorted(device.readings, key=lambda name: order.get(name, 99)):
            rows += _number(metric, device.readings[metric], width)
        rows += _facts(device, width)
    if snapshot.event is not None:
        rows += [(("", "text"),), ((" last event", "strong"),)]
        prefix = f"{snapshot.event.device}: " if snapshot.event.device else ""
        rows += wrapped(f"{prefix}{event_text(snapshot.event)}", width, role="text")
    return rows


def _gauges(snapshot: Snapshot, width: int) -> list[Row]:
    rows: list[Row] = [((" gauges", "strong"),)]
    for gauge in snapshot.gauges[1:]:
        rows += _number(gauge.title, gauge.reading, width, gauge.unit)
        rows += wrapped(mean_text(gauge), width, role="muted", left=5)
        if gauge.named_ceiling is not None:
            share = (*share_texts(gauge), f"ceiling: {gauge.named_ceiling.text}")[0]
            note = "; over the ceiling: cache reuse" if is_cache_reuse(gauge) else ""
            rows += wrapped(f"{share}{note}", width, role="text", left=5)
            rows += wrapped(gauge.named_ceiling.source, width, role="muted", left=7)
            rows += wrapped(gauge.named_ceiling.doubt or "", width, role="warn", left=7)
        for name, mfu in gauge.mfus:
            rows += _number(name, mfu, width, "1")
            rows += wrapped(mean_text(gauge), width, role="muted", left=5)
        if gauge.key == "flops" and not gauge.mfus and not snapshot.machine_only:
            uncounted = Reading(None, Method.UNAVAILABLE, "no FLOP are counted: see FLOP/s above")
            rows += _number("MFU", uncounted, width, "1")
    bandwidth = snapshot.gauges[1]
    if bandwidth.reading.method is not Method.COUNTED and not snapshot.machine_only:
        rows += _number("Algorithmic bytes/s", snapshot.algorithmic, width, "By/s")
    return rows


def _steps(snapshot: Snapshot, work: Work, width: int) -> list[Row]:
    """Their time, throughput, loss and phases."""
    shares = snapshot.shares
    why = None if work.reports else work.no_steps
    untimed = why or (NO_STEPS if work.warmup else work.throughput.reason)
    over = work.newest.removeprefix("the ") + counted(work.step_count, "timed step")
    figures: list[tuple[str, float | None, str, str | None, str]] = [
        ("median step", work.step_seconds, "s", untimed, over),
        ("mean step", work.arrival_seconds, "s", None, "the arrival of lines")
        if work.arrival_seconds
        else ("mean step", work.mean_seconds, "s", untimed, over),
        ("last loss", work.loss, "", why or work.no_loss, "step lines"),
    ]
    for name, share in shares.parts if shares else ():
        mean = f"mean of {shares.newest}{counted(shares.steps, 'step')}" if shares else ""
        figures.append((f"phase: {name}", share, "1", None, mean))
    rows: list[Row] = [(("", "text"),), ((" steps", "strong"),)]
    now = " now" * snapshot.status.live  # that of the last seconds
    rows += _number(f"samples/s{now}", work.throughput, width, "{sample}/s")
    for name, value, unit, reason, source in figures:
        known = Reading(value, Method.MEASURED, reason if value is None else None, source)
        rows += _number(name, known, width, unit)
    return rows


_FACT_UNITS = {
    **dict.fromkeys(("memory.total", "swap.total"), "By"),
    **dict.fromkeys(("clock.sm.max", "clock.memory.max", "frequency.max"), "Hz"),
    "power.limit": "W",
    **dict.fromkeys(("temperature.slowdown", "temperature.operating.max"), "Cel"),
    "memory.bus.width": "bit",
}
"""Units of the constant numbers of a device; the others are counts."""


_FACT_NAMES = {
    "clock.memory.max": "maximum memory clock",
    "clock.sm.max": "maximum SM clock",
    "ecc.enabled": "ECC",
    "mig.enabled": "MIG",
    "pci.bus.id": "PCI bus id",
    "persistence.enabled": "persistence mode",
    "xid.told": "reports Xid errors",
}
"""Names for people, where they differ from the attribute's."""


def _facts(device: DeviceNow, width: int) -> list[Row]:
    """What stays as it is during a session: versions, sizes, limits, modes."""
    rows: list[Row] = []
    for name, value in sorted(device.row.attributes.items()):
        if value is None or isinstance(value, (dict, list)):
            continue
        if isinstance(value, bool):
            text = "yes" if value else "no"
        elif isinstance(value, (int, float)):
            text = quantity(value, _FACT_UNITS[name]) if name in _FACT_UNITS else f"{value:,g}"
        else:
            text = clean(str(value), width - 32)
        title = _FACT_NAMES.get(name) or clean(name.replace(".", " "))
        rows.append(((f"   {pad(title, 26)}", "muted"), (f"  {text}", "text")))
    return rows


def _number(name: str, reading: Reading, width: int, unit: str | None = None) -> list[Row]:
    if unit is None:
        name, unit = reading_of(name)
    unavailable = reading.value is None
    bound = reading.method is Method.BOUND and not unavailable
    method = Method.UNAVAILABLE if unavailable else reading.method
    value = bounded(quantity(reading.value, unit), "at most" if bound else None)
    row: Row = (
        (f"   {pad(clean(name), 26)}", "text"),
        (f"{value:>14}  ", "muted" if unavailable else "strong"),
        (f"{method.value:<12}", "warn" if unavailable else "muted"),
    )
    source = "" if unavailable else clean(reading.source)
    why = reading.reason or ("no value at this moment" if unavailable else "")
    below: list[Row] = []
    if cell_len(source) <= width - _SOURCE:
        row = (*row, (source, "muted"))
    else:
        below = wrapped(source, width, role="muted", left=5)
    return [row, *below, *wrapped(why, width, role="muted", left=5)]


def counter_rows(counters: Counters, width: int) -> list[Row]:
    """The totals and notes, or the reason why there are no counters."""
    if counters.reason:
        return wrapped(f"no hardware counters: {counters.reason}", width, mark="!")
    title = clean(f" counted by {tool_name(counters)}, {counters.scope}")
    rows: list[Row] = [((title, "strong"),)]
    names = (("executed FLOP", "FLOP"), ("DRAM bytes read", "B"), ("DRAM bytes written", "B"))
    if any(total is not None for total in counters.totals):
        rows += [
            ((f"   {name:<20}", "text"), (si(total, unit), "strong"))
            for (name, unit), total in zip(names, counters.totals, strict=True)
        ]
    for note in counters.notes:
        rows += wrapped(note, width)
    return rows


def wrapped(
    text: str, width: int, mark: str = " ", role: str = "muted", left: int = 3
) -> list[Row]:
    """Text from a session in several rows from column ``left`` on, the first with a mark."""
    return [
        ((" " * (left - 2) + f"{' ' if n else mark} ", "warn"), (line, role))
        for n, line in enumerate(wrap(clean(text), max(10, width - left - 1), _MAX_ROWS))
    ]


class SnapshotPage(PageScreen):
    """Shows ``rows`` of the snapshot of the screen below it."""

    def __init__(
        self,
        what: str,
        rows: Callable[[Snapshot, int], Sequence[Row]],
        first: Snapshot,
        latest: Callable[[], Snapshot | None],
    ) -> None:
        """``latest`` returns the newest snapshot; it is called twice a second."""
        self._what = what
        self._latest = latest
        self._shown = first
        super().__init__(self._title(), lambda width: rows(self._shown, width))

    def on_mount(self) -> None:
        self.set_interval(_POLL_SECONDS, self._follow)

    def _follow(self) -> None:
        news = self._latest()
        if self.on_top and news is not None and news is not self._shown:
            self._shown = news
            self._heading = self._title()
            self.paint()

    def _title(self) -> str:
        """``every number at 1:40, 0:08 ago``, in session time; of a machine ``now``; of what is
        over ``of the run``, as a profile always is."""
        shown = self._shown
        if self._what == KERNELS or (not shown.goes_on and shown.replay is None):
            return f"{self._what} of the run"
        if shown.machine_only and shown.replay is None:
            return f"{self._what} now"
        moment = age_text(shown)
        return f"{self._what} at {clock_time(shown.seconds)}" + (f", {moment}" if moment else "")
