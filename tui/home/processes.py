"""The processes on the GPUs, on the home screen: one can be selected, and signalled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from gpuwatch.tui.feed.processes import ProcessNow
from gpuwatch.tui.live.rows import rule
from gpuwatch.tui.processes.rows import ORDERS, in_order, process_rows
from gpuwatch.tui.widgets.canvas import Canvas


class ProcessTable(Canvas, can_focus=True):
    """Rows of processes; drawn every second, so that it is no ``DataTable``."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k", "signal", "signal", tooltip="send a signal to the process, after asking"),
        Binding("o", "order", "sort", tooltip="sort by GPU memory, GPU time, CPU, memory in turn"),
        Binding("down,j", "move(1)", "down", show=False),
        Binding("up", "move(-1)", "up", show=False),
        Binding("pagedown", "move(10)", "page down", show=False),
        Binding("pageup", "move(-10)", "page up", show=False),
        Binding("home", "move(-1000000)", "first row", show=False),
        Binding("end", "move(1000000)", "last row", show=False),
    ]

    class Signal(Message):
        """A signal is wanted for a process: a screen's ``on_process_table_signal`` handles it."""

        def __init__(self, pid: int) -> None:
            super().__init__()
            self.pid = pid

    def __init__(self, *, ascii: bool = False) -> None:
        super().__init__(ascii=ascii)
        self._processes: Sequence[ProcessNow] = ()
        self._order = 0
        self._pid: int | None = None
        """Of the selected process: it stays selected where the order changes."""
        self._first = 0
        self._query = ""

    def update(self, processes: Sequence[ProcessNow], query: str = "") -> None:
        """Show these processes, which ``query`` has narrowed."""
        self._query = query
        self._processes = in_order(processes, self._order)
        self.draw()

    @property
    def selected(self) -> ProcessNow | None:
        """The process under the cursor."""
        return self._processes[self._at] if self._processes else None

    @property
    def _at(self) -> int:
        pids = [process.pid for process in self._processes]
        return pids.index(self._pid) if self._pid in pids else 0

    def draw(self) -> None:
        """Draw the rows that fit, the selected one among them."""
        width, height = self.size
        count = len(self._processes)
        if not count:
            found = f"no process matches {self._query}: Esc shows all"
            self.show([rule(found if self._query else "no process on the GPUs", width)])
            return
        room = max(1, height - 2)
        self._first = max(0, min(self._first, count - room, self._at), self._at - room + 1)
        shown = self._processes[self._first : self._first + room]
        title = f"processes on the GPUs  by {ORDERS[self._order][0]} ↓"
        title += f"  /{self._query}" if self._query else ""
        if room < count:
            title += f"  {self._first + 1} to {self._first + len(shown)} of {count}"
        rows = process_rows(shown, width, room)
        if self.has_focus:
            at = 1 + self._at - self._first
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
        at = self._first + event.y - 2
        if 0 <= at < len(self._processes) and event.y >= 2:
            self._pid = self._processes[at].pid
            self.draw()

    def action_move(self, by: int) -> None:
        if self._processes:
            at = max(0, min(len(self._processes) - 1, self._at + by))
            self._pid = self._processes[at].pid
            self.draw()

    def action_order(self) -> None:
        self._order = (self._order + 1) % len(ORDERS)
        self.update(self._processes, self._query)

    def action_signal(self) -> None:
        if self.selected is not None:
            self.post_message(self.Signal(self.selected.pid))


def wanted_rows(processes: Sequence[ProcessNow]) -> int:
    """Rows that all processes need, with the title and the heading."""
    return 2 + len(processes) if processes else 1


def on_gpus(processes: Sequence[ProcessNow], query: str = "") -> list[ProcessNow]:
    """The running processes on a GPU whose user, place or program has every word of ``query``."""
    words = query.casefold().split()
    return [
        process
        for process in processes
        if process.gpus
        and process.running
        and all(word in _text(process).casefold() for word in words)
    ]


def _text(process: ProcessNow) -> str:
    parts = (str(process.pid), process.user, process.place, process.name)
    return " ".join(part for part in parts if part)
