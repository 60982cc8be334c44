"""Lines of a log in a widget that scrolls; only those in sight are drawn."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import ClassVar

from rich.cells import cell_len, chop_cells
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from gpuwatch.core.units import NS, clock_time
from gpuwatch.session.reading.log_lines import LogLine
from gpuwatch.tui.log.reading import text_of
from gpuwatch.tui.widgets.line import stream_mark
from gpuwatch.tui.widgets.palette import styles


class LogView(ScrollView, can_focus=True):
    """A time, a stream and a text in each row; a wrapped text has several."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "shift(-1)", "left", show=False, tooltip="shift long lines"),
        Binding("right", "shift(1)", "right", show=False, tooltip="shift long lines"),
        Binding("j", "scroll_down", "down", show=False),
        Binding("k", "scroll_up", "up", show=False),
        Binding("space", "page_down", "page down", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.wrap = False
        self.wanted = ""
        """What is marked in the texts."""
        self.hit = -1
        """Number of the line of the current match."""
        self.texts: dict[int, str] = {}
        """The texts of all lines, by their numbers."""
        self._lines: dict[int, LogLine] = {}
        self._rows: list[tuple[int, int, int]] = []
        """Of each row the line's number, and the part of its text."""
        self._clock = 4
        self._column = 0
        """Cells that lines are shifted to the left."""
        self._at_end = True

    def show(self, lines: Sequence[LogLine], clock: int, *, end: bool) -> None:
        """Show ``lines``, with times of ``clock`` cells: the ``end``, else the same one on top."""
        self._lines = {line.n: line for line in lines}
        old = self.texts
        self.texts = {n: old.get(n) or text_of(line) for n, line in self._lines.items()}
        self._clock, self._at_end = clock, end
        self._lay_out()

    def on_resize(self) -> None:
        self._lay_out()

    def _lay_out(self) -> None:
        top = self._rows[self.scroll_offset.y] if self.scroll_offset.y < len(self._rows) else (0,)
        width = self.scrollable_content_region.width
        if self.wrap:
            self._column = 0
            self._rows = [
                (n, *part) for n, text in self.texts.items() for part in _parts(text, self._room)
            ]
        else:
            self._rows = [(n, 0, 0) for n in self.texts]
        self.virtual_size = Size(width, len(self._rows))
        if self._at_end:
            self.scroll_end(animate=False, immediate=True)
        else:
            self.scroll_to(y=bisect_left(self._rows, top), animate=False, immediate=True)
        self.refresh()

    @property
    def _room(self) -> int:
        """Columns of a line's text."""
        return max(1, self.scrollable_content_region.width - self._clock - 6)

    def in_sight(self) -> tuple[int, int] | None:
        """Numbers of the first and the last line in sight."""
        top = self.scroll_offset.y
        shown = self._rows[top : top + max(1, self.scrollable_content_region.height)]
        return (shown[0][0], shown[-1][0]) if shown else None

    def go_to(self, n: int) -> None:
        """Make line ``n`` the current match, and scroll where it is not in sight."""
        self.hit, self._at_end = n, False
        row = bisect_left(self._rows, (n, 0, 0))
        height = self.scrollable_content_region.height
        if not self.scroll_offset.y <= row < self.scroll_offset.y + height:
            self.scroll_to(y=row - height // 3, animate=False, immediate=True)
        self.refresh()

    def watch_scroll_y(self, old: float, new: float) -> None:
        super().watch_scroll_y(old, new)
        self._at_end = self.is_vertical_scroll_end

    def action_shift(self, by: int) -> None:
        """Shift by half of the texts' columns; wrapped lines are whole."""
        longest = max((len(text) for text in self.texts.values()), default=0)
        if not self.wrap:
            step = max(1, self._room // 2)
            self._column = max(0, min(longest, self._column + by * step))
            self.refresh()

    def render_line(self, y: int) -> Strip:
        roles = styles(self.app.current_theme, self.app.no_color)
        width, at = self.scrollable_content_region.width, self.scroll_offset.y + y
        if at >= len(self._rows):
            return Strip.blank(width, roles["text"])
        n, start, end = self._rows[at]
        line, text = self._lines[n], self.texts[n]
        if not self.wrap:
            start = _skip(text, self._column)
            end = start + self._room + 1
        shown = Text(text[start:end], roles["text"], no_wrap=True, end="")
        for first, last in matches(text, self.wanted):
            shown.stylize(roles["select"], max(0, first - start), max(0, last - start))
        shown.truncate(self._room, overflow="ellipsis")
        row = Text(end="")
        if self.wrap and start:
            row.append(" " * (self._clock + 6), roles["text"])
        else:
            row.append("▸" if n == self.hit else " ", roles["key"])
            row.append(f"{clock_time(line.t / NS):>{self._clock}} ", roles["muted"])
            mark, role = stream_mark(line.stream, text)
            row.append(mark[1:], roles[role])
        segments = [*row.render(self.app.console), *shown.render(self.app.console)]
        return Strip(segments).adjust_cell_length(width, roles["text"])


def matches(text: str, query: str) -> Iterator[tuple[int, int]]:
    """Start and end of each ``query`` in ``text``; case matters if ``query`` has capitals."""
    if not query:
        return
    if query == query.lower():
        text = text.lower()
    at = text.find(query)
    while at >= 0:
        yield at, at + len(query)
        at = text.find(query, at + len(query))


def _parts(text: str, width: int) -> Iterator[tuple[int, int]]:
    """Start and end of the pieces of a text that are ``width`` cells wide."""
    if text.isascii():
        yield from ((at, at + width) for at in range(0, max(1, len(text)), width))
        return
    at = 0
    for piece in chop_cells(text, width):
        yield at, at + len(piece)
        at += len(piece)


def _skip(text: str, cells: int) -> int:
    """Number of characters that fill ``cells`` cells."""
    if text.isascii():
        return cells
    for at, character in enumerate(text):
        if cells <= 0:
            return at
        cells -= cell_len(character)
    return len(text)
