"""A question over a screen: arrows choose, Enter takes; no letter and no Enter alone says yes."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from gpuwatch.tui.messages import Question


class Dialog(ModalScreen[bool]):
    """Whether ``question`` is answered with yes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(False)", show=False),
        Binding("left,up", "app.focus_previous", show=False),
        Binding("right,down", "app.focus_next", show=False),
        Binding("f10", "app.quit", show=False),
    ]

    def __init__(self, question: Question) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(self._question.text, markup=False)
            with Horizontal():
                yield Button(self._question.no, id="no", compact=True)
                yield Button(self._question.yes, id="yes", compact=True)
            yield Static("Arrows choose, Enter takes, Esc leads back")

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")
