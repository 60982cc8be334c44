"""What every home screen has: processes, the list of sessions and studies, the keys.

Above them stands what the subclass shows: the devices here, or machines elsewhere.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.css.scalar import Scalar
from textual.widget import Widget
from textual.widgets import DataTable, Footer, Input

from gpuwatch.analysis.summary.finding import FIELDS
from gpuwatch.tui.feed.processes import ProcessNow
from gpuwatch.tui.home.list import LINE_END, Edit
from gpuwatch.tui.home.reading import SessionReading
from gpuwatch.tui.home.rows import empty_rows, foot_rows, heading
from gpuwatch.tui.home.table import COLUMNS, ORDERS, SessionTable
from gpuwatch.tui.processes.page import ProcessScreen
from gpuwatch.tui.processes.table import ProcessTable, on_gpus
from gpuwatch.tui.widgets.base_screen import Field
from gpuwatch.tui.widgets.canvas import Canvas, too_small
from gpuwatch.tui.widgets.line import Line
from gpuwatch.tui.widgets.page import SnapshotPage, number_lines

_BUSIEST, LEAST_CORES, _LATELY = 8, 0.01, 15
"""Most rows for processes where there is no GPU: as many as used so much of a core at once in that
many snapshots, and some more on a high screen. Fewer would have the list move as one rests."""
_LEAST_LISTED = 3
"""Rows of the list that what is above leaves to it; of many processes it has half."""
_ROOMY = 30
"""Rows of the screen from which on several alerts have a place."""
_OF_DEVICES = frozenset({"numbers", "processes"})
_OF_SESSIONS = frozenset(
    ("mark", "compare", "filter", "log", "sort", "reverse", "delete", "export", "label")
)
"""Actions for what there may be none of."""
_LEAST_SAID = 4
"""Rows that are left to what is said in the place of an empty list."""
_EMPTY_LIST = 11
"""Rows for what stands in the place of an empty list."""
_LEAST_BELOW = 6
"""Rows below the devices from which on one is for the processes, however many there are."""


class Home(SessionReading):
    """Processes and sessions, below what the subclass shows."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "new", "new run", tooltip="start a run"),
        Binding("s", "stop", "stop", tooltip="stop the run or the study, after asking"),
        Binding(
            "a", "take_up", "record on", tooltip="record on: take up a run whose recorder died"
        ),
        Binding("q", "leave", "leave", tooltip="leave; runs go on"),
        Binding("space", "mark", "mark", tooltip="mark the session or study"),
        Binding("c", "compare", "compare", tooltip="compare what is marked, else the study"),
        Binding("slash", "filter", "find", tooltip=f"find words, or {': '.join(FIELDS)}:"),
        Binding("l", "log", "log", tooltip="the log of the run"),
        Binding("p", "processes", "processes", tooltip="who uses the GPUs, on a page of its own"),
        Binding("i", "numbers", "numbers", tooltip="every number of the devices"),
        Binding("o", "sort", "sort", tooltip="sort by started, elapsed, step time and so on"),
        Binding(
            "d", "delete", "delete", tooltip="delete what is marked, else the row, after asking"
        ),
        Binding("e", "export", "report", tooltip="report of what is marked, else of the row"),
        Binding("R", "label('name')", "name", tooltip="give it a name, to find it by"),
        Binding("T", "label('tags')", "tags", tooltip="its tags"),
        Binding("N", "label('note')", "note", tooltip="a note on it"),
        Binding("r", "look_again", "refresh", tooltip="read the list again"),
        Binding("O", "reverse", "reverse", show=False, tooltip="sort the other way round"),
        Binding("enter", "open", "open", show=False),
        Binding("tab", "app.focus_next", "to the next list", show=False),
        Binding(
            "escape", "back", "back", show=False, tooltip="drop the marks, then show all again"
        ),
    ]

    SIGNS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("• ▲", "a medium, a high level: of use, memory, load or temperature"),
        ("!", "a warning; i has all of them"),
        ("▶ ✓ ■ ✗ ?", "goes on, finished, stopped, failed or killed, lost"),
    )

    def __init__(self) -> None:
        super().__init__()
        self._busy: deque[int] = deque(maxlen=_LATELY)
        """How many processes were busy in the latest snapshots."""
        self._most_foot: dict[tuple[object, ...], int] = {}
        """By columns and rows of the screen the most rows that the foot has had."""
        self._left: Widget | None = None
        """What had the focus before a line was written."""

    # What the subclass shows.

    def new_top(self) -> Canvas:
        """The widget for what stands above the processes."""
        return Canvas(ascii=self.gpuwatch.look.ascii, id="top")

    @abstractmethod
    def top_rows(self, width: int, most: int) -> list[Line]:
        """What stands in it, in about ``most`` rows: those that the others leave."""

    @abstractmethod
    def look_at(self, width: int) -> None:
        """Ask for what is drawn."""

    @property
    def lists(self) -> tuple[Widget, ...]:
        """What can have the focus."""
        return (self._processes, self._table)

    @property
    def most_alerts(self) -> int:
        """Rows for alerts."""
        return 3 if self.room[1] >= _ROOMY else 1

    @property
    def whose(self) -> str:
        """The machine whose processes are shown; empty: this one."""
        return ""

    def compose(self) -> ComposeResult:
        ascii = self.gpuwatch.look.ascii
        self._top = self.new_top()
        self._processes = ProcessTable(self, ascii=ascii, marks=True)
        self._middle = Canvas(ascii=ascii, id="middle")
        self._table = SessionTable(ascii=ascii)
        self._foot = Canvas(ascii=ascii, id="foot")
        yield self._top
        yield self._processes
        yield self._middle
        yield self._table
        yield self._foot
        yield self.field
        yield Footer(compact=True)

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _: self._table.redraw())

    def paint(self) -> None:
        width, height = self.room
        small = too_small(self.app.size)
        for each in (self._processes, self._middle, self._table, self._foot):
            each.display = not small
        if small:
            _fit(self._top, height)
            return
        foot = foot_rows(self.state, width, height)
        shown = *self.room, self.state.how.query
        most = self._most_foot[shown] = max(self._most_foot.get(shown, 0), len(foot))
        foot = [Line(width)] * (most - len(foot)) + foot  # so that nothing above it moves
        devices, space = self.state.devices, height - most
        found = on_gpus(devices.processes, self.state.process_query) if devices else []
        wanted = 0
        if devices is not None and devices.gpus:
            wanted = 2 + len(found) if found else 1
        elif devices is not None and not self.whose and self.state.items:  # else see empty_rows
            busy = len(found) if self.state.process_query else max(self._busy, default=0)
            wanted = 2 + min(_BUSIEST, max(min(height // 8, len(found)), busy))
        listed = 2 + len(self.state.items) if self.state.items else _EMPTY_LIST
        room = height - most  # the same for every row of the list: the graphs stand still
        part = room // (2 if devices is None or devices.gpus else 3)  # there processes tell more
        top = self.top_rows(width, max(part, room - wanted - listed))[: max(1, room - 3)]
        self.look_at(width)
        _place(self._top, top)
        self._paint_processes(found, wanted, space - len(top))
        self._paint_list(width, space - len(top))
        _place(self._foot, foot)
        actions = ("stop", "take_up", "numbers", "filter", "mark")
        self.refresh_keys([self.check_action(action, ()) for action in actions])
        if self.state.edit is not None:
            label = len(f" {self.state.edit.what}: ")
            self.field.stand(label, height - 1, width - label)

    def _paint_processes(self, shown: Sequence[ProcessNow], wanted: int, space: int) -> None:
        """The processes, for which there are ``wanted`` rows, in what the list leaves of ``space``,
        or how many there are."""
        devices, query = self.state.devices, self.state.process_query
        half = max(_LEAST_LISTED, (space - 3) // 2)
        listed = min(len(self.state.items), half) or _LEAST_SAID
        rows = min(wanted, max(0, space - listed - 2))
        short = rows < min(wanted, 4)
        if short:
            rows = 1 if space >= _LEAST_BELOW else 0
            if self._processes.has_focus:
                self._table.focus()
        self._processes.can_focus = not short and self.state.edit is None
        where = "the GPUs" if devices is None or devices.gpus else "the CPU"
        where += f" of {self.whose}" if self.whose else ""
        none = f"no process on {where}"
        if query:
            none = f"no process matches {query}: Esc shows all"
        elif devices is not None and devices.untold:
            none = f"the processes on {where} are not known"
        elif (
            devices is None
            or not devices.gpus
            or any(gpu.value("hw.gpu.utilization") for gpu in devices.gpus)
        ):
            none = f"the processes on {where} are not known yet"  # they are told after the GPUs
        self._processes.put(shown)
        self._processes.fit(rows, where, query, none)

    def _paint_list(self, width: int, space: int) -> None:
        filled = bool(self.state.items)
        self._table.display = filled
        rows = [heading(self.state, width)]
        if filled:
            self._table.update(self.state.items, self.state.marked, self.state.cursor)
            if self.focused is None:
                self._table.focus()
        else:
            read_only = self.gpuwatch.look.read_only
            rows += empty_rows(self.state, width, space - 1, read_only=read_only)
        _fit(self._middle, 1 if filled else None)
        self._middle.show(rows)

    # Keys and mouse.

    def on_key(self, event: events.Key) -> None:
        if event.key != "q":
            self.stays()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A run can be stopped while it goes on, and resumed once its recorder died; what is for
        sessions or devices needs some."""
        current = self.state.current
        if action == "stop":
            return current is not None and current.stoppable
        if action == "take_up":
            return current is not None and current.lost
        if action in _OF_DEVICES:
            return self.state.devices is not None
        if action == "filter" and (self.state.edit is not None or self._processes.has_focus):
            return self.state.edit is None
        return action not in _OF_SESSIONS or bool(self.state.entries)

    def write(self, edit: Edit) -> None:
        self._left = self.focused
        # A click on a list must not take the keys from the line that is written.
        for each in self.lists:
            each.can_focus = False
        self.state = replace(self.state, edit=edit, message="")
        line_end = LINE_END if edit.what == "note" else " "
        text = edit.text.replace("\n", LINE_END)
        self.field.write(text, longest=edit.longest, line_end=line_end)
        self.paint()

    def on_input_changed(self, message: Input.Changed) -> None:
        if (edit := self.state.edit) is not None:
            text = message.value.replace(LINE_END, "\n")
            self.state = replace(self.state, edit=replace(edit, text=text, trouble=""))
            self.narrow(text)

    def on_input_submitted(self) -> None:
        edit = self.state.edit
        if edit is None:
            return
        if why := edit.refused():
            self.state = replace(self.state, edit=replace(edit, trouble=why))
        else:
            self._written()
            self.labelled(edit)
        self.paint()

    def on_field_cut(self, message: Field.Cut) -> None:
        if self.state.edit is not None:
            self.state = replace(self.state, edit=replace(self.state.edit, trouble=message.why))
            self.paint()

    def on_field_left(self) -> None:
        """Esc: it stays as it was before."""
        self.narrow("")
        self._written()
        self.paint()

    def narrow(self, query: str) -> None:
        what = self.state.edit.what if self.state.edit is not None else ""
        if what == "find":
            self.put_in_order(replace(self.state.how, query=query))
        elif what == "find processes":
            self.state = replace(self.state, process_query=query)
        self.paint()

    def _written(self) -> None:
        self.state = replace(self.state, edit=None)
        self.field.hide()
        for each in self.lists:
            each.can_focus = True
        back = self._left if self._left in self.lists and self._left.display else self._table
        if back.display:
            self.set_focus(back)

    def action_filter(self) -> None:
        """Narrow the list that has the focus."""
        if self._processes.has_focus:
            self.write(Edit("find processes", self.state.process_query))
        else:
            self.write(Edit("find", self.state.how.query))

    def action_sort(self) -> None:
        order = (self.state.how.order + 1) % len(ORDERS)
        self.put_in_order(replace(self.state.how, order=order, reverse=False))

    def action_reverse(self) -> None:
        self.put_in_order(replace(self.state.how, reverse=not self.state.how.reverse))

    def on_data_table_row_highlighted(self) -> None:
        """The cursor is on another row; not while something is written for the one before."""
        if self.state.edit is not None and self.state.edit.target is not None:
            return
        cursor = self._table.cursor_row
        if cursor != self.state.cursor:
            self._wanted = None  # a person's own move counts, however late the list comes
            self.state = replace(self.state, cursor=cursor, message="")
            self.paint()

    def on_data_table_row_selected(self) -> None:
        self.action_open()

    def on_data_table_header_selected(self, message: DataTable.HeaderSelected) -> None:
        """A click on a column's title sorts by it, a second one the other way round."""
        by = next(each.order for each in COLUMNS if each.name == message.column_key.value)
        if by is not None:
            order, how = ORDERS.index(by), self.state.how
            again = order == how.order
            self.put_in_order(replace(how, order=order, reverse=again and not how.reverse))

    def action_numbers(self) -> None:
        """Every number of the devices, with its method and source."""
        if (now := self.state.devices) is not None:
            page = SnapshotPage("every number", number_lines, now, lambda: self.state.devices)
            self.app.push_screen(page)

    def action_processes(self) -> None:
        """The processes on a page of their own."""
        self.app.push_screen(
            ProcessScreen(lambda: self.state.devices, lambda: self.state.devices_trouble)
        )

    def processes_now(self) -> Sequence[ProcessNow]:
        return () if self.state.devices is None else self.state.devices.processes

    def action_mark(self) -> None:
        current = self.state.current
        if current is None:
            return
        marked = self.state.marked
        if current.path in marked:
            marked = tuple(path for path in marked if path != current.path)
        else:
            marked = (*marked, current.path)
        self._lent = tuple(path for path in self._lent if path != current.path)
        cursor = min(len(self.state.items) - 1, self.state.cursor + 1)
        self.state = replace(self.state, marked=marked, cursor=cursor, message="")
        self.paint()

    def action_back(self) -> None:
        """One level back: the marks, then the filter, then the screen below."""
        if self.state.marked:
            self.state = replace(self.state, marked=())
        elif self.state.process_query:
            self.state = replace(self.state, process_query="")
        elif self.state.how.query:
            self.put_in_order(replace(self.state.how, query=""))
        self.say("")

    def action_unfold(self, show: bool) -> None:
        current = self.state.current
        if current is None or current.study is None:
            return
        folder, how = {current.study.path}, self.state.how
        self.put_in_order(replace(how, opened=how.opened | folder if show else how.opened - folder))
        if show:
            self.call_after_refresh(self._table.show_below, len(current.runs))

    def action_open(self) -> None:
        current = self.state.current
        if current is None:
            if not self.state.how.query:
                self.action_new()
        elif current.entry is None and current.study is not None and current.study.waits:
            self.gpuwatch.open_waiting(current.path)
        elif current.entry is None:
            self.action_unfold(not current.opened)
        else:
            self.gpuwatch.open_session(current.path)


def _place(canvas: Canvas, lines: list[Line]) -> None:
    """Show rows on a canvas that is as high as they are many."""
    _fit(canvas, len(lines))
    canvas.show(lines)


def _fit(widget: Widget, rows: int | None) -> None:
    """Give a widget so many rows; ``None``: what the others leave."""
    height: int | str = "1fr" if rows is None else rows
    if widget.styles.height != Scalar.parse(str(height)):
        widget.styles.height = height
