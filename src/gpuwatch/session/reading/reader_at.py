"""A session as it was at an earlier moment, read through the interface of its reader."""

from __future__ import annotations

from collections.abc import Mapping

from gpuwatch.core.models import JSON
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.status import RUNNING, STARTING, Status, status
from gpuwatch.session.rows import GpuProcessRow, Processes


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
        self._upto = {table: self.row_at(table, t_ns) for table in ("step", "log", "event")}

    def _end(self, table: str) -> int:
        return self._upto[table]

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
        return STARTING if meta.get("handle") and "launch" not in meta else RUNNING

    def gpu_processes(self) -> list[GpuProcessRow]:
        return list(self.processes().on_gpus)

    def processes(self, upto: int | None = None) -> Processes:
        return super().processes(self.t_ns if upto is None else min(upto, self.t_ns))
