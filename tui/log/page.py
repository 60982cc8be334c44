"""The screen with the log of a session: both streams, with search and follow."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Input

from gpuwatch.core.errors import GpuwatchError
from gpuwatch.core.units import NS, clock_time
from gpuwatch.session.reading.log_lines import LogLine
from gpuwatch.tui.feed.snapshot import Trouble
from gpuwatch.tui.live.head_rows import trouble_rows
from gpuwatch.tui.log.hits import Hits
from gpuwatch.tui.log.pager import LogPager, Place
from gpuwatch.tui.log.rows import STREAMS, LogOptions, height_of, line_rows, with_parts
from gpuwatch.tui.log.search import SearchResult
from gpuwatch.tui.widgets.canvas_screen import WritingScreen
from gpuwatch.tui.widgets.line import Line

_POLL_SECONDS = 0.5
"""Time between two checks for new lines."""
_MORE_SECONDS = 0.05
"""Time until reading goes on if not all lines could be read at once."""
_SHIFT = 0.5
"""Share of the text's columns that an arrow key shifts by."""

_STREAMS = (None, "stdout", "stderr")
_SEARCH = " search: "


class Searched(Message):
    def __init__(self, result: SearchResult) -> None:
        super().__init__()
        self.result = result


class LogScreen(WritingScreen):
    """Shows what a run wrote to its standard output and error."""

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
        Binding("q,l", "close", "close", show=False),
        Binding("left", "shift(-1)", "left", show=False, tooltip="shift long lines"),
        Binding("right", "shift(1)", "right", show=False, tooltip="shift long lines"),
        Binding("down,j", "scroll_by(1)", "down", show=False),
        Binding("up,k", "scroll_by(-1)", "up", show=False),
        Binding("pagedown,space", "page(1)", "page down", show=False),
        Binding("pageup", "page(-1)", "page up", show=False),
        Binding("home", "first", "first line", show=False),
        Binding("end", "last", "last line", show=False),
    ]

    def __init__(self, path: Path, *, upto_ns: int | None = None) -> None:
        """``upto_ns``: the session time of the last line to show; ``None``: show new lines too."""
        super().__init__()
        self.path = path
        self.upto_ns = upto_ns
        self._pager: LogPager | None = None
        self._trouble: Trouble | None = None
        self._top: Place = (0, 0)
        self._at_end = True
        self._shown: list[LogLine] = []
        self._seeking = False
        """Whether the last page is still being read."""
        self._more_pending = False
        """Whether :meth:`_read_more` is scheduled."""
        self._follow = True
        self._wrap = False
        self._column = 0
        self._last_query = ""
        """The last text searched for."""
        self._message = ""
        self._hits = Hits(path, self._post_result)

    # Reading.

    async def on_mount(self) -> None:
        try:
            self._pager = await asyncio.to_thread(LogPager, self.path, self.upto_ns)
        except GpuwatchError as error:
            self._trouble = Trouble(error.message, error.hint)
        else:
            self._follow = self._pager.live
            self._to_end()
            if self._pager.live:
                self.set_interval(_POLL_SECONDS, self._poll)
        self.paint()

    def on_unmount(self) -> None:
        self._hits.close()
        if self._pager is not None:
            self._pager.close()

    def _poll(self) -> None:
        """Check for new lines."""
        pager = self._pager
        if pager is None:
            return
        last = pager.last
        if not pager.poll():
            return
        if pager.last != last:
            self._hits.search_new(pager.last)
        if not pager.live:
            self._follow = False
        elif self._follow:
            self._to_end()
        if self.on_top:
            self.paint()

    def _read_more(self) -> None:
        """Go on reading the lines that could not be read at once."""
        self._more_pending = False
        if self._at_end:
            self._to_end()
        if self.on_top:
            self.paint()

    # Drawing.

    @property
    def _log_options(self) -> LogOptions:
        clock, hits = self._pager.clock if self._pager else 0, self._hits
        return LogOptions(self.app.size.width, clock, self._wrap, self._column, hits.query, hits.at)

    @property
    def _room(self) -> int:
        """Rows for the lines of the log."""
        return max(1, self.room[1] - 1 - bool(self._foot) - self.field.display)

    @property
    def _foot(self) -> str:
        """The message in the last row: the answer to a key, or the state of the search."""
        return self._message or self._hits.status()

    def paint(self) -> None:
        width, height = self.room
        if height < 3:
            return
        lines = self._log_rows(width)
        if self._trouble is not None:
            lines[1:1] = trouble_rows(self._trouble, width)
        foot_rows = bool(self._foot) + self.field.display
        lines = lines[: height - foot_rows]
        lines += [Line(width) for _ in range(height - foot_rows - len(lines))]
        if self._foot:
            lines.append(Line(width).add(" » ", "key").add(self._foot, "strong"))
        if self.field.display:
            lines.append(Line(width).add(_SEARCH, "key"))
            self.field.stand(len(_SEARCH), height - 1, width - len(_SEARCH))
        self.show(lines)

    def _log_rows(self, width: int) -> list[Line]:
        """The title, and the lines from the top one on."""
        pager = self._pager
        if pager is None:
            return [Line(width).add(" gpuwatch ", "brand").add("log", "strong")]
        shown = pager.lines(self._top[0], self._room)
        if pager.incomplete or self._seeking:
            shown = shown or self._shown
            if not self._more_pending:
                self._more_pending = True
                self.set_timer(_MORE_SECONDS, self._read_more)
        self._shown = shown
        self._trouble = pager.trouble
        options, (_, first) = self._log_options, self._top
        rows: list[Line] = []
        drawn = []
        for line in shown:
            if len(rows) < self._room + first:
                rows += line_rows(line, options)
                drawn.append(line)
        title = Line(width).add(" gpuwatch ", "brand").add(f"log of {pager.name}", "strong")
        lines = [with_parts(title, self._parts(pager, drawn))]
        if not shown and self._trouble is None:
            what = "" if pager.stream is None else f" on {STREAMS[pager.stream]}"
            nothing = f"nothing was printed{what}{' so far' if pager.live else ''}"
            reading = pager.incomplete or self._seeking
            lines.append(Line(width).add(f" {'reading …' if reading else nothing}", "muted"))
        return [*lines, *rows[first : first + self._room]]

    def _parts(self, pager: LogPager, drawn: Sequence[LogLine]) -> list[str]:
        """The parts of the title's right side."""
        parts = [STREAMS[pager.stream]]
        if drawn:
            first, last = f"{drawn[0].n + 1:,}", f"{drawn[-1].n + 1:,}"
            lines = f"line {first}" if first == last else f"lines {first}–{last}"
            parts.append(f"{lines} of {pager.last + 1:,}")
        if self.upto_ns is not None:
            parts.append(f"up to {clock_time(self.upto_ns / NS)}")
        return [*parts, "following"] if self._follow else parts

    # Moving.

    def action_scroll_by(self, rows: int) -> None:
        if self._pager is not None:
            self._go(self._pager.moved(self._top, rows, self._log_options, self._room))

    def action_page(self, by: int) -> None:
        self.action_scroll_by(by * max(1, self._room - 1))

    def action_first(self) -> None:
        if self._pager is not None:
            self._go(self._pager.first())

    def _go(self, top: Place) -> None:
        self._follow = self._at_end = self._seeking = False
        self._top = top
        self.paint()

    def action_last(self) -> None:
        self._follow = self._live
        self._to_end()
        self.paint()

    def action_follow(self) -> None:
        if not self._live:
            self._say("the run is over: there is nothing to follow")
            return
        self._follow = not self._follow
        if self._follow:
            self._to_end()
        self.paint()

    @property
    def _live(self) -> bool:
        return self._pager is not None and self._pager.live

    def _to_end(self) -> None:
        self._at_end = True
        if self._pager is not None:
            self._top = self._pager.end(self._log_options, self._room) or self._top
            self._seeking = self._pager.incomplete

    def _stay(self) -> None:
        """Keep the same top line after a change in how lines are drawn."""
        before = self._top[0], 0
        self._to_end()
        self._top = self._top if self._follow else min(before, self._top)
        self.paint()

    def action_stream(self, number: int) -> None:
        if self._pager is not None:
            self._pager.stream = _STREAMS[number - 1]
            self._shown = []
            if self._hits.query:
                self._hits.look_for(self._hits.query, self._pager.stream, self._pager.last)
            self._stay()

    def action_wrap(self) -> None:
        self._wrap = not self._wrap
        self._column = 0
        self._stay()

    def action_shift(self, by: int) -> None:
        if self._wrap:
            self._say("lines are wrapped: w cuts them, then ← → shift")
            return
        self._message = ""
        step = max(1, int(self._log_options.room * _SHIFT))
        self._column = max(0, self._column + by * step)
        self.paint()

    # Searching.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While a search is written its key is a letter of it."""
        return action != "search" or not self.field.display

    def action_search(self) -> None:
        self._message = ""
        self.field.write("")
        self.paint()

    def on_key(self, event: events.Key) -> None:
        """Up in an empty field brings back the last text searched for."""
        if event.key == "up" and self.field.display and not self.field.value:
            event.stop()
            self.field.write(self._last_query)

    def on_input_submitted(self, message: Input.Submitted) -> None:
        self.field.hide()
        if message.value:
            self._last_query = message.value
            self._search_for(message.value)
        self.paint()

    def on_field_left(self) -> None:
        self.field.hide()
        self.paint()

    def _search_for(self, query: str) -> None:
        self._hits.forget()
        if query and self._pager is not None:
            self._hits.look_for(query, self._pager.stream, self._pager.last)

    def _post_result(self, result: SearchResult) -> None:
        """In the search's thread."""
        self.post_message(Searched(result))

    def on_searched(self, message: Searched) -> None:
        if self._hits.take(message.result, self._top[0]):
            self._go_to_hit()
        self.paint()

    def action_hit(self, by: int) -> None:
        self._message = ""
        if self._hits.any:
            self._hits.move(by, self._top[0])
            self._go_to_hit()
        elif not self._hits.query:
            self._message = "search with / first"
        self.paint()

    def _go_to_hit(self) -> None:
        """Scroll so that the current match is in sight."""
        pager, options, n = self._pager, self._log_options, self._hits.at
        if pager is None or n is None:
            return
        self._follow = self._at_end = self._seeking = False
        rows = -self._top[1]
        for line in pager.lines(self._top[0], self._room):
            rows += height_of(line, options)
            if line.n == n and line.n > self._top[0] and rows <= self._room:
                return
        third = pager.moved((n, 0), -(self._room // 3), options, self._room)
        self._top = min(third, pager.end(options, self._room) or third)

    def _say(self, message: str) -> None:
        self._message = message
        self.paint()

    def action_back(self) -> None:
        if not self._hits.query:
            self.action_close()
            return
        self._hits.forget()
        self.paint()

    def action_close(self) -> None:
        self.dismiss(None)
