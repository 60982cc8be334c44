"""A line of text that is written on a canvas, in a place that the screen has drawn for it."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Input

from gpuwatch.core.text import clean

LONGEST = 2000
"""Characters that a line takes where nothing else is said."""


class Field(Input):
    """Textual's own input, hidden while nothing is written."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", show=False)]

    class Left(Message):
        """Esc was pressed: a screen's ``on_field_left`` handles it."""

    class Cut(Message):
        """Not all that was pasted fits: a screen's ``on_field_cut`` handles it."""

        def __init__(self, longest: int) -> None:
            super().__init__()
            self.why = f"at most {longest} characters: the rest is left out"

    def __init__(self) -> None:
        super().__init__(compact=True, select_on_focus=False, max_length=LONGEST)
        self.cursor_blink = False
        self.display = False
        self.line_end = " "
        """What stands for the end of a line in text that is pasted."""

    def write(self, value: str, *, longest: int = LONGEST, line_end: str = " ") -> None:
        """Begin with ``value``, the cursor behind it."""
        self.max_length, self.line_end = longest, line_end
        with self.prevent(Input.Changed):
            self.value = value
        self.cursor_position = len(value)
        self.display = True
        self.screen.set_focus(self, scroll_visible=False)

    def hide(self) -> None:
        """Nothing is written any more."""
        if self.display:
            self.screen.set_focus(None)
            self.display = False

    def stand(self, x: int, y: int, width: int) -> None:
        """Stand at a place on the screen, in cells."""
        self.styles.offset, self.styles.width = (x, y), max(1, width)

    def action_leave(self) -> None:
        self.post_message(self.Left())

    def on_paste(self, event: events.Paste) -> None:
        """Take all lines as one; what is too long is cut, and that is said."""
        event.stop()
        event.prevent_default()
        text = self.line_end.join(map(clean, event.text.splitlines()))
        longest = self.max_length or LONGEST
        kept = text[: max(0, longest - len(self.value) + len(self.selected_text))]
        self.replace(kept, *sorted(self.selection))
        if kept != text:
            self.post_message(self.Cut(longest))
