"""What screens with processes do with one of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable
from functools import partial

from textual.binding import Binding, BindingType

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
SIGNAL_TEXT = "send a signal to the process: terminate, interrupt or kill, after asking"
"""What the key for it does."""
_LONGEST_COMMAND = 600


class ProcessActs(CanvasScreen):
    """Sends a signal to a process."""

    @abstractmethod
    def say(self, message: str) -> None:
        """A word in the foot."""

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
