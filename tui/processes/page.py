"""The page of processes, over the live screen and over the home screen."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import ClassVar

from textual.binding import Binding, BindingType

from gpuwatch.core.text import clean
from gpuwatch.tui.feed.delivery import Delivery, News
from gpuwatch.tui.feed.hardware.devices_now import DevicesNow
from gpuwatch.tui.feed.processes import may_be_truncated
from gpuwatch.tui.feed.snapshot import Snapshot
from gpuwatch.tui.live.head_rows import title_row, warning_rows
from gpuwatch.tui.processes.rows import ORDERS, in_order, process_rows, unknown_rows
from gpuwatch.tui.widgets.canvas_screen import CanvasScreen
from gpuwatch.tui.widgets.cells import wrap
from gpuwatch.tui.widgets.line import Line
from gpuwatch.tui.widgets.page import SCROLLING

_LOOK_SECONDS = 0.5
"""Between two looks for a newer snapshot."""


class ProcessScreen(CanvasScreen):
    """Who uses the GPUs and what the run's processes use; it scrolls, ``o`` sorts."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,p,enter", "close", "back"),
        Binding("o", "order", "sort", tooltip="sort by GPU memory, GPU time, CPU, memory in turn"),
        *SCROLLING,
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
        width, height = self.room
        if height < 1:
            return
        self._shown = snapshot = self._latest()
        if snapshot is None:
            lines = [Line(width).add(" gpuwatch ", "brand").add("processes", "strong")]
            lines += [Line(width), Line(width).add(f" {self._waiting()}", "muted")]
        else:
            lines = self._drawn(snapshot, width, height)
        self.show(lines[:height])

    def _waiting(self) -> str:
        return "reading the processes …"

    def _drawn(self, snapshot: Snapshot, width: int, height: int) -> list[Line]:
        top = [title_row(snapshot, width, paused=False), *warning_rows(snapshot, width)]
        rows = process_rows(
            in_order(snapshot.processes, self._order), width, len(snapshot.processes)
        )
        if not rows:
            return [*top, *_nothing(snapshot, width)]
        summary = _summary(snapshot, width)
        top += [summary, Line(width), rows[0]]
        foot = [
            Line(width).add(f" {line}", "muted")
            for reason in unknown_rows(snapshot.processes)
            for line in wrap(f"— {reason}", width - 2, 2)
        ]
        foot = foot[: max(0, (height - len(top)) // 3)]
        space = max(1, height - len(top) - len(foot) - bool(foot))
        self._first = max(0, min(self._first, len(rows) - 1 - space))
        shown = rows[1 + self._first : 1 + self._first + space]
        order = f"by {ORDERS[self._order][0]}"
        place = f"{order}, {self._first + 1} to {self._first + len(shown)} "
        fitting = [text for text in (place, f"{order} ") if len(text) < summary.left]
        summary.end(fitting[0] if fitting else "", "muted")
        if foot:
            foot.insert(0, Line(width))
        return [*top, *shown, *foot]

    def action_scroll_by(self, by: int) -> None:
        self._first += by
        self.paint()

    def action_order(self) -> None:
        self._order = (self._order + 1) % len(ORDERS)
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


def _summary(snapshot: Snapshot, width: int) -> Line:
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
    return row


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
