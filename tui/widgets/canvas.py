"""A widget that draws rows of styled text and repaints only changed cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby, takewhile, zip_longest

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from gpuwatch.tui.display_options import LEAST
from gpuwatch.tui.widgets.line import Line, Press, Span
from gpuwatch.tui.widgets.palette import styles

_WHEEL_ROWS = 3
"""Rows per step of the mouse wheel."""


class Clicked(Message):
    """A cell without a key was clicked."""

    def __init__(self, x: int, y: int) -> None:
        """``x``, ``y``: column and row, from 0."""
        super().__init__()
        self.x, self.y = x, y


class Scrolled(Message):
    """The mouse wheel was turned over the canvas."""

    def __init__(self, by: int) -> None:
        """``by``: rows, positive for down."""
        super().__init__()
        self.by = by


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
        rows = self._rows
        if too_small(self.app.size):
            rows = [(("too small", "text"),), ((f"needs {LEAST[0]}x{LEAST[1]}", "muted"),)]
        spans = rows[y] if y < len(rows) else ()
        segments = [Segment(text, roles.get(role, roles["text"])) for text, role in spans]
        return Strip(segments).adjust_cell_length(self.size.width, roles["text"])

    def on_click(self, event: events.Click) -> None:
        event.stop()
        row = self._presses[event.y] if 0 <= event.y < len(self._presses) else ()
        for start, end, key in row:
            if start <= event.x < end:
                self.app.simulate_key(key)
                return
        self.post_message(Clicked(event.x, event.y))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.post_message(Scrolled(_WHEEL_ROWS))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.post_message(Scrolled(-_WHEEL_ROWS))


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
            pairs = zip(reversed(old), reversed(new), strict=False)
            common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
            end -= cell_len(new[len(new) - common :])
            break
        end -= cell_len(new)
    return min(width, end) - 1


_SIGNS = {"≤": "<=", "≥": ">="}
_ARROWS = {"←": "Left", "→": "Right", "↑": "Up", "↓": "Down"}
_HINT_ARROW = (" → ", "key")
"""The arrow before a hint: not a key."""
_REPLACED = frozenset((*_SIGNS, *_ARROWS))
_LAYOUTS: tuple[tuple[int, Mapping[str, str]], ...] = ((2, _ARROWS), (1, _ARROWS), (1, {}))
"""Least spaces in a gap, and the arrow keys that are spelled out: the first that fits is used."""


def with_words(line: Line) -> Line:
    """The row, and the keys that clicks press, with words in place of such glyphs."""
    spans = line.spans()
    if all(_REPLACED.isdisjoint(text) for text, _ in spans):
        return line
    for gap, keys in _LAYOUTS:
        row = _Row()
        row.write(spans, gap, keys)
        if row.used <= line.width:
            break
    return row.line(line)


class _Row:
    """A row of cells under construction."""

    def __init__(self) -> None:
        self._cells: list[Span] = []
        self._columns: list[int] = []
        """Index of the new cell for each old column."""
        self._excess = 0
        """Cells that the row is too long so far."""

    @property
    def used(self) -> int:
        """Columns without trailing spaces."""
        return cell_len("".join(text for text, _ in self._cells).rstrip())

    def write(self, spans: tuple[Span, ...], gap: int, keys: Mapping[str, str]) -> None:
        """``gap``: least spaces between two parts of the row; ``keys``: names of arrow keys."""
        cells = [(c, role, (text, role) != _HINT_ARROW) for text, role in spans for c in text]
        for at, (character, role, may_be_key) in enumerate(cells):
            self._columns += [len(self._cells)] * cell_len(character)
            following = [cell[0] for cell in cells[at + 1 : at + 1 + gap]]
            after_sign = at > 0 and cells[at - 1][0] in _SIGNS
            if character in _SIGNS:
                if [text for text, _ in self._cells[-2:]] == [" ", " "]:
                    self._cells.pop()
                    self._columns[-1] -= 1
                    self._excess -= 1
                self._add(_SIGNS[character], role, 1)
            elif role == "key" and may_be_key and character in keys:
                if at > 0 and cells[at - 1][0] in keys:
                    self._add("/", role, 0)
                self._add(keys[character], role, 1)
            elif self._excess and character == " " and (after_sign or following == [" "] * gap):
                self._excess -= 1
            else:
                self._cells.append((character, role))

    def _add(self, word: str, role: str, replaced: int) -> None:
        self._cells += [(character, role) for character in word]
        self._excess += len(word) - replaced

    def line(self, old: Line) -> Line:
        while self._cells and self._cells[-1][0] == " ":
            self._cells.pop()
        row = Line(old.width)
        ends = [*self._columns, len(self._cells)]
        start = 0
        for *columns, key in sorted(old.presses()):
            first, last = (ends[min(column, len(ends) - 1)] for column in columns)
            self._join(row, start, first, None)
            self._join(row, first, last, key)
            start = last
        self._join(row, start, len(self._cells), None)
        return row

    def _join(self, row: Line, first: int, last: int, press: str | None) -> None:
        for role, cells in groupby(self._cells[first:last], key=lambda cell: cell[1]):
            row.add("".join(text for text, _ in cells), role, press=press)
