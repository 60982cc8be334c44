"""The processes on one GPU as listed by NVML, and the shares of its time that each used."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import checked
from gpuwatch.telemetry.nvml.errors import NOT_FOUND, PERMANENT, describe
from gpuwatch.telemetry.nvml.fields import FRESH_S, GpuProcess

DOUBTS = 3
"""Number of empty lists of a busy GPU after which they are not believed: one may be older than what
began on the GPU since, or younger than what ended."""
_NOT_ALL = "its list of processes stays empty while kernels run (seen with WSL)"
SHARES_S, SHARES_RARELY_S = 2.0, 4.0
"""Seconds between two reads of the shares of GPU time. A call takes milliseconds of processor time;
what it gives is the mean since the last one."""
DRAWING_S = 5.0
"""Interval between two listings of graphics processes, in seconds; compute: every round."""


FUNCTION = "nvmlDeviceGetProcessUtilization"
SOURCE = f"NVML {FUNCTION} smUtil, one to two seconds late, host PIDs"

_SUCCESS = 0
_BEGUN = "not read yet"
_AHEAD_US = 3_600_000_000
"""A sample from later than this after now is none."""


@dataclass(frozen=True)
class TimeShare:
    """Shares of time, from 0 to 1, of one process on one GPU."""

    kernels: float | None
    """In which its kernels ran; ``None``: NVML's samples are invalid."""
    memory: float | None
    """In which it read or wrote device memory; ``None``: NVML's samples are invalid."""


@dataclass(frozen=True)
class ProcessShares:
    """The shares of a GPU's time that each process used."""

    by_pid: Mapping[int, TimeShare]
    """By host PID; a missing process was idle."""
    reason: str | None = None
    """Why the shares are unknown; ``None`` if they are known."""


class ProcessUtilization:
    """Reads one GPU's samples since the newest one seen.

    Asked for samples since 0, the driver returns means over an arbitrary past, so the first call
    asks for samples from now on.
    """

    def __init__(self) -> None:
        self._since_us = 0
        self._for_good: str | None = None
        self.shares = ProcessShares({}, _BEGUN)

    def rest(self) -> None:
        """No process is on the GPU: the next samples count from the next :meth:`read` on."""
        self._since_us = 0
        self.shares = ProcessShares({})

    def read(self, nvml: Any, handle: Any) -> None:
        """Take in the samples since the last call.

        Raises ``NVMLError`` for temporary failures and for those of the whole GPU.
        """
        if self._for_good is not None:
            return
        first = self._since_us == 0
        if first:
            self._since_us = time.time_ns() // 1000
            self.shares = ProcessShares({}, _BEGUN)
        try:
            samples = nvml.nvmlDeviceGetProcessUtilization(handle, self._since_us)
        except nvml.NVMLError as error:
            # The binding raises "success" if there are no samples.
            if error.value in (NOT_FOUND, _SUCCESS):
                samples = ()
            elif error.value in PERMANENT:
                self._for_good = f"{FUNCTION}: {describe(error.value).reason}"
                self.shares = ProcessShares({}, self._for_good)
                return
            else:
                self.shares = ProcessShares({}, f"{FUNCTION}: {describe(error.value).reason}")
                raise
        if first:
            return
        by_pid: dict[int, list[Any]] = defaultdict(list)
        newest, latest = self._since_us, time.time_ns() // 1000 + _AHEAD_US
        for sample in samples:
            if sample.pid and sample.timeStamp > self._since_us:
                by_pid[sample.pid].append(sample)
                if sample.timeStamp < latest:
                    newest = max(newest, sample.timeStamp)
        self._since_us = newest
        self.shares = ProcessShares(
            {
                pid: TimeShare(
                    _mean([sample.smUtil for sample in samples if sample.timeStamp < latest]),
                    _mean([sample.memUtil for sample in samples if sample.timeStamp < latest]),
                )
                for pid, samples in by_pid.items()
            }
        )


def _mean(percents: Sequence[int]) -> float | None:
    shares = [checked("process.gpu.utilization", percent / 100)[0] for percent in percents]
    valid = [share for share in shares if share is not None]
    return sum(valid) / len(valid) if valid else None


class ProcessLists:
    """Process lists, read by the GPU's thread and used by others.

    ``call(name, function, *arguments)`` makes a call; ``busy()`` is whether the GPU works just
    now; the shares of its time are read every ``shares_s`` seconds. Reading raises ``GpuLost``.
    """

    def __init__(
        self, nvml: Any, call: Callable[..., Any], busy: Callable[[], bool], shares_s: float
    ) -> None:
        self.untold: str | None = None
        """Why NVML does not tell the processes, as of the last read; ``None``: it does."""
        self.doubts = 0
        """How many lists were empty while the GPU was busy, since one that was not."""
        self._nvml = nvml
        self._call = call
        self._busy = busy
        self._shares_s = shares_s
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
        """Discard the lists: the GPU is gone or was reopened."""
        self._refused = False
        self._listed = None
        self.doubts = 0
        self._drawing, self._drawing_due = [], -math.inf

    def read(self, handle: Any) -> None:
        """List compute and graphics processes; graphics only where the driver supports it."""
        if self._refused:
            return
        computing: list[GpuProcess] = []
        try:
            computing = self._list("Compute", handle)
        except self._nvml.NVMLError as error:
            if error.value != NOT_FOUND:
                self._refused = error.value in PERMANENT
                self.untold = describe(error.value).reason
                return
        now = time.monotonic()
        if self._drawing_due <= now:
            self._drawing, self._drawing_due = [], now + DRAWING_S - 0.5
            with suppress(self._nvml.NVMLError):
                self._drawing = self._list("Graphics", handle)
        self._listed = (time.monotonic(), (*computing, *self._drawing))
        if computing or self._drawing:
            self.doubts = 0
        elif self._busy():
            self.doubts += 1
        self.untold = _NOT_ALL if self.doubts >= DOUBTS else None

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
        with suppress(self._nvml.NVMLError):
            self._call(FUNCTION, self._utilization.read, self._nvml, handle)
            self._utilization_at = time.monotonic()

    def _list(self, kind: str, handle: Any) -> list[GpuProcess]:
        name = f"nvmlDeviceGet{kind}RunningProcesses"
        listed = self._call(name, getattr(self._nvml, name), handle)
        return [GpuProcess(p.pid, _used(p.usedGpuMemory), kind.lower()) for p in listed]


def _used(bytes_: int | None) -> int | None:
    value, _ = (None, "") if bytes_ is None else checked("process.gpu.memory.usage", bytes_)
    return None if value is None else int(value)
