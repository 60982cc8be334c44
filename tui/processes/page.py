"""The page of processes, over the live screen and over the home screen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from gpuwatch.tui.feed.processes import ProcessNow, may_be_truncated
from gpuwatch.tui.feed.snapshot import Snapshot
from gpuwatch.tui.live.head_rows import title_row, warning_rows
from gpuwatch.tui.processes.acting import DETAILS_TEXT, MOVING, SIGNAL_TEXT, ProcessActs
from gpuwatch.tui.processes.rows import (
    ORDER_TEXT,
    ORDERS,
    in_order,
    next_order,
    said_of,
    table_rows,
    unknown_rows,
)
from gpuwatch.tui.processes.selection import Selection
from gpuwatch.tui.processes.tree import Branch, family
from gpuwatch.tui.widgets.canvas import Clicked
from gpuwatch.tui.widgets.cells import wrap
from gpuwatch.tui.widgets.line import Line

_LOOK_SECONDS = 0.5
"""Between two looks for a newer snapshot."""


class ProcessScreen(ProcessActs):
    """Who uses the GPUs and what the run's processes use; one is selected, ``o`` sorts."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,p", "close", "back"),
        Binding("o", "order", "sort", tooltip=ORDER_TEXT),
        Binding("enter", "details", "details", tooltip=DETAILS_TEXT),
        Binding("k", "signal", "signal", tooltip=SIGNAL_TEXT),
        Binding("T", "tree", "tree", tooltip="with parents and children, as trees, and back"),
        Binding("space", "move(20)", "page down", show=False),
        *MOVING,
    ]

    def __init__(
        self,
        latest: Callable[[], Snapshot | None],
        trouble: Callable[[], str | None] = lambda: None,
    ) -> None:
        """``latest`` gives the newest snapshot; it is asked twice a second while this is open.

        ``trouble`` says why there is none, and none to come.
        """
        super().__init__()
        self._latest, self._trouble = latest, trouble
        self._shown: Snapshot | None = None
        self._selection = Selection()
        self._top = 0
        """Row of the screen on which the first one stands."""
        self._order = 0
        self._message = ""
        self._tree: list[Branch] | None = None
        """``None``: there is just the list."""
        self._keys_that_apply: tuple[bool | None, ...] = ()

    def on_mount(self) -> None:
        self.set_interval(_LOOK_SECONDS, self._look)
        self.call_after_refresh(self.paint)

    def _look(self) -> None:
        if self.on_top and self._latest() is not self._shown:
            if self._tree is None:
                self.paint()
            else:
                self._plant()

    def paint(self) -> None:
        width, height = self.room
        if height < 1:
            return
        self._shown = snapshot = self._latest()
        if self._tree is not None:
            self._selection.processes = [process for process, _ in self._tree]
        else:
            self._selection.processes = self._sorted()
        self._look_at_keys()
        if snapshot is None:
            lines = [Line(width).add(" gpuwatch ", "brand").add("processes", "strong")]
            why = self._trouble() or "reading the processes …"
            lines += [Line(width), *_said(why, width)]
        else:
            lines = self._drawn(snapshot, width, height)
        if self._message:
            lines = [*lines, *(Line(width) for _ in range(height - len(lines)))][: height - 1]
            lines.append(Line(width).add(f" {self._message}", "strong"))
        self.show(lines[:height])

    def _sorted(self) -> list[ProcessNow]:
        return in_order(self.processes_now(), self._order)

    def _drawn(self, snapshot: Snapshot, width: int, height: int) -> list[Line]:
        top = [title_row(snapshot, width, paused=False), *warning_rows(snapshot, width)]
        selection, selected = self._selection, self._selection.process
        if selected is None:
            return [*top, *_nothing(snapshot, width)]
        summary = _summary(snapshot, width)
        top += [summary, Line(width)]
        most = max(0, (height - len(top)) // 3)
        foot = _command_rows(selected, width, most)
        foot = [*foot, *_reason_rows(selection.processes, width)][:most]
        space = max(1, height - len(top) - 1 - len(foot) - bool(foot))
        selection.scroll(space)
        self._top = len(top) + 1
        branches = [branch for _, branch in self._tree or ()]
        rows = table_rows(selection.processes, width, selection.first, space, branches)
        at = 1 + selection.at - selection.first
        rows[at] = rows[at].painted("select")
        order = ORDERS[self._order].title
        place = f"{order}, {selection.first + 1} to {selection.first + len(rows) - 1} "
        fitting = [text for text in (place, f"{order} ") if len(text) < summary.left]
        summary.end(fitting[0] if fitting else "", "muted")
        if foot:
            foot.insert(0, Line(width))
        return [*top, *rows, *foot]

    def say(self, message: str) -> None:
        self._message = message
        self.paint()

    def on_clicked(self, message: Clicked) -> None:
        """Select the row; a second click opens it."""
        at = message.y - self._top
        if at >= 0 and self._selection.first + at < len(self._selection.processes):
            self._selection.select(self._selection.first + at)
            self.paint()
            if message.count == 2:
                self.action_details()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A signal and a tree are only for what runs here."""
        if action == "signal":
            selected = self._selection.process
            return selected is not None and selected.start is not None
        if action == "tree":
            return any(process.start is not None for process in self._selection.processes)
        return True

    def _look_at_keys(self) -> None:
        """Have the footer drawn anew where other keys apply."""
        apply = tuple(self.check_action(action, ()) for action in ("signal", "tree"))
        if apply != self._keys_that_apply:
            self._keys_that_apply = apply
            self.refresh_bindings()

    def action_tree(self) -> None:
        """Parents and children too, and back."""
        if self._tree is None:
            self._plant()
        else:
            self.workers.cancel_group(self, "tree")
            self._tree = None
            self.paint()

    def _plant(self) -> None:
        self.run_worker(self._grow(), exclusive=True, group="tree")

    async def _grow(self) -> None:
        self._tree = await asyncio.to_thread(family, self._sorted()) or None
        self.paint()

    def action_scroll_by(self, by: int) -> None:
        """The wheel selects another row."""
        self.action_move(by)

    def action_move(self, by: int) -> None:
        """Select another row; the rows follow."""
        self._selection.select(self._selection.at + by)
        self.say("")

    def action_order(self) -> None:
        self._order = next_order(self.processes_now(), self._order)
        if self._tree is None:
            self.paint()
        else:
            self._plant()

    def processes_now(self) -> Sequence[ProcessNow]:
        snapshot = self._latest()
        return () if snapshot is None else snapshot.processes

    def action_details(self) -> None:
        selected = self._selection.process
        if selected is not None:
            self.details(selected)

    def action_signal(self) -> None:
        selected = self._selection.process
        if selected is not None:
            self.signal([selected])

    def action_close(self) -> None:
        self.dismiss(None)


def _summary(snapshot: Snapshot, width: int) -> Line:
    least = "at least " * may_be_truncated(snapshot.processes)
    on = sum(1 for each in snapshot.processes if each.gpus)
    own = sum(1 for each in snapshot.processes if each.owned)
    count = len(snapshot.processes)
    row = Line(width).add(f" {least}{count} process{'es' * (count != 1)}", "strong")
    known = f", {on} on a GPU" if on or not snapshot.untold else ", those on GPUs not known"
    row.add(known if snapshot.gpus else ", no GPU recorded")
    if not snapshot.machine_only:
        row.add(f", {least}{own} of the run")
    if not snapshot.status.live:
        row.add(", as of the last minute", "muted")
    return row


def _command_rows(process: ProcessNow, width: int, most: int) -> list[Line]:
    """The command line of the selected process, whole where ``most`` rows hold it."""
    rows = wrap(f"{process.pid}  {said_of(process)}", width - 2, most)
    return [Line(width).add(f" {row}") for row in rows] if said_of(process) else []


def _reason_rows(processes: Sequence[ProcessNow], width: int) -> list[Line]:
    return [
        Line(width).add(f" {line}", "muted")
        for reason in unknown_rows(processes)
        for line in wrap(f"— {reason}", width - 2, 2)
    ]


def _nothing(snapshot: Snapshot, width: int) -> list[Line]:
    """Why the table is empty."""
    if snapshot.no_gpu and snapshot.machine_only:
        why = f"no process to show: {snapshot.no_gpu}"
    elif snapshot.untold:
        why = snapshot.untold
    elif snapshot.machine_only:
        why = "no process is on a GPU"
    elif snapshot.status.live:
        why = "no process of the run is there yet, and none is on a GPU"
    else:
        why = "no process was recorded in the last minute"
    return [Line(width), *_said(why, width)]


def _said(text: str, width: int) -> list[Line]:
    return [Line(width).add(f" {row}", "muted") for row in wrap(text, width - 2, 4)]
