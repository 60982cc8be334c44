"""The home screen: devices now, the sessions and studies, the way to a new run."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.widgets import Input

from gpuwatch.tui.feed.delivery import Delivery, News
from gpuwatch.tui.feed.hardware.devices_now import DevicesNow
from gpuwatch.tui.feed.machine_recorder import MachineRecorder
from gpuwatch.tui.feed.snapshot import Snapshot, Unreadable
from gpuwatch.tui.home.keys import HELP, home_keys
from gpuwatch.tui.home.line_edit import LINE_END, Edit
from gpuwatch.tui.home.list import ORDERS
from gpuwatch.tui.home.rows import Layout, home_rows
from gpuwatch.tui.home.sessions import HomeSessions
from gpuwatch.tui.widgets.canvas import Clicked
from gpuwatch.tui.widgets.field import Field
from gpuwatch.tui.widgets.keys import keys_row

REFRESH_SECONDS = 10.0
_YOUNG_NS = 3_000_000_000


class HomeScreen(HomeSessions):
    """What is there, and what can be done."""

    KEYS = HELP
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "leave", show=False),
        Binding("n", "new", show=False),
        Binding("r", "look_again", show=False),
        Binding("c", "compare", show=False),
        Binding("e", "export", show=False),
        Binding("a", "take_up", show=False),
        Binding("s", "stop", show=False),
        Binding("d", "delete", show=False),
        Binding("l", "log", show=False),
        Binding("p", "processes", show=False),
        Binding("R", "label('name')", show=False),
        Binding("T", "label('tags')", show=False),
        Binding("N", "label('note')", show=False),
        Binding("slash", "filter", show=False),
        Binding("o", "sort", show=False),
        Binding("O", "reverse", show=False),
        Binding("space", "mark", show=False),
        Binding("enter", "open", show=False),
        Binding("right", "unfold(True)", show=False),
        Binding("left", "unfold(False)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("up,k", "move(-1)", show=False),
        Binding("pagedown", "move(10)", show=False),
        Binding("pageup", "move(-10)", show=False),
        Binding("home", "move(-1000000)", show=False),
        Binding("end", "move(1000000)", show=False),
        Binding("escape", "back", show=False),
    ]

    def __init__(self, *, refresh: float = 1.0, recorder: MachineRecorder | None = None) -> None:
        """``refresh``: seconds between two pictures of the devices.

        ``recorder``: of the machine, started before this program was loaded.
        """
        super().__init__()
        self._every = refresh
        self._recorder = recorder
        self._layout = Layout()
        self._devices: DevicesNow | None = None

    def on_mount(self) -> None:
        self.state = replace(self.state, read_only=self.gpuwatch.look.read_only)
        self.set_interval(REFRESH_SECONDS, self.look_for_news)

    def on_unmount(self) -> None:
        devices, self._devices = self._devices, None
        if devices is not None:
            devices.close()

    def on_screen_resume(self) -> None:
        if self._devices is None:
            self._devices = DevicesNow(
                Delivery(self, self.take).post,
                refresh=self._every,
                recorder=self._recorder,
            )
            self._recorder = None
            self._devices.start()
        self.action_refresh()

    def on_screen_suspend(self) -> None:
        # The recorder takes a moment to end; the next screen need not wait for it.
        devices, self._devices = self._devices, None
        if devices is not None:
            threading.Thread(target=devices.close, name="devices-end").start()

    def take(self, news: News) -> None:
        """Show what is known of the devices."""
        if isinstance(news, Snapshot):
            if self.state.devices is None or not _begins(news):
                self.state = replace(self.state, devices=news, devices_trouble=None)
        elif isinstance(news, Unreadable) and self.state.devices is None:
            self.state = replace(self.state, devices_trouble=news.trouble.text)
        self.look_around()
        self.paint()

    def paint(self) -> None:
        width, height = self.app.size
        if height < 2:
            return
        lines, self._layout = home_rows(self.state, width, height - 1)
        lines.append(keys_row(home_keys(self.state), width))
        self.show(lines)
        if self.state.edit is not None:
            label = len(f" {self.state.edit.what}: ")
            self.field.stand(label, height - 2, width - label)

    # Keys and mouse.

    def on_key(self, event: events.Key) -> None:
        if event.key != "q":
            self.stays()

    def write(self, edit: Edit) -> None:
        self.state = replace(self.state, edit=edit, message="")
        line_end = LINE_END if edit.what == "note" else " "
        text = edit.text.replace("\n", LINE_END)
        self.field.write(text, longest=edit.longest, line_end=line_end)
        self.paint()

    def on_input_changed(self, message: Input.Changed) -> None:
        edit = self.state.edit
        if edit is not None:
            text = message.value.replace(LINE_END, "\n")
            self.state = replace(self.state, edit=replace(edit, text=text, trouble=""))
            self._filter(text)

    def on_input_submitted(self) -> None:
        edit = self.state.edit
        if edit is None:
            return
        why = edit.refused()
        if why:
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
        self._filter("")
        self._written()
        self.paint()

    def _filter(self, query: str) -> None:
        if self.state.edit is not None and self.state.edit.what == "find":
            self.put_in_order(replace(self.state.how, query=query))
        self.paint()

    def _written(self) -> None:
        self.state = replace(self.state, edit=None)
        self.field.hide()

    def action_filter(self) -> None:
        self.write(Edit("find", self.state.how.query))

    def action_sort(self) -> None:
        order = (self.state.how.order + 1) % len(ORDERS)
        self.put_in_order(replace(self.state.how, order=order, reverse=False))

    def action_reverse(self) -> None:
        self.put_in_order(replace(self.state.how, reverse=not self.state.how.reverse))

    def on_clicked(self, message: Clicked) -> None:
        at = self._layout.item(message.y)
        if at is not None:
            self.action_move(at - self.state.cursor)
            if message.count == 2 and self.state.edit is None:
                self.action_open()

    def action_scroll_by(self, by: int) -> None:
        self.action_move(by)

    def action_move(self, by: int) -> None:
        """To another row; not while something is written for the one under the cursor."""
        if self.state.edit is not None and self.state.edit.target is not None:
            return
        self._wanted = None  # a person's own move counts, however late the list comes
        cursor = max(0, min(len(self.state.items) - 1, self.state.cursor + by))
        self.state = replace(self.state, cursor=cursor, message="")
        self.paint()

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
        self.state = replace(self.state, marked=marked)
        self.action_move(1)

    def action_back(self) -> None:
        """One level back: the marks, then the filter."""
        if self.state.marked:
            self.state = replace(self.state, marked=())
        elif self.state.how.query:
            self.put_in_order(replace(self.state.how, query=""))
        self.say("")

    def action_unfold(self, show: bool) -> None:
        current = self.state.current
        if current is None or current.study is None:
            return
        folder, how = current.study.path, self.state.how
        self.put_in_order(
            replace(how, opened=how.opened | {folder} if show else how.opened - {folder})
        )

    def action_open(self) -> None:
        current = self.state.current
        if current is None:
            self.action_new()
        elif current.entry is None:
            self.action_unfold(not current.opened)
        else:
            self.gpuwatch.open_session(current.path)


def _begins(news: Snapshot) -> bool:
    """Whether a recording is so young that the use of the CPU, a difference, is not known yet."""
    cpu = next((device for device in news.devices if device.row.kind == "cpu"), None)
    young = news.t < _YOUNG_NS
    return young and cpu is not None and cpu.value("hw.cpu.utilization") is None
