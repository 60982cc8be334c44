"""Where one stands in a log: lines by pages, and the ways from one row to another."""

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
"""A line's number, and a row of it where it is wrapped."""


_PATIENCE_SECONDS = 0.05
"""A screen waits so long for a file that its writer has locked."""
_SPAN, _SPANS = 10_000, 20
"""Lines of both streams that are looked at in one go for those of one, and how often at once."""


class Gaps:
    """Stretches of a log without a line of some stream."""

    def __init__(self) -> None:
        self._found: list[tuple[int, int]] = []

    def add(self, low: int, high: int) -> None:
        """No line from ``low`` to ``high``."""
        apart = []
        for first, last in self._found:
            if first <= high + 1 and low <= last + 1:
                low, high = min(low, first), max(high, last)
            else:
                apart.append((first, last))
        self._found = [*apart, (low, high)]

    def behind(self, at: int, back: bool) -> int:
        """``at``, or the first number behind the stretch that it stands in."""
        for low, high in self._found:
            if low <= at - back <= high:
                return low if back else high + 1
        return at


class LogPager:
    """The log of a session open for reading.

    Raises on opening:
        NotASession, NewerSchema, StorageError
    """

    def __init__(self, path: Path, upto_ns: int | None) -> None:
        """``upto_ns``: the session time after which there is nothing."""
        self._reader = SessionReader(path)
        self._upto_ns = upto_ns
        meta = self._reader.meta()
        name, where = text(meta, "workload", "name"), text(meta, "environment", "label")
        self.name = clean(f"{name} in {where}" if where else name or path.stem)
        self.live = False
        """More may come."""
        self.last = -1
        """Number of the newest line."""
        self.clock = 4
        """Columns of the newest line's time."""
        self.stream: str | None = None
        self.trouble: Trouble | None = None
        """Why nothing could be read last time."""
        self.late = False
        """Not all lines that were asked for could be found at once."""
        self._empty: dict[str, Gaps] = {}
        self._reader.wait_at_most(_PATIENCE_SECONDS)
        self.look()

    def close(self) -> None:
        self._reader.close()

    def look(self) -> bool:
        """See what was written since; returns whether there is something else to draw."""
        before = self.last, self.live, self.trouble, self.late
        try:
            if self._upto_ns is None:
                self.live = self._reader.status(self._reader.meta()).live
                self.last = self._reader.last_log()
            else:
                self.last = self._reader.row_at("log", self._upto_ns)
        except StorageError:
            return False  # its writer has it: what is drawn stays until the next look
        except GpuwatchError as error:
            self.trouble = Trouble(error.message, error.hint)
        for line in self.lines(self.last, 1) if self.last != before[0] else ():
            self.clock = max(4, len(clock_time(line.t / NS)))
        return before != (self.last, self.live, self.trouble, False)

    def lines(self, at: int, limit: int, *, back: bool = False) -> list[LogLine]:
        """At most ``limit`` lines from number ``at`` on; ``back``: those before it.

        None where they cannot be read: :attr:`trouble` says why. Fewer than there are while the
        file is locked or many lines of the other stream stand between: :attr:`late` is set, and
        more are found when it is asked again.
        """
        try:
            if self.stream is None:
                found = self._reader.log_lines(at, limit, upto=self.last, back=back)
                self.late = False
            else:
                found = self._of_stream(at, limit, back)
        except StorageError:
            self.late = True
            return []
        except GpuwatchError as error:
            self.trouble, self.late = Trouble(error.message, error.hint), False
            return []
        self.trouble = None
        return found

    def _of_stream(self, at: int, limit: int, back: bool) -> list[LogLine]:
        """Lines of one stream, looking at so many of both that a screen is not held up."""
        found: list[LogLine] = []
        empty = self._empty.setdefault(str(self.stream), Gaps())
        for _ in range(_SPANS):
            near = self._reader.log_lines(at, 1, upto=self.last, back=back)
            if near:
                at = empty.behind(near[0].n + back, back)
                near = self._reader.log_lines(at, 1, upto=self.last, back=back)
            if not near or len(found) == limit:
                self.late = False
                return found
            n = near[0].n
            low, high = (n - _SPAN + 1, n) if back else (n, n + _SPAN - 1)
            high = min(high, self.last)
            more = self._reader.log_lines(
                high + 1 if back else low,
                limit - len(found),
                stream=self.stream,
                upto=high,
                back=back,
                least=low,
            )
            found = [*more, *found] if back else [*found, *more]
            if not more:
                empty.add(low, high)
            at = low if back else high + 1
        self.late = len(found) < limit
        return found

    def first(self) -> Place:
        found = self.lines(-END, 1)
        return (found[0].n if found else 0, 0)

    def end(self, look: LogOptions, room: int) -> Place | None:
        """The first row of the last page of ``room`` rows, as far as it is found; ``None``: not at
        all so far."""
        found = self.lines(END, room, back=True)
        if self.late and not found:
            return None
        for line in reversed(found):
            room -= height_of(line, look)
            if room <= 0:
                return line.n, -room
        return (found[0].n, 0) if found else (0, 0)

    def moved(self, place: Place, rows: int, look: LogOptions, room: int) -> Place:
        """``rows`` down from there, or up; not behind the last page."""
        if rows < 0:
            left = -rows - place[1]
            for line in reversed(self.lines(place[0], -rows, back=True)):
                if left <= 0:
                    break
                left -= height_of(line, look)
                place = line.n, 0
            return place[0], max(0, -left)
        left = rows + place[1]
        for line in self.lines(place[0], left + 1):
            height = height_of(line, look)
            place = line.n, min(left, height - 1)
            if left < height:
                break
            left -= height
        end = self.end(look, room)
        return place if end is None or self.late else min(place, end)
