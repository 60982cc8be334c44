"""A table of processes, one of them selected: on the home screen and on the page of processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType

from gpuwatch.tui.feed.processes import ProcessNow
from gpuwatch.tui.processes.acting import ProcessActs
from gpuwatch.tui.widgets.canvas import Canvas, Scrolled
from gpuwatch.tui.widgets.line import Line, rule
from gpuwatch.tui.widgets.process_rows import ORDER_TEXT, ORDERS, in_order, next_order, table_rows

NOT_HERE = "marks are for signals, and this one is not seen to run here"
"""Why a process is not marked."""


class ProcessTable(Canvas, can_focus=True):
    """Rows of processes; drawn every second, so that it is no ``DataTable``.

    The selected process stays selected where the order changes, and is always shown.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "enter",
            "details",
            "details",
            tooltip="details: command line, parent, directory, threads, variables of the process",
        ),
        Binding(
            "k",
            "signal",
            "signal",
            tooltip="send a signal, after asking: terminate, interrupt or kill",
        ),
        Binding("space", "mark", "mark", tooltip="mark the process for a signal, or take it back"),
        Binding("o", "order", "sort", tooltip=ORDER_TEXT),
        Binding("down,j", "move(1)", "down", show=False, tooltip="the process below"),
        Binding("up", "move(-1)", "up", show=False, tooltip="the process above"),
        Binding("pagedown,space", "move(20)", "page down", show=False),
        Binding("pageup", "move(-20)", "page up", show=False),
        Binding("home", "move(-1000000)", "first row", show=False),
        Binding("end", "move(1000000)", "last row", show=False),
    ]

    def __init__(self, acts: ProcessActs, *, ascii: bool, marks: bool) -> None:
        """``acts``: the screen that acts; ``marks``: whether several can be marked for a signal."""
        super().__init__(ascii=ascii)
        self.processes: Sequence[ProcessNow] = ()
        """As they are listed."""
        self.order = 0
        """Place in ``ORDERS``."""
        self.first = 0
        """Place of the first one that is shown."""
        self._pid: int | None = None
        """Of the selected process; ``None``: the first one."""
        self._acts, self._marks = acts, marks
        self._branches: Sequence[str] = ()
        self._height = 0
        self._where = self._query = self._none = ""
        self._marked: frozenset[tuple[int, int | None]] = frozenset()
        """PIDs and starts; those that end fall out."""
        self._signals = False
        """Whether the selected process can be sent a signal from here."""

    def put(self, processes: Sequence[ProcessNow], branches: Sequence[str] = ()) -> None:
        """List these processes, in order; ``branches``: as they are, as trees."""
        self.processes = processes if branches else self.in_order(processes)
        self._branches = branches
        self._marked &= {(process.pid, process.start) for process in processes}
        signals = self.selected is not None and self.selected.start is not None
        if signals != self._signals:
            self._signals = signals
            self.screen.refresh_bindings()

    def fit(self, rows: int, where: str = "", query: str = "", none: str = "") -> None:
        """Draw in so many rows. ``where``: of a table with a title, whose processes they are;
        ``query``: what has narrowed them; ``none``: what stands in place of no process."""
        self._height, self._where, self._query, self._none = rows, where, query, none
        self.styles.height = rows
        self.display = rows > 0
        room = max(1, rows - (2 if where else 1))
        self.first = max(
            0, min(self.first, len(self.processes) - room, self.at), self.at - room + 1
        )
        self.draw()

    def in_order(self, processes: Sequence[ProcessNow]) -> list[ProcessNow]:
        """``processes`` as the table lists them."""
        return in_order(processes, self.order)

    @property
    def at(self) -> int:
        """Place of the selected process in the list."""
        pids = [process.pid for process in self.processes]
        return pids.index(self._pid) if self._pid in pids else 0

    @property
    def selected(self) -> ProcessNow | None:
        """The process under the cursor; ``None``: there is none at all."""
        return self.processes[self.at] if self.processes else None

    def draw(self) -> None:
        """Draw the rows that fit; a single row with a title says how many there are."""
        width, count = self.size.width, len(self.processes)
        above = [self._title(width)] if self._where else []
        if not count or len(above) == self._height:
            self.show(above)
            return
        room = max(1, self._height - 1 - len(above))
        rows = table_rows(self.processes, width, self.first, room, self._branches, self._marked)
        at = 1 + self.at - self.first
        if self.has_focus and at < len(rows):
            rows[at] = rows[at].painted("select")
        self.show([*above, *rows])

    def _title(self, width: int) -> Line:
        count = len(self.processes)
        if not count:
            return rule(self._none, width)
        if self._height == 1:
            word = "process" if count == 1 else "processes"
            return rule(f"{count} {word} on {self._where}: press p", width)
        title = f"processes on {self._where}  {ORDERS[self.order].title}"
        title += f"  /{self._query}" if self._query else ""
        title += f"  {len(self._marked)} marked" if self._marked else ""
        last = self.first + self._height - 2
        if self._height - 2 < count:
            title += f"  {self.first + 1} to {last} of {count}"
        return rule(title, width)

    def on_focus(self) -> None:
        self.draw()

    def on_blur(self) -> None:
        self.draw()

    def on_resize(self) -> None:
        self.draw()

    def on_click(self, event: events.Click) -> None:
        """Select the row; a second click opens it."""
        event.stop()
        at = self.first + event.y - (2 if self._where else 1)
        if self.first <= at < len(self.processes):
            self.action_move(at - self.at)
            if event.chain == 2:
                self.action_details()

    def on_scrolled(self, message: Scrolled) -> None:
        message.stop()
        self.action_move(message.by)

    def action_move(self, by: int) -> None:
        """Select another process; the rows follow."""
        if self.processes:
            at = max(0, min(len(self.processes) - 1, self.at + by))
            self._pid = self.processes[at].pid
            self._acts.moved()

    def action_order(self) -> None:
        self.order = next_order(self.processes, self.order)
        self._acts.sorted_anew()

    def action_mark(self) -> None:
        """Mark the selected process or take it back, and go on to the next."""
        selected = self.selected
        if selected is not None and selected.start is None:
            self._acts.say(f"{NOT_HERE}: process {selected.pid}")
        elif selected is not None:
            self._marked ^= {(selected.pid, selected.start)}
            self.action_move(1)

    def action_signal(self) -> None:
        marked = [each for each in self.processes if (each.pid, each.start) in self._marked]
        chosen = marked or ([self.selected] if self.selected is not None else [])
        if chosen:
            self._acts.signal(chosen)

    def action_details(self) -> None:
        if self.selected is not None:
            self._acts.details(self.selected)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A signal is only for what runs here. So is a mark, but its key says so: else it would
        mark a session."""
        if action == "mark":
            return self._marks
        return action != "signal" or self._signals


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
