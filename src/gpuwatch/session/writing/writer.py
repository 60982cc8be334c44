"""The thread that writes a session file, so that sampling never waits for a disk."""

from __future__ import annotations

import math
import os
import sqlite3
import sys
import threading
import time
import traceback
from array import array
from collections.abc import Callable, Sequence
from functools import cache

from gpuwatch.session.schema import MINUTE_NS, MOST_CHANNELS
from gpuwatch.session.writing.statements import Row, event, insert
from gpuwatch.session.writing.store import SessionStore

MOST_SAMPLES = 200_000
"""Ticks, minutes of a channel, and process rows."""
MOST_LINES, MOST_LINE_BYTES = 200_000, 64 << 20
"""Log lines, and the memory of their texts."""

_KINDS = {
    "meta": ("INSERT OR REPLACE INTO meta ",),
    "line": ("INSERT INTO log ",),
    "sample": (
        "INSERT OR REPLACE INTO tick ",
        "INSERT INTO sample ",
        "INSERT INTO process ",
        "INSERT INTO process_use ",
        "INSERT INTO gpu_process ",
    ),
}


def thinned(rows: Sequence[Row]) -> tuple[list[Row], int]:
    """Thin out ``rows``, in order; returns the rows kept and the number lost for good.

    Keeps the newest row of each key in ``meta``, the newest log lines and samples within their
    limits, and everything else: steps and events are the essence of a run.
    """
    samples_left, lines_left, bytes_left = MOST_SAMPLES, MOST_LINES, MOST_LINE_BYTES
    keys: set[object] = set()
    kept: list[Row] = []
    lost = 0
    for row in reversed(rows):
        sql, values = row
        kind = _kind(sql)
        if kind == "meta":
            if values[0] in keys:
                continue
            keys.add(values[0])
        elif kind == "line":
            lines_left, bytes_left = lines_left - 1, bytes_left - sys.getsizeof(values[-1])
            if lines_left < 0 or bytes_left < 0:
                lost += 1
                continue
        elif kind == "sample":
            samples_left -= 1
            if samples_left < 0:
                lost += 1
                continue
        kept.append(row)
    kept.reverse()
    return kept, lost


@cache
def _kind(sql: str) -> str | None:
    return next((kind for kind, starts in _KINDS.items() if sql.startswith(starts)), None)


COMMIT_SECONDS = 0.5
MACHINE_COMMIT_SECONDS = 1.0
"""For a recording of the machine alone: its ticks cost less than the two disk syncs of a commit."""
PUMP_SECONDS = 0.1
"""Between two calls of the pump at the start, or if it has much to do."""
_LIVELY_SECONDS = 2.0
"""Length of the start phase."""
_LONGEST_SECONDS = 1.5
"""Longest time between two calls of the pump if ticks wake the writer."""
_FIRST_SECONDS = 0.05

Value = float | int | None

_SAMPLE = "INSERT INTO sample (n, samples) VALUES (?, ?)"
_MINUTE = "INSERT INTO minute (n, last, times) VALUES (?, ?, ?)"
_PACKED = "DELETE FROM tick WHERE n <= ?"


class OpenMinute:
    """Collects ticks, which stand in ``tick`` too until the minute is over."""

    def __init__(self, columns: int) -> None:
        self._times = array("q")
        self._columns = [array("d") for _ in range(columns)]
        self._last = -1

    def add(self, n: int, t: int, values: Sequence[Value]) -> list[Row]:
        """Add tick ``n`` at ``t`` ns, one value per column; returns the rows of the minute before,
        if this one begins another."""
        over = bool(self._times) and self._times[0] // MINUTE_NS != t // MINUTE_NS
        rows = self.close() if over else []
        self._last = n
        self._times.append(t)
        for column, value in zip(self._columns, values, strict=True):
            column.append(math.nan if value is None else value)
        return rows

    def close(self) -> list[Row]:
        """The rows of this minute, which take the place of its ticks; begins an empty one."""
        if not self._times:
            return []
        minute = self._times[0] // MINUTE_NS
        rows: list[Row] = []
        for channel, column in enumerate(self._columns):
            samples = column.tobytes()
            if samples == samples[:8] * len(column):
                samples = samples[:8]
            rows.append((_SAMPLE, (minute * MOST_CHANNELS + channel, samples)))
            del column[:]
        rows.append((_MINUTE, (minute, self._last, self._times.tobytes())))
        rows.append((_PACKED, (self._last,)))
        del self._times[:]
        return rows


