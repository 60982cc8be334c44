"""The page of processes, over the live screen and over home, and that of a single process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Footer, Static

from gpuwatch.core.aggregate import grouped
from gpuwatch.core.live_process import ProcessFacts, command_line, command_text, environment, facts
from gpuwatch.core.processes import parents, start_time
from gpuwatch.core.text import clean, shell
from gpuwatch.core.units import NS, UNKNOWN, binary, clock_time, counted, percent
from gpuwatch.tui.feed.busiest import described
from gpuwatch.tui.feed.processes import ProcessNow, may_be_truncated, said_of
from gpuwatch.tui.feed.snapshot import Snapshot
from gpuwatch.tui.processes.table import ProcessActs, ProcessTable, matching
from gpuwatch.tui.widgets.base_screen import FIND, FindScreen
from gpuwatch.tui.widgets.canvas import Canvas, too_small
from gpuwatch.tui.widgets.head_rows import title_row, warning_rows
from gpuwatch.tui.widgets.line import Line, wrap
from gpuwatch.tui.widgets.process_rows import order_title, unknown_rows

_LOOK_SECONDS = 0.5
"""Between two looks for a newer snapshot."""


class ProcessScreen(ProcessActs, FindScreen):
    """Who uses the GPUs and what the run's processes use; one is selected, ``o`` sorts."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,p", "close", "back"),
        Binding(
            "slash", "find", "find", tooltip="find words of user, PID or command; Esc shows all"
        ),
        Binding("T", "tree", "tree", tooltip="with parents and children, as trees, and back"),
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
        self._message = ""
        self._tree: list[Branch] | None = None
        """``None``: there is just the list."""
        self._has_tree = False
        """Whether any process can be shown with its parents."""

    def compose(self) -> ComposeResult:
        ascii = self.gpuwatch.look.ascii
        self._top = Canvas(ascii=ascii)
        self._table = ProcessTable(self, ascii=ascii, marks=False)
        self._foot = Canvas(ascii=ascii)
        yield self._top
        yield self._table
        yield self._foot
        yield self.field
        yield Footer(compact=True)

    def on_mount(self) -> None:
        self._table.put(self.processes_now())  # for a key that comes before the first picture
        self._table.focus()
        self.set_interval(_LOOK_SECONDS, self._look)

    def _look(self) -> None:
        if self.on_top and self._latest() is not self._shown:
            self.sorted_anew()

    def paint(self) -> None:
        width, height = self.room
        self._shown = snapshot = self._latest()
        if self._tree is not None:
            self._table.put([each for each, _ in self._tree], [branch for _, branch in self._tree])
        else:
            self._table.put(matching(self.processes_now(), self._wanted))
        has_tree = any(process.start is not None for process in self._table.processes)
        if has_tree != self._has_tree:
            self._has_tree = has_tree
            self.refresh_bindings()
        selected = self._table.selected
        message = [Line(width).add(f" {self._message}", "strong")] if self._message else []
        if self.field.display:
            message = [Line(width).add(FIND, "key")]
            self.field.stand(len(FIND), height - 1, width - len(FIND))
        elif self.focused is None:
            self._table.focus()
        height -= len(message)
        top, below, rows = self._above(snapshot, width), [], 0
        if snapshot is not None and selected is not None and not too_small(self.app.size):
            summary = _summary(snapshot, width, len(self._table.processes), self._wanted)
            summary.add(f"  /{self._wanted}" if self._wanted else "", "key")
            top += [summary, Line(width)]
            most = max(0, (height - len(top)) // 3)
            said = said_of(selected)
            texts = wrap(f"{selected.pid}  {said}", width - 2, most) if said else []
            below = [Line(width).add(f" {text}") for text in texts]
            for reason in unknown_rows(self._table.processes):
                texts = wrap(f"— {reason}", width - 2, 2)
                below += [Line(width).add(f" {text}", "muted") for text in texts]
            below = [Line(width), *below[:most]] if below[:most] else []
            space = max(1, height - len(top) - 1 - len(below))
            rows = 1 + min(space, len(self._table.processes))
            self._table.fit(rows)
            order = order_title(self._table.processes, self._table.order)
            first = self._table.first
            orders = (f"{order}, {first + 1} to {first + rows - 1} ", f"{order} ")
            fitting = [text for text in orders if len(text) < summary.left]
            summary.end(fitting[0] if fitting else "", "muted")
        else:
            self._table.fit(0)
        self._top.styles.height = min(len(top), height) if rows else height
        self._top.show(top)
        room = height - len(top) - rows
        blank = [Line(width)] * (room - len(below) if rows else 0)
        self._foot.styles.height = (room if rows else 0) + len(message)
        self._foot.show([*below, *blank, *message])

    def _above(self, snapshot: Snapshot | None, width: int) -> list[Line]:
        """What stands above the table, or in its place."""
        if snapshot is None:
            title = Line(width).add(" gpuwatch ", "brand").add("processes", "strong")
            return [title, *_said(self._trouble() or "reading the processes …", width)]
        top = [title_row(snapshot, width, paused=False), *warning_rows(snapshot, width)]
        if self._table.processes:
            return top
        if self._wanted and snapshot.processes:
            why = f"no process matches {self._wanted}: Esc shows all"
        elif snapshot.no_gpu and snapshot.machine_only:
            why = f"no process to show: {snapshot.no_gpu}"
        elif snapshot.untold:
            why = snapshot.untold
        elif snapshot.machine_only:
            why = "no process is on a GPU"
        elif snapshot.status.live:
            why = "no process of the run is there yet, and none is on a GPU"
        else:
            why = "no process was recorded in the last minute"
        return [*top, *_said(why, width)]

    def say(self, message: str) -> None:
        self._message = message
        self.paint()

    def moved(self) -> None:
        self.say("")

    def sorted_anew(self) -> None:
        if self._tree is None:
            self.paint()
        else:
            self.run_worker(self._grow(), exclusive=True, group="tree")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A tree is only for what runs here."""
        return action != "tree" or self._has_tree

    def action_tree(self) -> None:
        """Parents and children too, and back."""
        if self._tree is None:
            self.run_worker(self._grow(), exclusive=True, group="tree")
        else:
            self.workers.cancel_group(self, "tree")
            self._tree = None
            self.paint()

    async def _grow(self) -> None:
        processes = self._table.in_order(matching(self.processes_now(), self._wanted))
        self._tree = await asyncio.to_thread(family, processes)
        self.paint()

    def processes_now(self) -> Sequence[ProcessNow]:
        snapshot = self._latest()
        return () if snapshot is None else snapshot.processes

    def narrow(self, wanted: str) -> None:
        self._wanted = wanted
        self._table.select(matching(self.processes_now(), wanted) if wanted else ())
        self.sorted_anew()


def _summary(snapshot: Snapshot, width: int, shown: int, wanted: str) -> Line:
    """``shown``: how many processes there are with parents and children; ``wanted``: what has
    narrowed them."""
    least = "at least " * may_be_truncated(snapshot.processes)
    on = sum(bool(each.gpus) for each in snapshot.processes)
    own = sum(bool(each.owned) for each in snapshot.processes)
    count = len(snapshot.processes)
    of = f"{len(matching(snapshot.processes, wanted))} of " if wanted else ""
    row = Line(width).add(f" {of}{least}{counted(count, 'process', 'processes')}", "strong")
    known = f", {on} on a GPU" if on or not snapshot.untold else ", those on GPUs not known"
    row.add(known if snapshot.gpus else "" if snapshot.machine_only else ", no GPU recorded")
    if shown > count and not wanted:
        row.add(f", with {counted(shown - count, 'parent or child', 'parents and children')}")
    if not snapshot.machine_only:
        row.add(f", {least}{own} of the run")
    if not snapshot.status.live:
        row.add(", as sampled last", "muted")
    return row


def _said(text: str, width: int) -> list[Line]:
    """Below a blank row."""
    rows = (Line(width).add(f" {row}", "muted") for row in wrap(text, width - 2, 4))
    return [Line(width), *rows]


Branch = tuple[ProcessNow, str]
"""A process, and what stands before it in a tree."""

_RELATIVE = "a parent or child, which is not sampled"


def family(processes: Sequence[ProcessNow]) -> list[Branch]:
    """``processes``, with the parent and the children of each that runs here."""
    above = parents()
    below = grouped((parent, pid) for pid, parent in above.items())
    recorded = {process.pid: process for process in processes}
    nodes: dict[int, ProcessNow] = {}
    for process in processes:
        near = [process.pid]
        if process.start is not None:
            near = [above.get(process.pid, 0), *near, *below.get(process.pid, ())]
        for pid in near:
            node = nodes.get(pid) or recorded.get(pid) or _relative(pid, process.t)
            if node is not None:
                nodes[pid] = node
    return list(_branches(nodes, above))


def _relative(pid: int, t: int) -> ProcessNow | None:
    """A process that only ``/proc`` tells of; ``None``: it has ended, or is the system's first."""
    start = start_time(pid) if pid > 1 else None
    if start is None:
        return None
    since_boot = time.clock_gettime(time.CLOCK_BOOTTIME)
    return described((pid, start), t, since_boot, cores=None, resident=None, reason=_RELATIVE)


def _branches(nodes: Mapping[int, ProcessNow], above: Mapping[int, int]) -> Iterator[Branch]:
    """Each process once, behind its parent where that is among them."""
    below: dict[int, list[int]] = {}
    roots = []
    for pid, process in nodes.items():
        parent = above.get(pid, 0)
        if process.start is not None and parent in nodes and nodes[parent].start is not None:
            below.setdefault(parent, []).append(pid)
        else:
            roots.append(pid)

    def under(pid: int, before: str) -> Iterator[Branch]:
        children = below.get(pid, [])
        for child in children:
            last = child == children[-1]
            yield nodes[child], f"{before}{'└─ ' if last else '├─ '}"
            yield from under(child, before + ("   " if last else "│  "))

    for pid in roots:
        yield nodes[pid], ""
        yield from under(pid, "")


_FOLLOW_SECONDS = 1.0
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
        self.set_interval(_FOLLOW_SECONDS, self._look)

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
        ("CPU", percent(process.cores, whole=True) + " of one core" * (process.cores is not None)),
        ("memory", binary(process.resident)),
        *_gpus(process),
        *([("", f"{UNKNOWN}  {clean(process.reason)}")] if process.reason else []),
    ]


