"""What screens with processes do with them."""

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
SIGNAL_TEXT = "send a signal, after asking: terminate, interrupt or kill"
"""What the keys for it do."""
_LONGEST_COMMAND, _MOST_NAMED = 600, 10
"""Characters and processes that a question names."""


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

    def signal(self, processes: Sequence[ProcessNow]) -> None:
        """Send a signal to processes that run here, after asking which, with the user and the
        whole command line of each."""
        names = [f"{each.pid}@{each.start}" for each in processes if each.start is not None]
        if names and not self.refused():
            self.run_worker(self._ask_signal(names), exclusive=True, group="ask")

    async def _ask_signal(self, names: Sequence[str]) -> None:
        outcome = await commands.run("signal", *names, "--dry-run")
        if not outcome.good:
            self.say(outcome.complaint)
        elif self.may_ask:
            lines = outcome.out.splitlines()
            longest = _LONGEST_COMMAND // len(lines)
            shown = [clean(line, longest) for line in lines[:_MOST_NAMED]]
            if len(lines) > _MOST_NAMED:
                shown.append(f"and {len(lines) - _MOST_NAMED} more")
            question = signal_question("\n".join(shown))
            self.ask(question, *(partial(self._begin_signal, names, each) for each in SIGNALS))

    def _begin_signal(self, names: Sequence[str], signal: str) -> None:
        self.act("sending it", self._signal(names, signal))

    async def _signal(self, names: Sequence[str], signal: str) -> bool:
        outcome = await commands.run("signal", *names, "--signal", signal, "--yes", outlives=True)
        sent = f"sent SIG{signal} to {len(names)} processes" if len(names) > 1 else outcome.word
        self.say(sent if outcome.good else outcome.complaint)
        return outcome.good