class SessionWriter:
    """Takes rows from any thread and commits them on time; keeps them while it cannot.

    ``pump`` is called every ``pump_seconds`` in the writing thread and may put rows itself; the
    callback that it returned last is called when those rows are safely in the file. With
    ``pump_seconds=None`` ticks wake the writer, which commits at once. Commits are about
    ``commit_seconds`` apart.
    """

    def __init__(
        self,
        store: SessionStore,
        columns: int,
        *,
        base_ns: int,
        pump: Callable[[], Callable[[], None] | None] = lambda: None,
        pump_seconds: float | None = PUMP_SECONDS,
        commit_seconds: float = COMMIT_SECONDS,
        on_trouble: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._store = store
        self._base_ns = base_ns
        self._pump = pump
        self._pump_seconds = pump_seconds
        self._commit_seconds = commit_seconds
        self._on_trouble = on_trouble
        self._minute = OpenMinute(columns)
        self._tick_sql = insert("tick", columns, "n", "t")
        self._lock = threading.Lock()
        self._rows: list[Row] = []
        self._after: Callable[[], None] | None = None
        self._dropped = 0
        self.hurry = False
        """Set by the pump if it has more to do: call it again after :data:`PUMP_SECONDS`."""
        self._due = -math.inf
        """Session time, in nanoseconds, from which a tick wakes the writer."""
        self._last_tick = 0
        self._trouble_since: float | None = None
        self.trouble: str | None = None
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="session-writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, *rows: Row) -> None:
        with self._lock:
            self._rows.extend(rows)

    def tick(self, n: int, t: int, values: Sequence[Value]) -> None:
        """Put tick ``n`` at session time ``t`` in nanoseconds, with one value per column."""
        with self._lock:
            if packed := self._minute.add(n, t, values):
                # Ticks of that minute that still wait for the file are in it.
                self._rows = [row for row in self._rows if row[0] != self._tick_sql] + packed
            self._rows.append((self._tick_sql, (n, t, *values)))
        since, self._last_tick = t - self._last_tick, t
        # Use the tick nearest to the due time: the next one may be too late.
        if self._pump_seconds is None and t + since / 2 >= self._due:
            self._due = t + self._commit_seconds * 1e9
            self._wake.set()

    def look(self) -> None:
        """Call the pump now. From any thread."""
        self._wake.set()

    def restore(self, n: int, t: int, values: Sequence[Value]) -> None:
        """Take a tick that another recorder left in the file. Before :meth:`start`."""
        self._rows += self._minute.add(n, t, values)

    def close(self, patience: float = 5.0) -> bool:
        """Write the rest, trying for ``patience`` seconds; returns whether everything is saved."""
        with self._lock:
            self._rows += self._minute.close()
        self._stop.set()
        self._wake.set()
        self._thread.join()
        deadline = time.monotonic() + patience
        while not self.commit() or self._rows:  # a recovery leaves its event
            if time.monotonic() > deadline or self._store.gone:
                break
            time.sleep(0.25)
        safe = not self._rows
        self._store.close(whole=safe or self._store.gone)
        return safe

    def _run(self) -> None:
        try:
            if self._pump_seconds is not None:
                self._write_until_stopped(self._pump_seconds)
            while not self._stop.is_set():  # a tick wakes it
                self._wake.wait(_LONGEST_SECONDS)
                self._wake.clear()
                self._collect()
                self.commit()
            self._collect()
            self.commit()
        except BaseException as error:
            # A recorder that takes nothing in is useless. If it dies, another one can replace it
            # and finds everything that was not committed in the run's folder.
            if isinstance(error, OSError):
                hint = "continue recording its run: gpuwatch attach --record"
                print(f"gpuwatch: error: the recorder ends: {error}; {hint}", file=sys.stderr)
            else:
                traceback.print_exc()
            os._exit(1)

    def _write_until_stopped(self, pump_seconds: float) -> None:
        # Commit the first sample soon: somebody waits for it.
        wait, due = _FIRST_SECONDS, time.monotonic()
        lively = due + _LIVELY_SECONDS
        while True:
            self._wake.wait(wait)
            if self._stop.is_set():
                return
            self._wake.clear()
            self._collect()
            now = time.monotonic()
            if now >= due:
                self.commit()
                due = now + 0.9 * self._commit_seconds
            soon = self.hurry or now < lively
            wait = min(PUMP_SECONDS, pump_seconds) if soon else pump_seconds

    def _collect(self) -> None:
        after = self._pump()
        if after is not None:
            self._after = after

    def commit(self) -> bool:
        """Write the waiting rows; returns success. For the writing thread, and before it starts."""
        with self._lock:
            rows, self._rows = self._rows, []
        try:
            if rows:
                self._store.write(rows)
        except sqlite3.Error as error:
            kept, lost = thinned(rows)
            self._dropped += lost
            with self._lock:
                self._rows[:0] = kept
            self._note_trouble(error)
            return False
        if rows and self._trouble_since is not None:
            self._note_recovery()
        after, self._after = self._after, None
        if after is not None:
            after()
        return True

    def _note_trouble(self, error: sqlite3.Error) -> None:
        # A reader that holds its lock for a moment does not count.
        first = self._trouble_since is None
        if first:
            self._trouble_since = time.monotonic()
        text = f"cannot write {self._store.path}: {error}"
        if self._store.gone:
            text = f"{self._store.path} was deleted or replaced: nothing is recorded any more"
        busy = "locked" in str(error)
        if self.trouble is None and (not busy or not first):
            self.trouble = text
            self._on_trouble(text)

    def _note_recovery(self) -> None:
        since, self._trouble_since = self._trouble_since, None
        if self.trouble is None or since is None:
            return
        text = f"the file could not be written for {time.monotonic() - since:.1f} s: {self.trouble}"
        if self._dropped:
            text += f"; {self._dropped} rows did not fit into memory and are lost"
        self.trouble, self._dropped = None, 0
        self.put(event(time.monotonic_ns() - self._base_ns, "storage", text))
