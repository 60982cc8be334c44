"""Where one stands in a log: lines by pages, and the ways from one row to another."""

from __future__ import annotations

from pathlib import Path

from gpuwatch.errors import GpuwatchError
from gpuwatch.session.log_lines import END, LogLine
from gpuwatch.session.reader import SessionReader
from gpuwatch.text import clean
from gpuwatch.tui.log_rows import LogLook, height_of
from gpuwatch.tui.said import text
from gpuwatch.tui.snapshot import Trouble
from gpuwatch.units import NS, clock_time

Place = tuple[int, int]
"""A line's number, and a row of it where it is wrapped."""


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
        self.look()

    def close(self) -> None:
        self._reader.close()

    def look(self) -> bool:
        """See what was written since; returns whether something was."""
        before = self.last
        try:
            if self._upto_ns is None:
                self.live = self._reader.status(self._reader.meta()).live
                self.last = self._reader.last_log()
            else:
                self.last = self._reader.row_at("log", self._upto_ns)
        except GpuwatchError as error:
            self.trouble = Trouble(error.message, error.mend)
        for line in self.lines(self.last, 1) if self.last != before else ():
            self.clock = max(4, len(clock_time(line.t / NS)))
        return self.last != before

    def lines(self, at: int, limit: int, *, back: bool = False) -> list[LogLine]:
        """At most ``limit`` lines from number ``at`` on; ``back``: those before it.

        None where they cannot be read: :attr:`trouble` says why.
        """
        try:
            found = self._reader.log_lines(at, limit, stream=self.stream, upto=self.last, back=back)
        except GpuwatchError as error:
            self.trouble = Trouble(error.message, error.mend)
            return []
        self.trouble = None
        return found

    def first(self) -> Place:
        found = self.lines(-END, 1)
        return (found[0].n if found else 0, 0)

    def end(self, look: LogLook, room: int) -> Place:
        """The first row of the last page of ``room`` rows."""
        found = self.lines(END, room, back=True)
        for line in reversed(found):
            room -= height_of(line, look)
            if room <= 0:
                return line.n, -room
        return (found[0].n, 0) if found else (0, 0)

    def moved(self, place: Place, rows: int, look: LogLook, room: int) -> Place:
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
        return min(place, self.end(look, room))
