"""The child ``dcgmi dmon``: started, read, started again when it ends, never left behind."""

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
"""Between two tries to reach a host engine that was lost, in seconds."""
SILENCE_S = 5.0
"""Without a line for this long (or three periods), ``dcgmi`` is ended and started again."""
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
    """Follows ``dcgmi dmon`` on a thread of its own; :meth:`close` ends it."""

    def __init__(self, program: str, host: str, uuids: Sequence[str], period_s: float) -> None:
        self._program = program
        self._host = host
        self._uuids = tuple(uuids)
        self._period_ms = round(period_s * 1000)
        self._silence_s = max(SILENCE_S, 3 * period_s)
        self._lock = threading.Lock()
        self._readings: dict[str, Reading] = {}
        self._child: subprocess.Popen[str] | None = None
        self._heard = 0.0
        self._why_killed: str | None = None
        self._lost = False
        self._closing = threading.Event()
        self.events: deque[Event] = deque()
        """What happened since somebody took it: ``dcgm-lost``, ``dcgm-back``."""
        self.reason: str | None = None
        """Why there are no values; ``None`` while there are, and before the first."""
        self.refused: str | None = None
        """What DCGM said to the fields that are left out; ``None`` where all are read."""
        self.settled = threading.Event()
        """Set once every GPU has given two lines (or one a few), or it is known that none will."""
        self._thread = threading.Thread(target=self._run, name="gpuwatch-dcgm", daemon=True)
        self._thread.start()

    def readings(self) -> dict[str, Reading]:
        """The newest line of each GPU by UUID; ends a ``dcgmi`` that has fallen silent."""
        with self._lock:
            child = self._child
            if child is not None and time.monotonic() - self._heard > self._silence_s:
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
            said = self._follow(fields)
            if self._closing.is_set():
                return
            if fields != BASIC and not self.settled.is_set() and "watches" in said:
                fields, self.refused = BASIC, said
                continue
            with self._lock:
                self._readings.clear()
            if self.settled.is_set() and not self._lost:
                self._lost = True
                self.events.append(
                    Event("dcgm-lost", f"DCGM gives no values: {said}; {hint(said)}")
                )
            self.reason = said
            self.settled.set()
            self._closing.wait(RETRY_S)

    def _follow(self, fields: tuple[int, ...]) -> str:
        """Find the GPUs, read their lines until ``dcgmi`` ends; returns why it ended."""
        told = list(islice(self._lines("discovery", "-l"), _DISCOVERY_LINES))
        known = gpu_ids("".join(told))
        if not known:
            return trouble(told) or self._why_killed or "dcgmi discovery names no GPU"
        names = {number: uuid for uuid, number in known.items() if uuid in self._uuids}
        if not names:
            return "DCGM's host engine knows none of the GPUs that are watched"
        wanted = ["-e", ",".join(map(str, fields)), "-i", ",".join(map(str, sorted(names)))]
        counts = dict.fromkeys(names, 0)
        said: deque[str] = deque(maxlen=_KEPT_LINES)
        for line in self._lines("dmon", *wanted, "-d", str(self._period_ms)):
            taken = row(line, fields)
            if taken is None or taken[0] not in names:
                said.append(line)
                continue
            number, values = taken
            counts[number] += 1
            with self._lock:
                self._readings[names[number]] = Reading(self._heard, values)
            if self._lost:
                self._lost = False
                self.events.append(Event("dcgm-back", "DCGM gives values again"))
            self.reason = None
            if min(counts.values()) > 1 or counts[number] > _LINES_ENOUGH:
                self.settled.set()
        return self._why_killed or trouble(said) or "dcgmi dmon ended"

    def _lines(self, *arguments: str) -> Iterator[str]:
        """What ``dcgmi`` prints, to its end."""
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
                start_new_session=True,  # a Ctrl-C is meant for the workload
            )
            self._child, self._heard, self._why_killed = child, time.monotonic(), None
        assert child.stdout is not None
        try:
            for line in child.stdout:
                self._heard = time.monotonic()
                yield line
        finally:
            with self._lock:
                self._child = None
            child.kill()
            child.wait()
            child.stdout.close()
