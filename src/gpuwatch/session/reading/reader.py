"""Reads one session file as frozen rows, in short chunks, and never writes.

All output for people is made from these rows. Times ``t`` are nanoseconds since the session's
start; values are in their metric's unit (``gpuwatch.core.metrics``); ``None`` is unknown.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import accumulate, count
from math import isfinite, nan
from pathlib import Path

from gpuwatch.core.errors import GpuwatchError, NotASession, StorageError
from gpuwatch.core.models import JSON, mapping, number
from gpuwatch.session.reading import limits, parsed
from gpuwatch.session.reading.bounded_connection import MOST_BYTES
from gpuwatch.session.reading.log_lines import END, LONGEST, LogLine
from gpuwatch.session.reading.open import OpenedSession, open_session
from gpuwatch.session.reading.processes import gpu_process, presences, processes_at
from gpuwatch.session.reading.samples import LATEST, Samples, Times, newest, pieces
from gpuwatch.session.reading.status import Status, status, writer_alive
from gpuwatch.session.reading.step_lines import ONE_BY_ONE, StepLines
from gpuwatch.session.reading.validation import Validated, floats, in_order, whole
from gpuwatch.session.rows import (
    ChannelRow,
    DeviceRow,
    EventRow,
    GpuPresence,
    GpuProcessRow,
    LogRow,
    Processes,
    RankRow,
    RankStepRow,
    StepBucket,
    StepPlace,
    StepRow,
)
from gpuwatch.session.schema import BUCKET_SECONDS, WARMUP

CHUNK = 5000
"""Rows per read, so that a reader never blocks the writer for long."""

_FEW = 500
"""Rows per read where the newest ones mostly suffice."""

_OF_PROCESSES = ("gpu_process", "process", "process_use")

_BUCKET_NS = BUCKET_SECONDS * 1_000_000_000
_TIMED = ("step", "log", "event", "gpu_process", "process", "process_use", "rank_step")
"""Tables whose rows are in time order."""


class SessionReader(Validated):
    """A session file open for reading. Not thread-safe.

    Raises on opening:
        NotASession, NewerSchema, StorageError
    """

    t_ns = LATEST
    """Session time up to which it is read, in nanoseconds."""

    def __init__(self, path: Path, opened: OpenedSession | None = None) -> None:
        """``opened``: the file, if it is already open."""
        self.path = path
        self.opened = opened if opened is not None else open_session(path, writer_alive)
        self.notice = self.opened.notice
        """How the file of a dead writer was made readable, if that was necessary."""
        self.left_out: dict[str, None] = {}
        """Sentences on what was too much to read."""
        # Last results with the rows behind them: a screen asks once a second.
        self._meta: tuple[list[tuple[JSON, ...]], dict[str, JSON]] = [], {}
        self._devices: tuple[list[tuple[JSON, ...]], tuple[DeviceRow, ...]] = [], ()
        self._channels: tuple[object, tuple[ChannelRow, ...]] = None, ()
        self._minutes: Times = {}
        self._processes: tuple[tuple[JSON, ...], Processes] | None = None

    def __enter__(self) -> SessionReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.opened.close()

    def leave_out(self, sentence: str) -> None:
        self.left_out[sentence] = None

    def _rows(
        self,
        sql: str,
        values: Sequence[object] = (),
        *,
        cut: bool = False,
        most_bytes: int = MOST_BYTES,
    ) -> list[tuple[JSON, ...]]:
        try:
            return self.opened.connection.rows(sql, values, cut=cut, most=most_bytes)
        except sqlite3.Error as error:
            if "locked" in str(error):
                raise StorageError(f"{self.path} is busy: {error}", "try again") from error
            raise NotASession(
                f"{self.path} is damaged: {error}",
                "copy it again, with the file of the same name ending in -journal if there is one",
            ) from error

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Make all reads in the block see one state of the file, with a single lock.

        Keep it short: the recorder waits for its end.
        """
        self._rows("BEGIN")
        try:
            yield
        finally:
            with suppress(sqlite3.Error):
                self.opened.connection.execute("COMMIT")

    def wait_at_most(self, seconds: float) -> None:
        """Set how long to wait for a locked file before raising :class:`StorageError`."""
        self._rows(f"PRAGMA busy_timeout = {int(seconds * 1000)}")

    def meta(self) -> dict[str, JSON]:
        """What is known of the session as a whole; ``docs/session-format.md`` lists the keys."""
        rows = self._table("meta", "key, value", limits.KEYS)
        previous_rows, values = self._meta
        if rows != previous_rows:
            known_rows = set(previous_rows)
            with self._documents("meta") as read:
                values = {
                    str(row[0]): values[str(row[0])] if row in known_rows else read(row[1])
                    for row in rows
                }
            self._meta = rows, values
        return dict(values)

    def status(self, meta: Mapping[str, JSON]) -> Status:
        """The status that follows from this :meth:`meta`."""
        return status(meta, self.path)

    def facts(self) -> dict[str, dict[str, JSON]]:
        """The fingerprint by scope: ``host``, ``process``, ``workload``."""
        by_scope: dict[str, dict[str, JSON]] = {}
        with self._documents("fact") as read:
            for scope, key, value in self._table("fact", "scope, key, value", limits.FACTS):
                by_scope.setdefault(str(scope), {})[str(key)] = read(value)
        return by_scope

    def devices(self) -> tuple[DeviceRow, ...]:
        rows = self._table("device", "id, kind, name, uuid, used, attributes", limits.DEVICES)
        if rows != self._devices[0]:
            with self._documents("device") as read:
                self._devices = rows, parsed.devices_of(rows, read)
        return self._devices[1]

    def _table(self, name: str, columns: str, limit: int) -> list[tuple[JSON, ...]]:
        """Rows of a small table, up to the limits on number and size."""
        sql = f"SELECT {columns} FROM {name} LIMIT ?"  # noqa: S608
        rows = self._rows(sql, (limit + 1,), cut=True, most_bytes=limits.TEXT)
        sizes = accumulate(map(parsed.bytes_of, rows[:limit]))
        size = sum(total <= limits.TEXT for total in sizes)
        if size < len(rows):
            self.leave_out(f"only the first {size:,} rows of the table {name} are read")
        return rows[:size]

    @contextmanager
    def _documents(self, table: str) -> Iterator[Callable[[JSON], JSON]]:
        """Give a parser for the JSON of a table, limited in the total number of values."""
        left, left_out = limits.CELLS, 0

        def read(text: JSON) -> JSON:
            nonlocal left, left_out
            left -= parsed.cells(text)
            left_out += left < 0
            return parsed.json_of(text) if left >= 0 else None

        yield read
        if left_out:
            self.leave_out(
                f"{left_out:,} values of the table {table} are left out: its JSON holds "
                f"more than {limits.CELLS:,} items"
            )

    def channels(self) -> tuple[ChannelRow, ...]:
        """All channels by ID, with the method and reason of their last change."""
        ((count,),) = self._rows("SELECT count(id) FROM channel")
        known = int(count), self._changes()
        if known != self._channels[0]:
            rows = self._rows(
                "SELECT id, device, metric, unit, kind, method, source, reason FROM channel "
                "ORDER BY id LIMIT ?",
                (limits.CHANNELS,),
            )
            if int(count) > len(rows):
                self.leave_out(f"only the first {len(rows):,} of {int(count):,} channels are read")
            self._channels = known, parsed.channels_of(rows, known[1])
        return self._channels[1]

    def _changes(self) -> list[tuple[JSON, ...]]:
        """Channel, method, source and reason of each change of a channel, in order."""
        rows = self._rows(
            "SELECT channel, method, source, reason FROM change WHERE t <= ? "
            "ORDER BY n DESC LIMIT ?",
            (self.t_ns, limits.CHANGES + 1),
        )
        if len(rows) > limits.CHANGES:
            del rows[-1]
            self.leave_out(f"only the last {len(rows):,} changes of channels are read")
        return rows[::-1]

    def last_sample(self) -> int | None:
        """The time of the newest sample in nanoseconds."""
        return newest(self._rows, self.t_ns)

    def samples(self, channels: Sequence[int], after: int = -1, upto: int = LATEST) -> Samples:
        """The samples of these channels with ``after < t <= upto`` in nanoseconds."""
        found = Samples(array("q"), tuple(array("d") for _ in channels))
        most = max(limits.SAMPLES, self._size() // 2) // max(1, len(channels))
        for piece in self.sample_pieces(channels, after, upto):
            if len(found.t) + len(piece.t) > most and found.t:
                self.leave_out(f"only {len(found.t):,} samples in a row are read")
                break
            found.t.extend(piece.t)
            for column, values in zip(found.values, piece.values, strict=True):
                column.extend(values)
        return found

    def sample_pieces(
        self, channels: Sequence[int], after: int = -1, upto: int = LATEST
    ) -> Iterator[Samples]:
        """The same in pieces of at most 100 minutes."""
        yield from pieces(self._rows, channels, after, min(upto, self.t_ns), self._minutes)

    def highest(
        self, metric: str, devices: Sequence[str], start: int, end: int
    ) -> dict[str, float]:
        """The highest value of ``metric`` by device, of those of ``devices`` where one is known,
        from ``start`` to ``end`` in nanoseconds."""
        found = [row for row in self.channels() if row.metric == metric and row.device in devices]
        read = self.samples([row.id for row in found], start - 1, end)
        known = {
            row.device: [value for value in values if value == value]
            for row, values in zip(found, read.values, strict=True)
        }
        return {device: max(values) for device, values in known.items() if values}

    def _size(self) -> int:
        """Bytes of the file."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    def _end(self, table: str) -> int:
        """The number of the last row that is read of ``step``, ``log`` or ``event``."""
        return LATEST

    def _last(self, table: str) -> int:
        """The number of the newest row of one of these tables, or -1."""
        ((last,),) = self._rows(f"SELECT max(n) FROM {table} WHERE n <= ?", (self._end(table),))  # noqa: S608
        return -1 if last is None else int(last)

    def steps(self, after: int = -1, limit: int = CHUNK) -> list[StepRow]:
        """Step lines with ``n > after`` in order; fewer than ``limit`` if they are long."""
        values = (after, self._end("step"), limit)
        rows = self._rows(ONE_BY_ONE, values, cut=True, most_bytes=limits.OF_LINES)
        in_order((row[0] for row in rows), after)
        return [parsed.step_of(row) for row in rows]

    def step_count(self) -> int | None:
        """Number of timed steps so far; ``None`` if no step was reported."""
        rows = self._rows(
            f"SELECT count(*), sum(count * NOT {WARMUP}) FROM step WHERE n <= ?",  # noqa: S608
            (self._end("step"),),
        )
        return int(rows[0][1]) if rows[0][0] else None

    def all_steps(self, after: int = -1) -> Iterator[StepRow]:
        while rows := self.steps(after):
            after = rows[-1].n
            last = self.completed() if after == self.last_step() else None
            yield from [*rows[:-1], last or rows[-1]]

    def completed(self) -> StepRow | None:
        """The last step line with the loss and accuracies that were printed after it; ``None``:
        none were."""
        told = mapping(self.meta().get("after_steps"))
        known = {key: number(value) for key, value in told.items()}
        late = {key: (nan if value is None else value,) for key, value in known.items()}
        for row in self.steps(self.last_step() - 1, 1) if told else ():
            loss, acc1, acc5 = (late.get(k, getattr(row, k)) for k in ("loss", "acc1", "acc5"))
            return replace(row, loss=loss, acc1=acc1, acc5=acc5)
        return None

    def place(self, n: int, step: int) -> StepPlace:
        """The place of ``step`` in line ``n``. Only lines before the first timed one have a count
        of their own; the hook's later ones that no statistic has count on."""
        first = self.first_timed_step()
        return first is not None and n >= first, step

    def last_reported(self, keys: Sequence[str]) -> dict[str, tuple[StepPlace, float]]:
        """The newest ``loss``, ``acc1`` or ``acc5`` in the last :data:`CHUNK` step lines, with its
        place, by key; NaN if it was not a number. A warm-up leaves out times alone."""
        newest: dict[str, tuple[StepPlace, float]] = {}
        first, last = self.last_step() - CHUNK, self.completed()
        for key in keys:
            rows = self._rows(
                f"SELECT n, step, {key} FROM step WHERE n > ? AND {key} IS NOT NULL "  # noqa: S608
                "ORDER BY n DESC LIMIT 1",
                (first,),
            )
            for n, step, blob in rows:
                if values := floats(blob):
                    newest[key] = self.place(whole(n), whole(step)), values[-1]
            if last and (values := getattr(last, key)):
                newest[key] = self.place(last.n, last.step), values[-1]
        return newest

    def loss_lost_at(self) -> StepPlace | None:
        """The step since which no loss is finite; ``None`` if the newest loss is finite, or
        there is none in as many lines."""
        since, last = None, self.last_step()
        below, late = last + 1, self.completed()
        if late and late.loss:
            if isfinite(late.loss[-1]):
                return None
            since = late.n, late.step
        while rows := self._rows(
            "SELECT n, step, loss FROM step WHERE n > ? AND n < ? AND loss IS NOT NULL "
            "ORDER BY n DESC LIMIT ?",
            (last - CHUNK if since is None else -1, below, _FEW),
            cut=True,
            most_bytes=limits.OF_LINES,
        ):
            in_order((-whole(row[0]) for row in rows), -below)
            for n, step, blob in rows:
                for at, loss in zip(count(whole(step), -1), reversed(floats(blob) or ())):
                    if isfinite(loss):
                        return since and self.place(*since)
                    since = whole(n), at
            below = whole(rows[-1][0])
        return since and self.place(*since)

    def some_steps(self) -> list[StepRow]:
        """All step lines, up to the limits on number and size."""
        return list(StepLines(self._rows, self.leave_out).one_by_one(-1, self.last_step()))

    def steps_together(
        self, after: int = -1, upto: int | None = None
    ) -> list[StepRow | StepBucket]:
        """All step lines with ``after < n <= upto``, those of ten seconds in one bucket; a line
        without a time for each of its steps stays a line."""
        upto = self.last_step() if upto is None else upto
        return list(StepLines(self._rows, self.leave_out).together(after, upto))

    def last_step(self) -> int:
        """The number ``n`` of the newest step line, or -1."""
        return self._last("step")

    def ranks(self) -> list[RankRow]:
        """The ranks of a run of several processes, in order; empty for any other run."""
        columns = "rank, local_rank, world_size, pid, device, cpu_nodes, gpu_node, sharded"
        rows = self._table("rank", columns, limits.RANKS)
        return [parsed.rank_of(row) for row in rows]

    def rank_steps(self, after: int = -1, limit: int = CHUNK) -> list[RankStepRow]:
        """Steps of each rank with ``n > after`` in order; fewer than ``limit`` if they are long."""
        rows = self._rows(
            f"SELECT n, t, rank, step, count, {WARMUP}, samples, tokens, seconds, "  # noqa: S608
            "phases, flop FROM rank_step WHERE n > ? ORDER BY n LIMIT ?",
            (after, limit),
            cut=True,
        )
        in_order((row[0] for row in rows), after)
        return [step for step in map(parsed.rank_step_of, rows) if step.t <= self.t_ns]

    def all_rank_steps(self) -> list[RankStepRow]:
        """All steps of each rank, up to the limit on their number."""
        steps: list[RankStepRow] = []
        while rows := self.rank_steps(steps[-1].n if steps else -1):
            steps += rows
            if len(steps) >= limits.RANK_STEPS:
                self.leave_out(f"only the first {len(steps):,} rows of the ranks' steps are read")
                break
        return steps

    def log(self, after: int = -1, limit: int = CHUNK) -> list[LogRow]:
        """Log lines with ``n > after`` in order; fewer than ``limit`` if they are long."""
        rows = self._rows(
            f"SELECT n, t, stream, substr(text, 1, {LONGEST}) FROM log "  # noqa: S608
            "WHERE n > ? AND n <= ? ORDER BY n LIMIT ?",
            (after, self._end("log"), limit),
            cut=True,
        )
        in_order((row[0] for row in rows), after)
        return [LogRow(n, whole(t), str(stream), str(text)) for n, t, stream, text in rows]

    def log_lines(
        self,
        at: int,
        limit: int,
        *,
        stream: str | None = None,
        upto: int = END,
        back: bool = False,
        least: int = -END,
    ) -> list[LogLine]:
        """At most ``limit`` log lines from number ``at`` on, in order; ``back``: those before it.

        ``stream``: only lines of this stream; ``least`` and ``upto``: the first and last line
        number to consider.
        """
        condition = "n >= ? AND n < min(?, ? + 1) " if back else "n >= max(?, ?) AND n <= ? "
        values: list[object] = [least, at, min(upto, END)]
        if stream is not None:
            condition += "AND stream = ? "
            values.append(stream)
        rows = self._rows(
            f"SELECT n, t, stream, substr(text, 1, {LONGEST}), length(text) FROM log "  # noqa: S608
            f"WHERE {condition}ORDER BY n {'DESC' if back else ''} LIMIT ?",
            (*values, limit),
        )
        page = [
            LogLine(whole(n), whole(t), str(line_stream), str(text), int(length))
            for n, t, line_stream, text, length in rows
        ]
        return page[::-1] if back else page

    def last_log(self) -> int:
        """The number of the newest log line, or -1."""
        return self._last("log")

    def events(self, after: int = -1, limit: int = CHUNK) -> list[EventRow]:
        """Events with ``n > after`` in order; fewer than ``limit`` if they are long."""
        rows = self._events(
            "n > ? AND n <= ? ORDER BY n LIMIT ?", (after, self._end("event"), limit)
        )
        in_order((row.n for row in rows), after)
        return rows

    def events_of(self, kinds: Sequence[str], upto: int) -> list[EventRow]:
        """The newest events of these kinds with ``n <= upto``, in order."""
        marks = ", ".join("?" for _ in kinds)
        rows = self._events(
            f"n <= ? AND kind IN ({marks}) ORDER BY n DESC LIMIT ?",
            (min(upto, self._end("event")), *kinds, CHUNK),
        )
        return rows[::-1]

    def last_event(self) -> int:
        """The number of the newest event, or -1."""
        return self._last("event")

    def _events(self, which: str, values: Sequence[object]) -> list[EventRow]:
        return [
            EventRow(
                whole(n), whole(t), str(kind), None if device is None else str(device), str(text)
            )
            for n, t, kind, device, text in self._rows(
                f"SELECT n, t, kind, device, substr(text, 1, {LONGEST}) FROM event "  # noqa: S608
                f"WHERE {which}",
                values,
                cut=True,
            )
        ]

    def gpu_processes(self) -> list[GpuProcessRow]:
        """The newest row of each process and GPU, including processes that left long ago."""
        ((last,),) = self._rows("SELECT max(n) FROM gpu_process")
        before = whole(last or 0) - limits.ON_GPUS_ROWS
        rows = self._rows(
            "SELECT t, device, pid, name, owned, bytes, running FROM gpu_process WHERE n IN "
            "(SELECT max(n) FROM gpu_process WHERE n > ? GROUP BY device, pid) LIMIT ?",
            (before, limits.ON_GPUS),
        )
        if self._rows("SELECT n FROM gpu_process WHERE n <= ? LIMIT 1", (before,)):
            self.leave_out(
                f"only the last {limits.ON_GPUS_ROWS:,} rows of processes on GPUs are read"
            )
        if len(rows) == limits.ON_GPUS:
            self.leave_out(f"only {len(rows):,} processes on GPUs are read")
        return [gpu_process(row) for row in rows]

    def processes(self, upto: int | None = None) -> Processes:
        """Processes at session time ``upto`` in nanoseconds (``None``: the end of the session), and
        those that ended in the minute before."""
        if upto is not None:
            return processes_at(self._rows, self.row_at, upto)
        # SQLite finds max(rowid) quickly only in a query of its own.
        last = ", ".join(f"(SELECT max(n) FROM {table})" for table in _OF_PROCESSES)  # noqa: S608
        (newest,) = self._rows(f"SELECT {last}")
        if self._processes is None or self._processes[0] != newest:
            processes = processes_at(self._rows, self.row_at, None)
            self._processes = newest, processes
        return self._processes[1]

    def presences(self, start: int, end: int) -> tuple[GpuPresence, ...]:
        """How long foreign processes were on GPUs between two session times, in nanoseconds."""
        return presences(self._rows, start, end, self.leave_out)

    def row_at(self, table: str, t: int) -> int:
        """The number ``n`` of the table's last row up to time ``t`` (session nanoseconds), or -1.

        A binary search: reads about forty single rows.
        """
        if table not in _TIMED:
            raise AssertionError(f"no table in order of time: {table}")
        low, t = -1, min(t, self.t_ns)
        newest = self._rows(f"SELECT n, t FROM {table} ORDER BY n DESC LIMIT 1")  # noqa: S608
        if not newest:
            return low
        if whole(newest[0][1]) <= t:
            return int(newest[0][0])
        high = int(newest[0][0])
        before = f"SELECT n, t FROM {table} WHERE n <= ? ORDER BY n DESC LIMIT 1"  # noqa: S608
        while high - low > 1:
            middle = (low + high) // 2
            row = self._rows(before, (middle,))
            if row and whole(row[0][0]) > middle:
                raise ValueError("rows that are not in order")
            if row and whole(row[0][1]) > t:
                high = int(row[0][0])
            else:
                low = middle
        row = self._rows(before, (low,))
        return int(row[0][0]) if row else -1

    def step_groups(self, after: int, upto: int) -> list[StepRow]:
        """The step lines with ``after < n <= upto``, combined to one or a few rows per ten seconds.

        A row has the sums of steps, samples and work, if every line reports them; number, time and
        step times are those of its newest line, the loss is the last one of any.
        """
        rows = self._rows(
            "SELECT newest.n, newest.t, newest.step, of.count, warm, of.samples, newest.seconds, "  # noqa: S608
            "told.loss, NULL, NULL, NULL, NULL, of.flop, of.bytes FROM (SELECT max(n) AS n, "
            "max(CASE WHEN loss IS NOT NULL THEN n END) AS at, sum(count) AS count, "
            f"{WARMUP} AS warm, sum(samples) AS samples, sum(flop) AS flop, sum(bytes) AS bytes "
            "FROM step WHERE n > ? AND n <= ? "
            "GROUP BY t / ?, warm, samples IS NULL, flop IS NULL, bytes IS NULL) AS of "
            "JOIN step AS newest USING (n) LEFT JOIN step AS told ON told.n = at ORDER BY 1",
            (after, min(upto, self._end("step")), _BUCKET_NS),
        )
        return [parsed.step_of(row) for row in rows]

    def first_timed_step(self) -> int | None:
        """The number ``n`` of the first step line after the warm-up, or ``None``."""
        rows = self._rows(
            f"SELECT n FROM step WHERE n <= ? AND NOT {WARMUP} ORDER BY n LIMIT 1",  # noqa: S608
            (self._end("step"),),
        )
        return int(rows[0][0]) if rows else None


def read_meta(path: Path) -> dict[str, JSON]:
    """What the session at ``path`` says of itself."""
    with SessionReader(path) as reader:
        return reader.meta()


def known_meta(path: Path) -> dict[str, JSON] | None:
    """The same; ``None`` if it cannot be read."""
    try:
        return read_meta(path)
    except GpuwatchError:
        return None
