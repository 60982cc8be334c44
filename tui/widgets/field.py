"""A text input over a canvas."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Input

from gpuwatch.core.text import clean

MAX_LENGTH = 2000
"""Default limit of the text in characters."""


class Field(Input):
    """Textual's input, hidden while it is not in use."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "done"),
        Binding("escape", "leave", "cancel"),
    ]

    class Left(Message):
        """Esc was pressed."""

    class Cut(Message):
        """Pasted text was too long and was cut."""

        def __init__(self, longest: int) -> None:
            super().__init__()
            self.why = f"at most {longest} characters: the rest is left out"

    def __init__(self) -> None:
        super().__init__(compact=True, select_on_focus=False, max_length=MAX_LENGTH)
        self.cursor_blink = False
        self.display = False
        self.line_end = " "
        """Replaces the ends of lines in pasted text."""

    def write(self, value: str, *, longest: int = MAX_LENGTH, line_end: str = " ") -> None:
        """Show the input with ``value`` and the cursor at its end."""
        self.max_length, self.line_end = longest, line_end
        with self.prevent(Input.Changed):
            self.value = value
        self.cursor_position = len(value)
        self.display = True
        self.screen.set_focus(self, scroll_visible=False)

    def hide(self) -> None:
        """Hide the input."""
        if self.display:
            self.screen.set_focus(None)
            self.display = False

    def stand(self, x: int, y: int, width: int) -> None:
        """Move to column ``x`` and row ``y``, with ``width`` cells."""
        self.styles.offset, self.styles.width = (x, y), max(1, width)

    def action_leave(self) -> None:
        self.post_message(self.Left())

    def on_paste(self, event: events.Paste) -> None:
        """Insert pasted lines as one; text that is too long is cut, with a :class:`Cut`."""
        event.stop()
        event.prevent_default()
        text = self.line_end.join(map(clean, event.text.splitlines()))
        longest = self.max_length or MAX_LENGTH
        fitting = text[: max(0, longest - len(self.value) + len(self.selected_text))]
        self.replace(fitting, *sorted(self.selection))
        if fitting != text:
            self.post_message(self.Cut(longest))
