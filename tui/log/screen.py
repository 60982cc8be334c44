"""The screen with the end of a session's log: both streams, with search and follow.

The whole log is for the user's pager.
"""

from __future__ import annotations

import re
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from rich.cells import cell_len, chop_cells
from rich.text import Text
from textual import events
from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Footer, Input, Static

from gpuwatch.core.errors import GpuwatchError
from gpuwatch.core.text import clean
from gpuwatch.core.units import NS, clock_time, counted
from gpuwatch.session.reading.log_lines import LogLine
from gpuwatch.tui.feed.posting import Delivery
from gpuwatch.tui.log.reading import STREAMS, LogEnd, follow, show_in_pager, text_of
from gpuwatch.tui.widgets.base_screen import Field, TitleRow, WidgetScreen
from gpuwatch.tui.widgets.line import stream_mark
from gpuwatch.tui.widgets.palette import styles


class LogScreen(WidgetScreen):
    """Shows the newest lines that a run wrote to its standard output and error."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back"),
        Binding("slash", "search", "search", tooltip="search: small letters match capitals too"),
        Binding("n", "hit(1)", "next match"),
        Binding("N", "hit(-1)", "previous match"),
        Binding("f", "follow", "follow", tooltip="follow the end of a run that goes on, or stay"),
        Binding("1", "stream(1)", "both", tooltip="both streams"),
        Binding("2", "stream(2)", "out", tooltip="standard output alone"),
        Binding("3", "stream(3)", "err", tooltip="standard error alone"),
        Binding("w", "wrap", "wrap", tooltip="wrap long lines, or cut them"),
        Binding("v", "pager", "all", tooltip="all of the log in $PAGER, else in less"),
        Binding("q,l", "close", "close", show=False),
    ]

    def __init__(self, path: Path, *, upto_ns: int | None = None) -> None:
        """``upto_ns``: the session time of the last line to show; ``None``: show new lines too."""
        super().__init__()
        self.path = path
        self.upto_ns = upto_ns
        self._left = threading.Event()
        self._end: LogEnd | None = None
        """What was read last; ``None``: nothing yet."""
        self._stream: str | None = None
        self._follow = False
        self._query = self._last_query = ""
        self._note = ""
        self._hits: list[int] = []
        """Numbers of the matching lines."""
        self._title = TitleRow("log")
        self._state = Static("reading …", markup=False, classes="muted")
        self._view = LogView()
        self._message = Static(markup=False, classes="message")
        self._field = Field()
        self._line = Horizontal(Static(" search: ", classes="key"), self._field, classes="line")
        self._line.display = False

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield self._title
        yield self._state
        yield self._view
        yield self._message
        yield self._line
        yield Footer(compact=True)

    def on_mount(self) -> None:
        self._view.focus()
        self._message.display = False
        self.watch(self._view, "scroll_y", self._scrolled, init=False)
        of = (self.path, self.upto_ns, Delivery(self, self._take).post, self._left)
        threading.Thread(target=follow, args=of, name="log", daemon=True).start()

    def on_unmount(self) -> None:
        self._left.set()

    # Drawing.

    def _take(self, news: LogEnd | GpuwatchError) -> None:
        if not self._view.is_attached:
            return
        if isinstance(news, GpuwatchError):
            hint = f"\n → {clean(news.hint)}" if news.hint else ""
            self._state.update(f" ✗ {clean(news.message)}{hint}")
            self._state.display = True
            return
        first, self._end = self._end is None, news
        self._follow = news.live and (self._follow or first)
        self._show_lines(end=self._follow or first)
        if first and self._query:  # written before there was a line
            self._search()

    def _show_lines(self, *, end: bool) -> None:
        """Show the lines of the stream, the last ones where it is to be the ``end``."""
        if self._end is None:
            return
        lines = [line for line in self._end.lines if self._stream in (None, line.stream)]
        self._view.show(lines, self._end.clock, end=end)
        self._hits = [n for n, text in self._view.texts.items() if any(matches(text, self._query))]
        what = "" if self._stream is None else f" on {STREAMS[self._stream]}"
        so_far = " so far" if self._end.live else ""
        self._state.update(f" nothing was printed{what}{so_far} (step lines are not shown here)")
        self._state.display = not lines
        self._describe()

    def _scrolled(self) -> None:
        """A run is followed while its end is in sight."""
        self._follow = bool(self._end and self._end.live and self._view.is_vertical_scroll_end)
        self._describe()

    def _describe(self) -> None:
        """The title, and the state of the search."""
        end = self._end
        if end is None:
            return
        parts = [STREAMS[self._stream]]
        if shown := self._view.in_sight():
            numbers = list(self._view.texts)  # of a progress bar the newest line alone
            first, last = (f"{bisect_left(numbers, n) + 1:,}" for n in shown)
            lines = f"line {first}" if first == last else f"lines {first}–{last}"
            parts.append(f"{lines} of {'the newest ' * end.older}{len(numbers):,}")
        if self.upto_ns is not None:
            parts.append(f"up to {clock_time(self.upto_ns / NS)}")
        parts += ["following"] if self._follow else []
        self._title.say(f"log of {end.name}", "  ".join(parts))
        foot = self._note or (self._found() if self._query else "")
        self._message.update(f" » {foot}")
        self._message.display = bool(foot)

    def _found(self) -> str:
        """How many lines match."""
        what = f"“{clean(self._query)}”"
        before = self._end is not None and self._end.older
        older = f" in the newest {len(self._view.texts):,}: v has all" if before else ""
        if not self._hits:
            return f"{what} is not in the log{older}"
        hit = self._view.hit
        place = f"{bisect_left(self._hits, hit) + 1:,} of " if hit in self._hits else ""
        return f"{what}: {place}{counted(len(self._hits), 'matching line')}{older}"

    def say(self, note: str) -> None:
        """The answer to a key, until the next one that does something."""
        self._note = note
        self._describe()

    # Keys.

    def action_follow(self) -> None:
        if self._end is None or not self._end.live:
            self.say("the run is over: there is nothing to follow")
            return
        self._follow = not self._follow
        if self._follow:
            self._view.scroll_end(animate=False)
        self.say("")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A key is a letter while a search is written; matches are of a search."""
        if action == "search":
            return not self._line.display
        return action != "hit" or bool(self._query)

    def action_stream(self, number: int) -> None:
        self._note = ""
        self._stream = [*STREAMS][number - 1]
        self._show_lines(end=self._view.is_vertical_scroll_end)

    def action_wrap(self) -> None:
        self._note = ""
        self._view.wrap = not self._view.wrap
        self._show_lines(end=self._follow)

    def action_search(self) -> None:
        self.say("")
        self._line.display = True
        self._field.write("")
        self.refresh_bindings()

    def on_key(self, event: events.Key) -> None:
        """Up in an empty field brings back the last text searched for."""
        if event.key == "up" and self._field.has_focus and not self._field.value:
            event.stop()
            self._field.write(self._last_query)

    def on_input_submitted(self, message: Input.Submitted) -> None:
        if message.value:
            self._query = self._last_query = self._view.wanted = message.value
        self.on_field_left()
        if message.value and self._end is not None:
            self._search()

    def _search(self) -> None:
        """Go to the first match from the top of the view on."""
        top, _ = self._view.in_sight() or (0, 0)
        self._view.hit = top - 1
        self._show_lines(end=self._follow)
        self.action_hit(1)

    def on_field_left(self) -> None:
        self._field.hide()
        self._line.display = False
        self._view.focus()
        self.refresh_bindings()

    def action_hit(self, by: int) -> None:
        """Go to the next or the previous match; the first follows the last."""
        if self._hits:
            hit, hits = self._view.hit, self._hits
            at = bisect_right(hits, hit) if by > 0 else bisect_left(hits, hit) - 1
            self._view.go_to(hits[at % len(hits)])
            self.say("")

    def action_pager(self) -> None:
        if self.refused():
            return
        try:
            with self.app.suspend():
                trouble = show_in_pager(self.path, self._stream, self.upto_ns)
        except SuspendNotSupported:
            trouble = "a pager needs a terminal"
        if trouble:
            self.say(trouble)

    def action_back(self) -> None:
        """The search is forgotten first."""
        if not self._query:
            self.action_close()
            return
        self._query = self._view.wanted = ""
        self._view.hit = -1
        self.refresh_bindings()
        self._show_lines(end=self._follow)

    def action_close(self) -> None:
        self.dismiss(None)


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
        if not self.wrap:
            top, height = self.scroll_offset.y, self.scrollable_content_region.height
            shown = (cell_len(self.texts[n]) for n, _, _ in self._rows[top : top + height])
            longest = max(shown, default=0)
            step = max(1, self._room // 2)
            self._column = max(0, min(max(longest, self._column), self._column + by * step))
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
    if query:
        case = re.IGNORECASE if query == query.lower() else 0
        yield from (found.span() for found in re.finditer(re.escape(query), text, case))


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
