"""The processes on the GPUs, on the home screen: selected or marked ones can be signalled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from gpuwatch.tui.feed.processes import ProcessNow
from gpuwatch.tui.live.rows import rule
from gpuwatch.tui.processes.acting import DETAILS_TEXT, MOVING, SIGNAL_TEXT
from gpuwatch.tui.processes.rows import ORDER_TEXT, ORDERS, in_order, next_order, table_rows
from gpuwatch.tui.processes.selection import Selection
from gpuwatch.tui.widgets.canvas import Canvas

NOT_HERE = "marks are for signals, and this one is not seen to run here"
"""Why a process is not marked."""


class ProcessTable(Canvas, can_focus=True):
    """Rows of processes; drawn every second, so that it is no ``DataTable``."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "details", "details", tooltip=DETAILS_TEXT),
        Binding("k", "signal", "signal", tooltip=SIGNAL_TEXT),
        Binding("space", "mark", "mark", tooltip="mark the process for a signal, or take it back"),
        Binding("o", "order", "sort", tooltip=ORDER_TEXT),
        *MOVING,
    ]

    class Wanted(Message):
        """Something is wanted with processes: ``on_process_table_wanted`` of a screen does it."""

        def __init__(self, processes: Sequence[ProcessNow], what: str) -> None:
            """``what``: ``signal``, or ``details`` of a single one."""
            super().__init__()
            self.processes, self.what = processes, what

    class Refused(Message):
        """A key does nothing here: ``on_process_table_refused`` of a screen says why."""

        def __init__(self, why: str) -> None:
            super().__init__()
            self.why = why

    def __init__(self, *, ascii: bool = False) -> None:
        super().__init__(ascii=ascii)
        self._selection = Selection()
        self._order = 0
        self._query, self._where, self._untold = "", "the GPUs", ""
        self._marked: frozenset[tuple[int, int | None]] = frozenset()
        """PIDs and starts; those that end fall out."""
        self._signals = False
        """Whether the selected process can be sent a signal from here."""

    def update(
        self, processes: Sequence[ProcessNow], query: str = "", whose: str = "", untold: str = ""
    ) -> None:
        """Show these processes, which ``query`` has narrowed; ``whose``: the machine that they are
        of, empty for this one; ``untold``: why not all are known."""
        self._query, self._untold = query, untold
        self._where = f"the GPUs of {whose}" if whose else "the GPUs"
        self._selection.processes = in_order(processes, self._order)
        self._marked &= {(process.pid, process.start) for process in processes}
        self.draw()

    @property
    def selected(self) -> ProcessNow | None:
        """The process under the cursor."""
        return self._selection.process

    def draw(self) -> None:
        """Draw the rows that fit, the selected one among them; a single row says how many."""
        self._look_at_keys()
        width, height = self.size
        selection, count = self._selection, len(self._selection.processes)
        if not count:
            none = f"no process on {self._where}"
            if self._query:
                none = f"no process matches {self._query}: Esc shows all"
            elif self._untold:
                none = f"the processes on {self._where} are not known"
            self.show([rule(none, width)])
            return
        if height == 1:
            word = "process" if count == 1 else "processes"
            self.show([rule(f"{count} {word} on {self._where}: press p", width)])
            return
        room = max(1, height - 2)
        selection.scroll(room)
        first, last = selection.first, min(count, selection.first + room)
        title = f"processes on {self._where}  {ORDERS[self._order].title}"
        title += f"  /{self._query}" if self._query else ""
        title += f"  {len(self._marked)} marked" if self._marked else ""
        if room < count:
            title += f"  {first + 1} to {last} of {count}"
        rows = table_rows(selection.processes, width, first, room, marked=self._marked)
        if self.has_focus:
            at = 1 + selection.at - first
            rows[at] = rows[at].painted("select")
        self.show([rule(title, width), *rows])

    def on_focus(self) -> None:
        self.draw()

    def on_blur(self) -> None:
        self.draw()

    def on_resize(self) -> None:
        self.draw()

    def on_click(self, event: events.Click) -> None:
        event.stop()
        at = self._selection.first + event.y - 2
        if event.y >= 2 and at < len(self._selection.processes):
            self._selection.select(at)
            self.draw()
            if event.chain == 2:
                self.action_details()

    def action_move(self, by: int) -> None:
        self._selection.select(self._selection.at + by)
        self.draw()

    def action_order(self) -> None:
        self._order = next_order(self._selection.processes, self._order)
        self._selection.processes = in_order(self._selection.processes, self._order)
        self.draw()

    def action_mark(self) -> None:
        """Mark the selected process or take it back, and go on to the next."""
        selected = self.selected
        if selected is not None and selected.start is None:
            self.post_message(self.Refused(f"{NOT_HERE}: process {selected.pid}"))
        elif selected is not None:
            self._marked ^= {(selected.pid, selected.start)}
            self.action_move(1)

    def action_signal(self) -> None:
        listed = self._selection.processes
        marked = [each for each in listed if (each.pid, each.start) in self._marked]
        chosen = marked or ([self.selected] if self.selected is not None else [])
        if chosen:
            self.post_message(self.Wanted(chosen, "signal"))

    def action_details(self) -> None:
        if self.selected is not None:
            self.post_message(self.Wanted([self.selected], "details"))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A signal is only for what runs here. So is a mark, but its key says so: else it would
        mark a session."""
        return action != "signal" or self._signals

    def _look_at_keys(self) -> None:
        """Have the footer drawn anew where other keys apply."""
        signals = self.selected is not None and self.selected.start is not None
        if signals != self._signals:
            self._signals = signals
            self.screen.refresh_bindings()


def wanted_rows(processes: Sequence[ProcessNow]) -> int:
    """Rows that all processes need, with the title and the heading."""
    return 2 + len(processes) if processes else 1


def on_gpus(processes: Sequence[ProcessNow], query: str = "") -> list[ProcessNow]:
    """The running processes on a GPU whose user, place or command has every word of ``query``."""
    words = query.casefold().split()
    return [
        process
        for process in processes
        if process.gpus
        and process.running
        and all(word in _text(process).casefold() for word in words)
    ]


def _text(process: ProcessNow) -> str:
    parts = (str(process.pid), process.user, process.place, process.name, process.command)
    return " ".join(part for part in parts if part)
