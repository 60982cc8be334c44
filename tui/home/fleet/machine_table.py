"""The machines, above the processes of one of them: with the focus, keys select and open one."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from gpuwatch.tui.widgets.canvas import Canvas, Scrolled


class MachineTable(Canvas, can_focus=True):
    """Drawn by the screen; what its keys do is the screen's as well."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "screen.open_machine", "open", tooltip="open the machine: histories"),
        Binding("down,j", "screen.move_machine(1)", "machine below", show=False),
        Binding("up,k", "screen.move_machine(-1)", "machine above", show=False),
        Binding("pagedown", "screen.move_machine(10)", "ten machines down", show=False),
        Binding("pageup", "screen.move_machine(-10)", "ten machines up", show=False),
        Binding("home", "screen.move_machine(-100000)", "first machine", show=False),
        Binding("end", "screen.move_machine(100000)", "last machine", show=False),
    ]

    class Chosen(Message):
        """A row was clicked: ``on_machine_table_chosen`` of the screen."""

        def __init__(self, y: int, opens: bool) -> None:
            """``y``: the row, from 0; ``opens``: it was a double click."""
            super().__init__()
            self.y, self.opens = y, opens

    class Turned(Message):
        """The mouse wheel was turned: ``on_machine_table_turned`` of the screen."""

        def __init__(self, by: int) -> None:
            """``by``: machines, positive for down."""
            super().__init__()
            self.by = by

    def on_click(self, event: events.Click) -> None:
        event.stop()
        self.post_message(self.Chosen(event.y, event.chain == 2))

    def on_scrolled(self, message: Scrolled) -> None:
        message.stop()
        self.post_message(self.Turned(1 if message.by > 0 else -1))
