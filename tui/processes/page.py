"""The page of processes, over the live screen and over the home screen."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from gpuwatch.core.text import clean
from gpuwatch.tui.feed.delivery import Delivery, News
from gpuwatch.tui.feed.hardware.devices_now import DevicesNow
from gpuwatch.tui.feed.processes import ProcessNow, may_be_truncated
from gpuwatch.tui.feed.snapshot import Snapshot
from gpuwatch.tui.live.head_rows import title_row, warning_rows
from gpuwatch.tui.processes.rows import process_rows, unknown_rows
from gpuwatch.tui.widgets.canvas_screen import CanvasScreen
from gpuwatch.tui.widgets.cells import wrap
from gpuwatch.tui.widgets.keys import keys_row
from gpuwatch.tui.widgets.line import Line
from gpuwatch.tui.widgets.page import SCROLLING

_LOOK_SECONDS = 0.5
"""Between two looks for a newer snapshot."""
_ORDERS: tuple[tuple[str, Callable[[ProcessNow], float | None] | None], ...] = (
    ("GPU memory", None),
    ("GPU use", lambda process: process.gpu_share),
    ("cores", lambda process: process.cores),
    ("memory", lambda process: process.resident),
)
"""Names of the columns and what they sort by; the first is the order of a snapshot."""


class ProcessScreen(CanvasScreen):
    """Who uses the GPUs and what the run's processes use; it scrolls, ``o`` sorts."""

    KEYS = (
        ("↑ ↓ PgUp PgDn", "scroll; j, k and Space too"),
        ("Home End", "the first row, the last one"),
        ("o", "next order: GPU memory, GPU use, cores, memory"),
        ("Esc, q or p", "back"),
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,p,enter", "close", show=False),
        *SCROLLING,
        Binding("o", "order", show=False),
    ]

    def __init__(self, latest: Callable[[], Snapshot | None]) -> None:
        """``latest`` gives the newest snapshot; it is asked twice a second while this is open."""
        super().__init__()
        self._latest = latest
        self._shown: Snapshot | None = None
        self._first = 0
        self._order = 0

    def on_mount(self) -> None:
        self.set_interval(_LOOK_SECONDS, self._look)
        self.call_after_refresh(self.paint)

    def _look(self) -> None:
        if self.on_top and self._latest() is not self._shown:
            self.paint()

    def paint(self) -> None:
        width, height = self.app.size
        if height < 2:
            return
        self._shown = snapshot = self._latest()
        if snapshot is None:
            lines = [Line(width).add(" gpuwatch ", "brand").add("processes", "strong")]
            lines += [Line(width), Line(width).add(f" {self._waiting()}", "muted")]
            keys = [("Esc", "back")]
        else:
            lines, keys = self._drawn(snapshot, width, height - 1)
        lines = lines[: height - 1]
        lines += [Line(width) for _ in range(height - 1 - len(lines))]
        lines.append(keys_row(keys, width))
        self.show(lines)

    def _waiting(self) -> str:
        return "reading the processes …"

    def _drawn(
        self, snapshot: Snapshot, width: int, height: int
    ) -> tuple[list[Line], list[tuple[str, str]]]:
        top = [title_row(snapshot, width, paused=False), *warning_rows(snapshot, width)]
        rows = process_rows(self._sorted(snapshot.processes), width, len(snapshot.processes))
        keys = [("Esc", "back")]
        if not rows:
            return [*top, *_nothing(snapshot, width)], [*keys, ("?", "help")]
        top += [_summary(snapshot, _ORDERS[self._order][0], width), Line(width), rows[0]]
        foot = [
            Line(width).add(f" {line}", "muted")
            for reason in unknown_rows(snapshot.processes)
            for line in wrap(f"— {reason}", width - 2, 2)
        ]
        foot = foot[: max(0, (height - len(top)) // 3)]
        space = max(1, height - len(top) - len(foot) - bool(foot))
        self._first = max(0, min(self._first, len(rows) - 1 - space))
        shown = rows[1 + self._first : 1 + self._first + space]
        if foot:
            foot.insert(0, Line(width))
        keys.append(("o", "next order"))
        if len(rows) - 1 > space:
            keys.append(("↑↓", f"scroll, {self._first + 1} of {len(rows) - 1}"))
        return [*top, *shown, *foot], [*keys, ("?", "help")]

    def _sorted(self, processes: Sequence[ProcessNow]) -> Sequence[ProcessNow]:
        weight = _ORDERS[self._order][1]
        if weight is None:
            return processes

        def heavy(process: ProcessNow) -> float:
            value = weight(process)
            return 1.0 if value is None else -value

        return sorted(processes, key=heavy)

    def action_scroll_by(self, by: int) -> None:
        self._first += by
        self.paint()

    def action_order(self) -> None:
        self._order = (self._order + 1) % len(_ORDERS)
        self._first = 0
        self.paint()

    def action_close(self) -> None:
        self.dismiss(None)


class MachineProcessScreen(ProcessScreen):
    """The same of this machine, with a recording of its own while it is open.

    For the home screen: ``app.push_screen(MachineProcessScreen(self.state.devices))``.
    """

    def __init__(self, first: Snapshot | None = None) -> None:
        """``first`` is shown until something newer is recorded."""
        super().__init__(lambda: self._newest)
        self._newest = first
        self._trouble = ""
        self._devices: DevicesNow | None = None

    def on_mount(self) -> None:
        super().on_mount()
        self._devices = DevicesNow(Delivery(self, self.take).post)
        self._devices.start()

    def on_unmount(self) -> None:
        # The recorder takes a moment to end; the next screen need not wait for it.
        if self._devices is not None:
            threading.Thread(target=self._devices.close, name="devices-end").start()

    def take(self, news: News) -> None:
        """Show what runs now."""
        if isinstance(news, Snapshot):
            self._newest = news
        else:
            self._trouble = news.trouble.text
        if self.on_top:
            self.paint()

    def _waiting(self) -> str:
        return clean(self._trouble) or super()._waiting()


def _summary(snapshot: Snapshot, order: str, width: int) -> Line:
    least = "at least " * may_be_truncated(snapshot.processes)
    on = sum(1 for each in snapshot.processes if each.gpus)
    own = sum(1 for each in snapshot.processes if each.owned)
    count = len(snapshot.processes)
    row = Line(width).add(f" {least}{count} process{'es' * (count != 1)}", "strong")
    row.add(f", {on} on a GPU" if snapshot.gpus else ", no GPU recorded")
    if not snapshot.machine_only:
        row.add(f", {least}{own} of the run")
    if not snapshot.status.live:
        row.add(", as of the last minute", "muted")
    label = f"order: {order} "
    return row.end(label, "muted") if row.left > len(label) else row


def _nothing(snapshot: Snapshot, width: int) -> list[Line]:
    """Why the table is empty."""
    if snapshot.no_gpu and snapshot.machine_only:
        why = f"no process to show: {snapshot.no_gpu}"
    elif snapshot.machine_only:
        why = "no process is on a GPU"
    elif snapshot.status.live:
        why = "no process of the run is there yet, and none is on a GPU"
    else:
        why = "no process was recorded in the last minute"
    return [Line(width), *(Line(width).add(f" {row}", "muted") for row in wrap(why, width - 2, 4))]
