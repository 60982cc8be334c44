"""What screens with processes do with one of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Sequence
from functools import partial

from textual.binding import Binding, BindingType

from gpuwatch.core.processes import start_time
from gpuwatch.core.text import clean
from gpuwatch.tui import commands
from gpuwatch.tui.display_options import READ_ONLY
from gpuwatch.tui.feed.processes import ProcessNow
from gpuwatch.tui.messages import SIGNALS, signal_question
from gpuwatch.tui.widgets.canvas_screen import CanvasScreen

MOVING: list[BindingType] = [
    Binding("down,j", "move(1)", "down", show=False, tooltip="the process below"),
    Binding("up", "move(-1)", "up", show=False, tooltip="the process above"),
    Binding("pagedown", "move(20)", "page down", show=False),
    Binding("pageup", "move(-20)", "page up", show=False),
    Binding("home", "move(-1000000)", "first row", show=False),
    Binding("end", "move(1000000)", "last row", show=False),
]
"""What selects another process; its action is ``move(rows)``."""
DETAILS_TEXT = "details: the command line, parent, directory, threads, variables of the process"
SIGNAL_TEXT = "send a signal to the process: terminate, interrupt or kill, after asking"
"""What the keys for it do."""
_LONGEST_COMMAND = 600


class ProcessActs(CanvasScreen):
    """Shows all of a process, and sends it a signal."""

    @abstractmethod
    def say(self, message: str) -> None:
        """A word in the foot."""

    @abstractmethod
    def processes_now(self) -> Sequence[ProcessNow]:
        """As last recorded."""

    def details(self, process: ProcessNow) -> None:
        """All that is known of one process, over this screen."""
        from gpuwatch.tui.processes.details import DetailsScreen

        def latest() -> ProcessNow | None:
            if process.start is not None and process.started is None:  # not recorded
                return process if start_time(process.pid) == process.start else None
            found = (each for each in self.processes_now() if each.pid == process.pid)
            return next((each for each in found if each.start == process.start), None)

        read_only = self.gpuwatch.look.read_only
        self.app.push_screen(DetailsScreen(process, latest, read_only=read_only))

    @property
    def may_ask(self) -> bool:
        """Whether nothing else has the keys by now."""
        return self.on_top

    def refused(self) -> bool:
        """Whether keys may not act; it is said then."""
        if self.gpuwatch.look.read_only:
            self.say(READ_ONLY)
        return self.gpuwatch.look.read_only

    def act(self, what: str, work: Awaitable[bool]) -> None:
        """Carry out ``work``, which says whether it was done; ``what``: a word for it."""
        self.say(f"{what} …")
        self.run_worker(work, group="act")

    def signal(self, process: ProcessNow) -> None:
        """Send a signal to a process that runs here, after asking which, with its user and its
        whole command line."""
        if process.start is not None and not self.refused():
            name = f"{process.pid}@{process.start}"
            self.run_worker(self._ask_signal(name), exclusive=True, group="ask")

    async def _ask_signal(self, process: str) -> None:
        outcome = await commands.run("signal", process, "--dry-run")
        if not outcome.good:
            self.say(outcome.complaint)
        elif self.may_ask:
            question = signal_question(clean(outcome.out.strip(), _LONGEST_COMMAND))
            self.ask(question, *(partial(self._begin_signal, process, each) for each in SIGNALS))

    def _begin_signal(self, process: str, signal: str) -> None:
        self.act("sending it", self._signal(process, signal))

    async def _signal(self, process: str, signal: str) -> bool:
        outcome = await commands.run("signal", process, "--signal", signal, "--yes", outlives=True)
        self.say(outcome.word if outcome.good else outcome.complaint)
        return outcome.good
