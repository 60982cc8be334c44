"""A question over a screen, answered with arrows and Enter: no key alone says yes."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from gpuwatch.tui.messages import Question


class Dialog(ModalScreen[int]):
    """Which answer ``question`` gets: 0 is no, 1 is yes, then follow its other ways."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(0)", show=False),
        Binding("left,up", "app.focus_previous", show=False),
        Binding("right,down", "app.focus_next", show=False),
        Binding("f10", "app.quit", show=False),
    ]

    def __init__(self, question: Question) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        question = self._question
        with Vertical():
            yield Static(question.text, markup=False)
            # Several ways of doing it are told in full, one below the other.
            with Vertical() if question.more else Horizontal():
                for n, answer in enumerate((question.no, question.yes, *question.more)):
                    yield Button(answer, id=f"answer-{n}", compact=True)
            yield Static("Arrows choose, Enter confirms, Esc cancels")

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(list(self.query(Button)).index(event.button))
