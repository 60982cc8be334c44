"""A table of processes, one of them selected, on the home screen and on the page of processes; and
what these do with them."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Awaitable, Sequence
from functools import partial
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType

from gpuwatch.core.processes import start_time
from gpuwatch.core.text import clean, cut
from gpuwatch.core.units import counted
from gpuwatch.tui import commands
from gpuwatch.tui.feed.processes import ProcessNow, owner_text
from gpuwatch.tui.messages import SIGNALS, signal_question
from gpuwatch.tui.widgets.base_screen import CanvasScreen
from gpuwatch.tui.widgets.canvas import Canvas, Scrolled
from gpuwatch.tui.widgets.line import Line, fit, rule
from gpuwatch.tui.widgets.process_rows import (
    ORDER_TEXT,
    in_order,
    next_order,
    order_title,
    table_rows,
)

_LEAST_TOLD = 12
"""Columns from which on a single row names a process."""
_LONGEST_COMMAND, _ONE_ROW, _MOST_NAMED = 600, 62, 12
"""Characters of a question about one process, and of each of several; most of those."""


class ProcessActs(CanvasScreen):
    """Shows all of a process, and sends it a signal."""

    @abstractmethod
    def processes_now(self) -> Sequence[ProcessNow]:
        """As last recorded."""

    def moved(self) -> None:
        """Another process was selected."""
        self.paint()

    def sorted_anew(self) -> None:
        """Another order was chosen."""
        self.paint()

    def details(self, process: ProcessNow) -> None:
        """All that is known of one process, over this screen."""
        from gpuwatch.tui.processes.page import DetailsScreen

        def latest() -> ProcessNow | None:
            known = (process.pid, process.start)
            found = (each for each in self.processes_now() if (each.pid, each.start) == known)
            # A parent or child of those, or one that is no more among the busiest, may run still.
            beside = process.start is not None and process.owned is None and not process.gpus
            runs = beside and start_time(process.pid) == process.start
            return next(found, process if runs else None)

        read_only = self.gpuwatch.look.read_only
        self.app.push_screen(DetailsScreen(process, latest, read_only=read_only))

    @property
    def may_ask(self) -> bool:
        """Whether nothing else has the keys by now."""
        return self.on_top

    def act(self, what: str, work: Awaitable[bool]) -> None:
        """Carry out ``work``, which says whether it was done; ``what``: a word for it."""
        self.say(f"{what} …")
        self.run_worker(work, group="act")

    def signal(self, processes: Sequence[ProcessNow]) -> None:
        """Send a signal to processes that run here, after asking which, with the user and the
        whole command line of each."""
        names = [f"{each.pid}@{each.start}" for each in processes if each.start is not None]
        if len(names) > _MOST_NAMED:
            self.say(f"at most {_MOST_NAMED} processes at once: a question names each of them")
        elif names and not self.refused():
            self.run_worker(self._ask_signal(names), exclusive=True, group="ask")

    async def _ask_signal(self, names: Sequence[str]) -> None:
        outcome = await commands.run("signal", *names, "--dry-run")
        if not outcome.good:
            self.say(outcome.complaint)
        elif self.may_ask:
            longest = _LONGEST_COMMAND if len(names) == 1 else _ONE_ROW
            lines = (shortened(clean(line), longest) for line in outcome.out.splitlines())
            question = signal_question("\n".join(lines))
            self.ask(question, *(partial(self._begin_signal, names, each) for each in SIGNALS))

    def _begin_signal(self, names: Sequence[str], signal: str) -> None:
        self.act("sending it", self._signal(names, signal))

    async def _signal(self, names: Sequence[str], signal: str) -> bool:
        outcome = await commands.run("signal", *names, "--signal", signal, "--yes", outlives=True)
        sent = f"sent SIG{signal} to {len(names)} processes" if len(names) > 1 else outcome.word
        self.say(sent if outcome.good else outcome.complaint)
        return outcome.good


def shortened(text: str, longest: int) -> str:
    """``text`` without its middle where it is longer: both ends tell processes apart."""
    return cut(text, longest, " … ", longest // 3)


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
        first = min(self.first, len(self.processes) - room, self.at)
        self.first = max(0, first, self.at - room + 1)
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
            many = f"{counted(count, 'process', 'processes')} on {self._where}: "
            room = width - len(many) - len("── ; press p ──")
            named = f"{fit(owner_text(self.processes[0]), room)}; " if room > _LEAST_TOLD else ""
            return rule(f"{many}{named}press p", width)
        title = f"processes on {self._where}  {order_title(self.processes, self.order)}"
        title += f"  /{self._query}" if self._query else ""
        title += f"  {len(self._marked)} marked" if self._marked else ""
        last = self.first + self._height - 2
        if self._height - 2 < count:
            title += f"  {self.first + 1} to {last} of {count}"
        return rule(title, width)

    on_focus = on_blur = on_resize = draw

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

    def select(self, processes: Sequence[ProcessNow]) -> None:
        """Select the first of ``processes``, if any, in the order of the table."""
        for process in self.in_order(processes)[:1]:
            self._pid = process.pid

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
    """The running processes on a GPU that match ``query``; of a machine without GPUs all."""
    any_on_gpus = any(process.gpus for process in processes)
    found = matching(processes, query)
    return [each for each in found if (each.gpus or not any_on_gpus) and each.running]


def matching(processes: Sequence[ProcessNow], query: str) -> list[ProcessNow]:
    """Those whose PID, user, place or command has every word of ``query``; one of digits where a
    number begins: 7 is in llama7b, 3 neither in PID 5304 nor in python3, which most share."""
    words = query.casefold().split()
    begins = r"(?<!\d)(?<!python)"
    wanted = [re.compile(begins * word.isdigit() + re.escape(word)) for word in words]
    return [each for each in processes if all(word.search(_text(each)) for word in wanted)]


def _text(process: ProcessNow) -> str:
    parts = (str(process.pid), process.user, process.place, process.name, process.command)
    return " ".join(part for part in parts if part).casefold()