def _gpus(process: ProcessNow) -> Iterator[Told]:
    for use in process.gpus:
        name = f"GPU {clean(use.device).removeprefix('gpu')}"
        text = f"memory {binary(use.bytes)}, GPU {percent(use.share)}"
        text += f", memory busy {percent(use.memory_share)}"
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
    began = process.started_unix if known is None else known.started_unix
    if began is None or process.started is None:
        return UNKNOWN
    local = time.localtime(min(max(began, 0.0), 1e11))  # a foreign file may contain any
    date = time.strftime("%Y-%m-%d %H:%M:%S", local)
    ago = f", {clock_time((process.t - process.started) / NS)} ago"
    # What is over, or shown as it was, did not start so long before now.
    return date if known is None else date + ago


def _variables(process: ProcessNow, *, asked: bool) -> list[Told]:
    if not asked or process.start is None:
        return []
    found = environment(process.pid, process.start)
    if found is None:
        ended = start_time(process.pid) != process.start
        return [("variables", _NOT_HERE if ended else _NOT_OURS)]
    first, *rest = sorted(map(_variable, found)) or ["none"]
    return [("variables", first), *(("", line) for line in rest)]


def _variable(text: str) -> str:
    """``NAME=value``; a value with other than printable characters is quoted as in a shell."""
    name, _, value = text.partition("=")
    line = f"{name}={value if value.isprintable() else shell(value)}"
    return clean(line, len(line))
