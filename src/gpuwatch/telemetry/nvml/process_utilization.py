"""Shares of a GPU's time per process, as sampled by NVML."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import checked
from gpuwatch.telemetry.nvml.errors import NOT_FOUND, PERMANENT, describe

FUNCTION = "nvmlDeviceGetProcessUtilization"
SOURCE = f"NVML {FUNCTION} smUtil, host PIDs"

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
