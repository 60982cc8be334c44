"""Reads a log by pages and moves a position in it by rows."""

from __future__ import annotations

from pathlib import Path

from gpuwatch.core.errors import GpuwatchError, StorageError
from gpuwatch.core.text import clean
from gpuwatch.core.units import NS, clock_time
from gpuwatch.session.reading.log_lines import END, LogLine
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.tui.feed.session_text import text
from gpuwatch.tui.feed.snapshot import Trouble
from gpuwatch.tui.log.rows import LogOptions, height_of

Place = tuple[int, int]
"""A line's number, and the row within it if it is wrapped."""


_LOCK_WAIT_SECONDS = 0.05
"""Longest wait for a file that its writer has locked."""
_SPAN, _SPANS = 10_000, 20
"""Lines examined per query when one stream is shown, and most queries per call."""


class Gaps:
    """Stretches of a log that have no line of a stream."""

    def __init__(self) -> None:
        self._stretches: list[tuple[int, int]] = []

    def add(self, low: int, high: int) -> None:
        """Add the stretch from number ``low`` to ``high``."""
        apart = []
        for first, last in self._stretches:
            if first <= high + 1 and low <= last + 1:
                low, high = min(low, first), max(high, last)
            else:
                apart.append((first, last))
        self._stretches = [*apart, (low, high)]

    def behind(self, at: int, back: bool) -> int:
        """``at``, or the first number past the stretch that contains it."""
        for low, high in self._stretches:
            if low <= at - back <= high:
                return low if back else high + 1
        return at


class LogPager:
    """The log of a session, open for reading.

    Raises on opening:
        NotASession, NewerSchema, StorageError
    """

    def __init__(self, path: Path, upto_ns: int | None) -> None:
        """``upto_ns``: the session time of the last line; ``None``: no limit."""
        self._reader = SessionReader(path)
        self._upto_ns = upto_ns
        meta = self._reader.meta()
        name, where = text(meta, "workload", "name"), text(meta, "environment", "label")
        self.name = clean(f"{name} in {where}" if where else name or path.stem)
        self.live = False
        """Whether new lines may come."""
        self.last = -1
        """Number of the newest line."""
        self.clock = 4
        """Width of the newest line's time."""
        self.stream: str | None = None
        self.trouble: Trouble | None = None
        """Why the last reading failed."""
        self.incomplete = False
        """Whether the last reading gave fewer lines than there are."""
        self._empty: dict[str, Gaps] = {}
        self._reader.wait_at_most(_LOCK_WAIT_SECONDS)
        self.poll()

    def close(self) -> None:
        self._reader.close()

    def poll(self) -> bool:
        """Check for new lines; returns whether the screen must be painted."""
        before = self.last, self.live, self.trouble, self.incomplete
        try:
            if self._upto_ns is None:
                self.live = self._reader.status(self._reader.meta()).live
                self.last = self._reader.last_log()
            else:
                self.last = self._reader.row_at("log", self._upto_ns)
        except StorageError:
            return False  # locked by its writer: what is drawn stays until the next check
        except GpuwatchError as error:
            self.trouble = Trouble(error.message, error.hint)
        for line in self.lines(self.last, 1) if self.last != before[0] else ():
            self.clock = max(4, len(clock_time(line.t / NS)))
        return before != (self.last, self.live, self.trouble, False)

    def lines(self, at: int, limit: int, *, back: bool = False) -> list[LogLine]:
        """At most ``limit`` lines from number ``at`` on; ``back``: those before ``at``.

        Empty if the file cannot be read; :attr:`trouble` then holds the reason. While the file is
        locked, or if many lines of the other stream lie between, there may be fewer than exist:
        :attr:`incomplete` is set, and another call finds more.
        """
        try:
            if self.stream is None:
                lines = self._reader.log_lines(at, limit, upto=self.last, back=back)
                self.incomplete = False
            else:
                lines = self._of_stream(at, limit, back)
        except StorageError:
            self.incomplete = True
            return []
        except GpuwatchError as error:
            self.trouble, self.incomplete = Trouble(error.message, error.hint), False
            return []
        self.trouble = None
        return lines

    def _of_stream(self, at: int, limit: int, back: bool) -> list[LogLine]:
        """Lines of one stream; few enough are examined that the screen stays responsive."""
        lines: list[LogLine] = []
        empty = self._empty.setdefault(str(self.stream), Gaps())
        for _ in range(_SPANS):
            next_line = self._reader.log_lines(at, 1, upto=self.last, back=back)
            if next_line:
                at = empty.behind(next_line[0].n + back, back)
                next_line = self._reader.log_lines(at, 1, upto=self.last, back=back)
            if not next_line or len(lines) == limit:
                self.incomplete = False
                return lines
            n = next_line[0].n
            low, high = (n - _SPAN + 1, n) if back else (n, n + _SPAN - 1)
            high = min(high, self.last)
            more = self._reader.log_lines(
                high + 1 if back else low,
                limit - len(lines),
                stream=self.stream,
                upto=high,
                back=back,
                least=low,
            )
            lines = [*more, *lines] if back else [*lines, *more]
            if not more:
                empty.add(low, high)
            at = low if back else high + 1
        self.incomplete = len(lines) < limit
        return lines

    def first(self) -> Place:
        """The position of the first line."""
        lines = self.lines(-END, 1)
        return (lines[0].n if lines else 0, 0)

    def end(self, options: LogOptions, room: int) -> Place | None:
        """The top of the last page of ``room`` rows, as far as it is read; ``None``: not yet."""
        lines = self.lines(END, room, back=True)
        if self.incomplete and not lines:
            return None
        for line in reversed(lines):
            room -= height_of(line, options)
            if room <= 0:
                return line.n, -room
        return (lines[0].n, 0) if lines else (0, 0)

    def moved(self, place: Place, rows: int, options: LogOptions, room: int) -> Place:
        """The position ``rows`` below ``place`` (negative: above), at most the last page's top."""
        if rows < 0:
            left = -rows - place[1]
            for line in reversed(self.lines(place[0], -rows, back=True)):
                if left <= 0:
                    break
                left -= height_of(line, options)
                place = line.n, 0
            return place[0], max(0, -left)
        left = rows + place[1]
        for line in self.lines(place[0], left + 1):
            height = height_of(line, options)
            place = line.n, min(left, height - 1)
            if left < height:
                break
            left -= height
        end = self.end(options, room)
        return place if end is None or self.incomplete else min(place, end)
