"""What screens with processes do with them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Sequence
from functools import partial

from gpuwatch.core.processes import start_time
from gpuwatch.core.text import clean
from gpuwatch.tui import commands
from gpuwatch.tui.display_options import READ_ONLY
from gpuwatch.tui.feed.processes import ProcessNow
from gpuwatch.tui.messages import SIGNALS, signal_question
from gpuwatch.tui.widgets.base_screen import CanvasScreen

_LONGEST_COMMAND, _ONE_ROW, _MOST_NAMED = 600, 62, 12
"""Characters of a question about one process, and of each of several; most of those."""


class ProcessActs(CanvasScreen):
    """Shows all of a process, and sends it a signal."""

    @abstractmethod
    def say(self, message: str) -> None:
        """A word in the foot."""

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
    if len(text) <= longest:
        return text
    end = longest // 3
    return f"{text[: longest - end - 3]} … {text[-end:]}"
