"""One process: what is recorded of it, and what ``/proc`` tells while it runs here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Footer, Static

from gpuwatch.core.live_process import (
    ProcessFacts,
    command_line,
    command_text,
    environment,
    facts,
)
from gpuwatch.core.processes import start_time
from gpuwatch.core.text import clean, shell
from gpuwatch.core.units import NS, UNKNOWN, binary, clock_time, percent
from gpuwatch.tui.feed.processes import ProcessNow
from gpuwatch.tui.widgets.process_rows import said_of

_LOOK_SECONDS = 1.0
"""Between two looks at the process."""
_NOT_HERE = f"{UNKNOWN}  it is not seen to run on this machine now"
_NOT_OURS = f"{UNKNOWN}  its user and root alone may read it"

Told = tuple[str, str]
"""What it is, and its text."""


class DetailsScreen(ModalScreen[None]):
    """Scrolls with the arrows; ``e`` shows the environment variables, which nothing stores."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,f1", "app.help", "help", tooltip="all keys of this screen"),
        Binding("escape,q,enter", "dismiss", "back"),
        Binding("e", "environment", "variables", tooltip="its environment variables, and back"),
        Binding("f10", "app.quit", show=False),
    ]

    def __init__(
        self, process: ProcessNow, latest: Callable[[], ProcessNow | None], *, read_only: bool
    ) -> None:
        """``latest``: the same process as last recorded; ``None``: it has ended.

        ``read_only``: environment variables are not offered.
        """
        super().__init__()
        self._process = process
        self._latest = latest
        self._variables = False
        """Whether they are shown."""
        self._offered = process.start is not None and not read_only

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static()
        yield Footer(compact=True)

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()
        self._look()
        self.set_interval(_LOOK_SECONDS, self._look)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "environment" or self._offered

    def action_environment(self) -> None:
        self._variables = not self._variables
        self._look()

    def _look(self) -> None:
        self.run_worker(self._show(), exclusive=True)

    async def _show(self) -> None:
        latest = self._latest()
        self._process = latest or self._process
        # The kernel may let a reader wait for a process that is stuck: not this screen.
        told = await asyncio.to_thread(
            lambda: [*details(self._process), *_variables(self._process, asked=self._variables)]
        )
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        table.add_row(Text("process", style="bold"), Text(str(self._process.pid)))
        if latest is None:
            table.add_row("", Text("it has ended, or left the GPUs"))
        for what, text in told:
            table.add_row(Text(what, style="bold", no_wrap=True), Text(text, overflow="fold"))
        self.query_one(Static).update(table)


def details(process: ProcessNow) -> list[Told]:
    """What is known of it, with what ``/proc`` tells at this moment."""
    known = None if process.start is None else facts(process.pid, process.start)
    return [
        ("command", said_of(process) or UNKNOWN),
        ("user", clean(process.user or UNKNOWN)),
        *([("runs in", clean(process.place))] if process.place else []),
        ("parent", _NOT_HERE if known is None else _parent(known.parent)),
        ("started", _started(process, known)),
        ("directory", _NOT_HERE if known is None else clean(known.directory or _NOT_OURS)),
        ("threads", _NOT_HERE if known is None else str(known.threads)),
        ("CPU", UNKNOWN if process.cores is None else f"{100 * process.cores:.0f} % of one core"),
        ("memory", binary(process.resident)),
        *_gpus(process),
        *([("", f"{UNKNOWN}  {clean(process.reason)}")] if process.reason else []),
    ]


def _gpus(process: ProcessNow) -> Iterator[Told]:
    for use in process.gpus:
        name = f"GPU {clean(use.device).removeprefix('gpu')}"
        text = f"memory {binary(use.bytes)}, SM {percent(use.share)}"
        text += f", bandwidth {percent(use.memory_share)} of the time"
        yield name, text
        if use.reason:
            yield "", f"{UNKNOWN}  {clean(use.reason)}"


def _parent(pid: int) -> str:
    if pid == 0:
        return "none that is seen from here"
    start = start_time(pid)
    words: Sequence[str] = () if start is None else command_line(pid, start)
    return f"{pid}  {command_text(words)}" if words else str(pid)


def _started(process: ProcessNow, known: ProcessFacts | None) -> str:
    if process.started is None:
        return UNKNOWN
    age = f"{clock_time((process.t - process.started) / NS)} ago"
    if known is None:
        return age
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(known.started_unix))}, {age}"


def _variables(process: ProcessNow, *, asked: bool) -> list[Told]:
    if not asked or process.start is None:
        return []
    found = environment(process.pid, process.start)
    if found is None:
        ended = start_time(process.pid) != process.start
        return [("variables", _NOT_HERE if ended else _NOT_OURS)]
    lines = sorted(map(_variable, found))
    names = ["variables", *[""] * len(lines)]
    return list(zip(names, lines or ["none"], strict=False))


def _variable(text: str) -> str:
    """``NAME=value``; a value with other than printable characters is quoted as in a shell."""
    name, _, value = text.partition("=")
    line = f"{name}={value if value.isprintable() else shell(value)}"
    return clean(line, len(line))
