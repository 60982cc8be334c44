"""A session as it was at an earlier moment, read through the interface of its reader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gpuwatch.core.models import JSON
from gpuwatch.session.reading.reader import CHUNK, SessionReader
from gpuwatch.session.reading.samples import LATEST, Samples, newest
from gpuwatch.session.reading.status import State, Status, status
from gpuwatch.session.rows import (
    EventRow,
    GpuProcessRow,
    LogRow,
    Processes,
    RankStepRow,
    StepRow,
)
from gpuwatch.session.schema import WARMUP

_RUNNING = Status(State.RUNNING, "running", live=True)
_STARTING = Status(State.STARTING, "starting", live=True)


class PastReader(SessionReader):
    """What ``reader`` would have returned ``t_ns`` nanoseconds after the session's start.

    Reads through the connection of ``reader``, which must stay open. Data without a time (facts,
    devices, ceilings) is returned as it is in the file.
    """

    def __init__(self, reader: SessionReader, t_ns: int) -> None:
        super().__init__(reader.path, reader.opened)
        self.t_ns = t_ns
        self._upto: dict[str, int] = {}
        self.advance(t_ns)

    def close(self) -> None:
        """Does nothing: the reader that opened the file closes it."""

    def advance(self, t_ns: int) -> None:
        """Move to another time; results read before stay valid."""
        self.t_ns = t_ns
        self._upto = {table: super(PastReader, self).row_at(table, t_ns) for table in _TABLES}

    def row_at(self, table: str, t: int) -> int:
        return super().row_at(table, min(t, self.t_ns))

    def meta(self) -> dict[str, JSON]:
        """The meta without what is dated later than this time, except the count of a step."""
        values = super().meta()
        result = values.get("result")
        if isinstance(result, dict) and not self._later(result):
            return values
        values.pop("run_state", None)
        past = {key: value for key, value in values.items() if not self._later(value)}
        if self._upto["step"] >= 0 and "count" in values:  # a later one holds for all steps
            past["count"] = values["count"]
        past.pop("result", None)
        past.pop("closed", None)
        return past

    def _later(self, value: JSON) -> bool:
        t = value.get("t") if isinstance(value, dict) else None
        return isinstance(t, (int, float)) and t > self.t_ns

    def status(self, meta: Mapping[str, JSON]) -> Status:
        """The status at this time: running, or starting before the launch, unless it had ended."""
        if "result" in meta:
            return status(meta, self.path)
        return _STARTING if meta.get("handle") and "launch" not in meta else _RUNNING

    def _changes(self) -> list[tuple[JSON, ...]]:
        return self._newest_changes("WHERE t <= ?", (self.t_ns,))

    def last_sample(self) -> int | None:
        return newest(self._rows, self.t_ns)

    def sample_pieces(
        self, channels: Sequence[int], after: int = -1, upto: int = LATEST
    ) -> Iterator[Samples]:
        yield from super().sample_pieces(channels, after, min(upto, self.t_ns))

    def steps(self, after: int = -1, limit: int = CHUNK) -> list[StepRow]:
        limit = min(limit, self._upto["step"] - after)
        rows = super().steps(after, limit) if limit > 0 else []
        return [row for row in rows if row.n <= self._upto["step"]]

    def step_groups(self, after: int, upto: int) -> list[StepRow]:
        return super().step_groups(after, min(upto, self._upto["step"]))

    def first_timed_step(self) -> int | None:
        number = super().first_timed_step()
        return number if number is not None and number <= self._upto["step"] else None

    def step_count(self) -> int | None:
        rows = self._rows(
            f"SELECT count(*), sum(count * NOT {WARMUP}) FROM step WHERE n <= ?",  # noqa: S608
            (self._upto["step"],),
        )
        return int(rows[0][1]) if rows[0][0] else None

    def last_step(self) -> int:
        return self._upto["step"]

    def rank_steps(self, after: int = -1, limit: int = CHUNK) -> list[RankStepRow]:
        return [row for row in super().rank_steps(after, limit) if row.t <= self.t_ns]

    def log(self, after: int = -1, limit: int = CHUNK) -> list[LogRow]:
        limit = min(limit, self._upto["log"] - after)
        rows = super().log(after, limit) if limit > 0 else []
        return [row for row in rows if row.n <= self._upto["log"]]

    def last_log(self) -> int:
        return self._upto["log"]

    def events(self, after: int = -1, limit: int = CHUNK) -> list[EventRow]:
        limit = min(limit, self._upto["event"] - after)
        rows = super().events(after, limit) if limit > 0 else []
        return [row for row in rows if row.n <= self._upto["event"]]

    def events_of(self, kinds: Sequence[str], upto: int) -> list[EventRow]:
        return super().events_of(kinds, min(upto, self._upto["event"]))

    def last_event(self) -> int:
        return self._upto["event"]

    def gpu_processes(self) -> list[GpuProcessRow]:
        return list(self.processes().on_gpus)

    def processes(self, upto: int | None = None) -> Processes:
        return super().processes(self.t_ns if upto is None else min(upto, self.t_ns))


_TABLES = ("step", "log", "event")
