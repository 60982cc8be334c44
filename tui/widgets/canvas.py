"""One widget that draws rows of styled text and sends only what changed.

A screen of many widgets costs several times the bytes and CPU of this; measured figures are in
``docs/terminal.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from gpuwatch.tui.display_options import LEAST
from gpuwatch.tui.widgets.ascii_words import in_words
from gpuwatch.tui.widgets.changes import Cells, cells_of, changed
from gpuwatch.tui.widgets.line import Line, Press, Span
from gpuwatch.tui.widgets.narrow import Piece, send
from gpuwatch.tui.widgets.palette import styles

_WHEEL_ROWS = 3
"""Rows that one notch of a wheel scrolls."""

_AGAIN_SECONDS = 0.1
"""Until it is looked again whether a slow terminal takes another picture."""


class Clicked(Message):
    """A cell that presses no key was clicked: a screen's ``on_clicked`` handles it."""

    def __init__(self, x: int, y: int, count: int) -> None:
        """``x``, ``y``: column and row, from 0; ``count``: 2 for a double click."""
        super().__init__()
        self.x, self.y, self.count = x, y, count


class Scrolled(Message):
    """The wheel was turned over the canvas: a screen's ``on_scrolled`` handles it."""

    def __init__(self, by: int, x: int, y: int) -> None:
        """``by``: rows, down is positive; ``x``, ``y``: where."""
        super().__init__()
        self.by, self.x, self.y = by, x, y


class Canvas(Widget):
    """Draws the rows it is given; rows beyond its height are not drawn."""

    can_focus = False

    def __init__(self, *, id: str | None = None, ascii: bool = False) -> None:
        """``ascii``: say in words what one mark cannot say in ASCII."""
        super().__init__(id=id)
        self._ascii = ascii
        self._lines: tuple[Line, ...] = ()
        self._rows: list[tuple[Span, ...]] = []
        self._strips: dict[int, Strip] = {}
        self._cells: dict[int, Cells] = {}
        """Of rows that changed once, as they are now: most of those change again and again."""
        self._roles: Mapping[str, Style] = {}
        self._presses: list[tuple[Press, ...]] = []
        self._later: Sequence[Line] | None = None

    def show(self, lines: Sequence[Line]) -> None:
        """Draw ``lines``; only spans that differ from what stands there are painted.

        Where the terminal has yet to take what was drawn before, later; then only the newest.
        """
        if getattr(self.app._driver, "behind", False):
            if self._later is None:
                self.set_timer(_AGAIN_SECONDS, self._show_later)
            self._later = lines
            return
        self._later = None
        if self._ascii:
            lines = [in_words(line) for line in lines]
        rows = [
            self._rows[y] if y < len(self._lines) and self._lines[y] is line else line.spans()
            for y, line in enumerate(lines)
        ]
        self._lines = tuple(lines)
        self._presses = [line.presses() for line in lines]
        before, self._rows = self._rows, rows
        regions = []
        width, height = self.size
        for y in range(min(height, max(len(rows), len(before)))):
            old = before[y] if y < len(before) else ()
            new = rows[y] if y < len(rows) else ()
            if old is new or old == new:
                continue
            self._strips.pop(y, None)
            was = self._cells.get(y) or cells_of(old)
            self._cells[y] = now = cells_of(new)
            regions += [Region(start, y, end - start, 1) for start, end in changed(was, now, width)]
        if not regions:
            return
        self._roles = styles(self.app.theme, self.app.no_color)
        if self._too_small or not send(self, regions, self._pieces):
            self.refresh(*_merged(regions))

    def _show_later(self) -> None:
        if self._later is not None:
            lines, self._later = self._later, None
            self.show(lines)

    def text(self) -> str:
        """What is drawn, without styles."""
        return "\n".join("".join(text for text, _ in row).rstrip() for row in self._rows)

    def forget(self) -> None:
        """Drop what is kept of the picture: the theme or the size changed."""
        self._strips.clear()
        self.refresh()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()

    def on_resize(self) -> None:
        self._strips.clear()

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

    def render_lines(self, crop: Region) -> list[Strip]:
        width = self.size.width
        return [self._strip(y, width).crop(crop.x, crop.right) for y in range(crop.y, crop.bottom)]

    def _pieces(self, region: Region) -> Iterable[Piece]:
        """What stands in a part of one row."""
        cells = self._cells.get(region.y)
        if cells is None or not cells.narrow:
            return ((text, style) for text, style, _ in self.render_lines(region)[0])
        roles = self._roles
        plain = roles["text"]
        return [
            (text, roles.get(role, plain)) for text, role in cells.spans(region.x, region.right)
        ]

    def _strip(self, y: int, width: int) -> Strip:
        strip = self._strips.get(y)
        if strip is None or strip.cell_length != width:
            roles = styles(self.app.theme, self.app.no_color)
            row = self._row(y)
            segments = [Segment(text, roles.get(role, roles["text"])) for text, role in row]
            strip = Strip(segments).adjust_cell_length(width, roles["text"])
            self._strips[y] = strip
        return strip

    @property
    def _too_small(self) -> bool:
        columns, rows = LEAST
        width, height = self.app.size
        return width < columns or height < rows

    def _row(self, y: int) -> tuple[Span, ...]:
        """What stands in row ``y``: on a screen that nothing fits on, that it is too small."""
        if self._too_small:
            columns, rows = LEAST
            told = (("too small", "text"), (f"needs {columns}x{rows}", "muted"))
            return (told[y],) if y < len(told) and self.region.y == 0 else ()
        return self._rows[y] if y < len(self._rows) else ()


def _merged(regions: list[Region]) -> list[Region]:
    """Neighbouring rows with the same columns as one region."""
    merged: list[Region] = []
    for region in regions:
        last = merged[-1] if merged else None
        if last and last.bottom == region.y and (last.x, last.width) == (region.x, region.width):
            merged[-1] = Region(last.x, last.y, last.width, last.height + 1)
        else:
            merged.append(region)
    return merged
