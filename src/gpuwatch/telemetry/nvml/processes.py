"""The processes on one GPU as listed by NVML, and the shares of its time that each used."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Any

from gpuwatch.core.metrics import checked
from gpuwatch.telemetry.nvml.errors import LOST, NOT_FOUND, PERMANENT, describe
from gpuwatch.telemetry.nvml.fields import GpuProcess
from gpuwatch.telemetry.nvml.probe import FRESH_S, GpuLost
from gpuwatch.telemetry.nvml.process_utilization import FUNCTION, ProcessShares, ProcessUtilization

DOUBTS = 3
"""Number of empty lists of a busy GPU after which they are not believed: one may be older than what
began on the GPU since, or younger than what ended."""
_NOT_ALL = "its list of processes stays empty while the GPU is busy (seen with WSL)"
SHARES_S, SHARES_RARELY_S = 2.0, 4.0
"""Seconds between two reads of the shares of GPU time. A call takes milliseconds of processor time;
what it gives is the mean since the last one."""
DRAWING_S = 5.0
"""Interval between two listings of graphics processes, in seconds; compute: every round."""


class ProcessLists:
    """Process lists, read by the GPU's slow thread and used by others.

    ``watched(name, function, *arguments)`` makes a call; ``busy()`` is whether the GPU works just
    now; the shares of its time are read every ``shares_s`` seconds. Reading raises ``GpuLost``.
    """

    def __init__(
        self, nvml: Any, watched: Callable[..., Any], busy: Callable[[], bool], shares_s: float
    ) -> None:
        self.untold: str | None = None
        """Why NVML does not tell the processes, as of the last read; ``None``: it does."""
        self.doubts = 0
        """How many lists were empty while the GPU was busy, since one that was not."""
        self._nvml = nvml
        self._watched = watched
        self._busy = busy
        self._shares_s = shares_s
        self._lock = threading.Lock()
        self._generation = 0
        self._refused = False
        self._listed: tuple[float, tuple[GpuProcess, ...]] | None = None
        self._drawing: list[GpuProcess] = []
        self._drawing_due = -math.inf
        self._utilization = ProcessUtilization()
        self._utilization_at = self._shares_due = -math.inf

    @property
    def listed(self) -> tuple[GpuProcess, ...] | None:
        """The processes; ``None`` if unknown, outdated or not believed."""
        listing = self._listed
        if listing is None or self.doubts >= DOUBTS or time.monotonic() - listing[0] > FRESH_S:
            return None
        return listing[1]

    @property
    def held(self) -> int:
        """Bytes that the processes hold, as far as they are known; each counts once."""
        used: dict[int, int] = {}
        for process in self.listed or ():
            used[process.pid] = max(used.get(process.pid, 0), process.used or 0)
        return sum(used.values())

    @property
    def shares(self) -> ProcessShares:
        """The shares of the GPU's time that each process used in the last seconds."""
        latest, fresh_s = self._utilization.shares, FRESH_S + self._shares_s - 1.0
        if latest.reason is None and time.monotonic() - self._utilization_at > fresh_s:
            return ProcessShares({}, f"{FUNCTION} has not answered for over {fresh_s:g} s")
        return latest

    def forget(self) -> None:
        """Discard the lists and any read in progress: the GPU is gone or was reopened."""
        with self._lock:
            self._generation += 1
            self._refused = False
            self._listed = None
            self.doubts = 0
            self._drawing, self._drawing_due = [], -math.inf

    def read(self, handle: Any) -> None:
        """List compute and graphics processes; graphics only where the driver supports it."""
        if self._refused:
            return
        generation = self._generation
        try:
            computing = self._list("Compute", handle)
        except self._nvml.NVMLError as error:
            if error.value in LOST:
                raise GpuLost(error.value) from error
            if error.value != NOT_FOUND:
                self._refused = error.value in PERMANENT
                self.untold = describe(error.value).reason
                return
            computing = []
        now = time.monotonic()
        drawing, due = self._drawing, self._drawing_due
        if due <= now:
            try:
                drawing, due = self._list("Graphics", handle), now + DRAWING_S - 0.5
            except self._nvml.NVMLError as error:
                if error.value in LOST:
                    raise GpuLost(error.value) from error
                drawing, due = [], now + DRAWING_S - 0.5
        with self._lock:
            if generation == self._generation:
                self._drawing, self._drawing_due = drawing, due
                self._listed = (time.monotonic(), (*computing, *drawing))
                if computing or drawing:
                    self.doubts = 0
                elif self._busy():
                    self.doubts += 1
                self.untold = _NOT_ALL if self.doubts >= DOUBTS else None

    def _list(self, kind: str, handle: Any) -> list[GpuProcess]:
        name = f"nvmlDeviceGet{kind}RunningProcesses"
        listed = self._watched(name, getattr(self._nvml, name), handle)
        return [GpuProcess(p.pid, _used(p.usedGpuMemory), kind.lower()) for p in listed]

    def read_shares(self, handle: Any) -> None:
        """Read the shares of GPU time per process since the last call, if there is a process."""
        now = time.monotonic()
        if self.listed == () and not self.doubts:
            self._utilization.rest()
            self._utilization_at = now
            return
        if now < self._shares_due:
            return
        self._shares_due = now + self._shares_s - 0.5
        try:
            self._watched(FUNCTION, self._utilization.read, self._nvml, handle)
        except self._nvml.NVMLError as error:
            if error.value in LOST:
                raise GpuLost(error.value) from error
        else:
            self._utilization_at = time.monotonic()


def _used(bytes_: int | None) -> int | None:
    value, _ = (None, "") if bytes_ is None else checked("process.gpu.memory.usage", bytes_)
    return None if value is None else int(value)
