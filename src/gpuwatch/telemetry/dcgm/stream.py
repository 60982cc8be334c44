"""The child process ``dcgmi dmon``: started, read, restarted when it ends, and always reaped."""

from __future__ import annotations

import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.parent_death import ends_with_this
from gpuwatch.telemetry.base import Event
from gpuwatch.telemetry.dcgm.fields import BASIC, FIELDS, gpu_ids, hint, row, trouble

RETRY_S = 5.0
"""Delay between two attempts to reach a lost host engine, in seconds."""
SILENCE_S = 5.0
"""``dcgmi`` is restarted after this long (or three periods) without a line."""
_KEPT_LINES = 20
_LINES_ENOUGH = 3
_DISCOVERY_LINES = 2000


@dataclass(frozen=True)
class Reading:
    """The newest line of one GPU."""

    at: float
    """Monotonic seconds."""
    values: Mapping[int, float | None]
    """By field; shares from 0 to 1, bytes a second."""


class DcgmStream:
    """Follows ``dcgmi dmon`` on its own thread; :meth:`close` ends it."""

    def __init__(self, program: str, host: str, uuids: Sequence[str], period_s: float) -> None:
        self._program = program
        self._host = host
        self._uuids = tuple(uuids)
        self._period_ms = round(period_s * 1000)
        self._silence_s = max(SILENCE_S, 3 * period_s)
        self._lock = threading.Lock()
        self._readings: dict[str, Reading] = {}
        self._child: subprocess.Popen[str] | None = None
        self._last_line_at = 0.0
        self._why_killed: str | None = None
        self._lost = False
        self._closing = threading.Event()
        self.events: deque[Event] = deque()
        """Events since the caller last took them: ``dcgm-lost``, ``dcgm-back``."""
        self.reason: str | None = None
        """Why there are no values; ``None`` while there are some, and before the first."""
        self.refused: str | None = None
        """DCGM's error about the fields that are left out; ``None`` if all are read."""
        self.settled = threading.Event()
        """Set once every GPU has two lines (or one GPU has several), or none will come."""
        self._thread = threading.Thread(target=self._run, name="gpuwatch-dcgm", daemon=True)
        self._thread.start()

    def readings(self) -> dict[str, Reading]:
        """The newest line of each GPU by UUID. Also ends a ``dcgmi`` that has fallen silent."""
        with self._lock:
            child = self._child
            if child is not None and time.monotonic() - self._last_line_at > self._silence_s:
                self._why_killed = f"dcgmi has printed nothing for over {self._silence_s:g} s"
                child.kill()
            return dict(self._readings)

    def close(self) -> None:
        """End the thread and the child within half a second. Idempotent."""
        with self._lock:
            self._closing.set()
            if self._child is not None:
                self._child.kill()
        self._thread.join(0.5)

    def _run(self) -> None:
        fields = tuple(FIELDS)
        while not self._closing.is_set():
            reason = self._follow(fields)
            if self._closing.is_set():
                return
            if fields != BASIC and not self.settled.is_set() and "watches" in reason:
                fields, self.refused = BASIC, reason
                continue
            with self._lock:
                self._readings.clear()
            if self.settled.is_set() and not self._lost:
                self._lost = True
                self.events.append(
                    Event("dcgm-lost", f"DCGM gives no values: {reason}; {hint(reason)}")
                )
            self.reason = reason
            self.settled.set()
            self._closing.wait(RETRY_S)

    def _follow(self, fields: tuple[int, ...]) -> str:
        """Find the GPUs and read their lines until ``dcgmi`` ends; returns why it ended."""
        discovery = list(islice(self._lines("discovery", "-l"), _DISCOVERY_LINES))
        ids = gpu_ids("".join(discovery))
        if not ids:
            return trouble(discovery) or self._why_killed or "dcgmi discovery names no GPU"
        names = {number: uuid for uuid, number in ids.items() if uuid in self._uuids}
        if not names:
            return "DCGM's host engine knows none of the GPUs that are watched"
        selection = ["-e", ",".join(map(str, fields)), "-i", ",".join(map(str, sorted(names)))]
        counts = dict.fromkeys(names, 0)
        other_lines: deque[str] = deque(maxlen=_KEPT_LINES)
        for line in self._lines("dmon", *selection, "-d", str(self._period_ms)):
            parsed = row(line, fields)
            if parsed is None or parsed[0] not in names:
                other_lines.append(line)
                continue
            number, values = parsed
            counts[number] += 1
            with self._lock:
                self._readings[names[number]] = Reading(self._last_line_at, values)
            if self._lost:
                self._lost = False
                self.events.append(Event("dcgm-back", "DCGM gives values again"))
            self.reason = None
            if min(counts.values()) > 1 or counts[number] > _LINES_ENOUGH:
                self.settled.set()
        return self._why_killed or trouble(other_lines) or "dcgmi dmon ended"

    def _lines(self, *arguments: str) -> Iterator[str]:
        """The output of ``dcgmi``, line by line, to its end."""
        program = [self._program, arguments[0], "--host", self._host, *arguments[1:]]
        with self._lock:
            if self._closing.is_set():
                return
            child = subprocess.Popen(
                ends_with_this(program),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,  # so that Ctrl-C reaches only the workload
            )
            self._child, self._last_line_at, self._why_killed = child, time.monotonic(), None
        assert child.stdout is not None
        try:
            for line in child.stdout:
                self._last_line_at = time.monotonic()
                yield line
        finally:
            with self._lock:
                self._child = None
            child.kill()
            child.wait()
            child.stdout.close()
