"""A widget that draws rows of styled text and repaints only changed cells."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from gpuwatch.tui.display_options import LEAST
from gpuwatch.tui.widgets.ascii_words import with_words
from gpuwatch.tui.widgets.line import Line, Press, Span
from gpuwatch.tui.widgets.palette import styles

_WHEEL_ROWS = 3
"""Rows per step of the mouse wheel."""


class Clicked(Message):
    """A cell without a key was clicked."""

    def __init__(self, x: int, y: int, count: int) -> None:
        """``x``, ``y``: column and row, from 0; ``count``: 2 for a double click."""
        super().__init__()
        self.x, self.y, self.count = x, y, count


class Scrolled(Message):
    """The mouse wheel was turned over the canvas."""

    def __init__(self, by: int, x: int, y: int) -> None:
        """``by``: rows, positive for down; ``x``, ``y``: column and row of the mouse, from 0."""
        super().__init__()
        self.by, self.x, self.y = by, x, y


def too_small(size: Size) -> bool:
    """Whether nothing fits on a terminal of that size."""
    return size.width < LEAST[0] or size.height < LEAST[1]


class Canvas(Widget):
    """Draws rows of text; rows beyond its height are not drawn."""

    ALLOW_SELECT = False

    def __init__(self, *, ascii: bool = False, id: str | None = None) -> None:
        """``ascii``: replace glyphs that need several characters in ASCII."""
        super().__init__(id=id)
        self._ascii = ascii
        self._rows: list[tuple[Span, ...]] = []
        self._presses: list[tuple[Press, ...]] = []

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _: self.refresh())

    def show(self, lines: Sequence[Line]) -> None:
        """Draw ``lines``; each changed row is repainted from its start to its last changed cell."""
        if self._ascii:
            lines = [with_words(line) for line in lines]
        self._presses = [line.presses() for line in lines]
        before, self._rows = self._rows, [line.spans() for line in lines]
        regions = [
            Region(0, y, last_change(old, new, self.size.width) + 1, 1)
            for y, (old, new) in enumerate(zip_longest(before, self._rows, fillvalue=()))
            if old != new and y < self.size.height
        ]
        if regions:
            self.refresh(*regions)

    def render_line(self, y: int) -> Strip:
        roles = styles(self.app.current_theme, self.app.no_color)
        segments = [Segment(text, roles.get(role, roles["text"])) for text, role in self._row(y)]
        return Strip(segments).adjust_cell_length(self.size.width, roles["text"])

    def _row(self, y: int) -> tuple[Span, ...]:
        """The spans of row ``y``, or of a message if the terminal is too small."""
        if too_small(self.app.size):
            columns, rows = LEAST
            message = (("too small", "text"), (f"needs {columns}x{rows}", "muted"))
            return (message[y],) if y < len(message) else ()
        return self._rows[y] if y < len(self._rows) else ()

    def on_click(self, event: events.Click) -> None:
        event.stop()
        row = self._presses[event.y] if 0 <= event.y < len(self._presses) else ()
        for start, end, key in row:
            if start <= event.x < end:
                self.app.simulate_key(key)
                return
        self.post_message(Clicked(event.x, event.y, event.chain))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.post_message(Scrolled(_WHEEL_ROWS, event.x, event.y))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.post_message(Scrolled(-_WHEEL_ROWS, event.x, event.y))


def last_change(before: Sequence[Span], after: Sequence[Span], width: int) -> int:
    """The last of ``width`` columns in which two rows differ, or a later one.

    Rows of equal length may end with the same cells; for others it is the last column.
    """
    end = length = sum(cell_len(text) for text, _ in after)
    if length != sum(cell_len(text) for text, _ in before):
        return width - 1
    for (old, role), (new, as_role) in zip(reversed(before), reversed(after), strict=False):
        if role != as_role:
            break
        if old != new:
            common = next(
                (n for n in range(min(len(old), len(new))) if old[-1 - n] != new[-1 - n]),
                min(len(old), len(new)),
            )
            end -= cell_len(new[len(new) - common :]) if common else 0
            break
        end -= cell_len(new)
    return min(width, end) - 1
