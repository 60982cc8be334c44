"""How much of a GPU's time each process used, as NVML samples it."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.telemetry.nvml.errors import NOT_FOUND, PERMANENT, describe
from gpuwatch.telemetry.nvml.fields import call

FUNCTION = "nvmlDeviceGetProcessUtilization"
SOURCE = f"NVML {FUNCTION} smUtil, host PIDs"

_SUCCESS = 0
_BEGUN = "not read yet"


@dataclass(frozen=True)
class ProcessShares:
    """The share of time, from 0 to 1, in which kernels of each process ran."""

    by_pid: Mapping[int, float]
    """Host PIDs; a process that is not here was idle."""
    reason: str | None = None
    """Why nothing is known; ``None`` where it is."""


class ProcessUtilization:
    """Reads one GPU's samples, each time those since the newest that was seen.

    With 0 as that moment the driver answers with means over a past that nobody asked for, so the
    first call asks for what comes after now.
    """

    def __init__(self) -> None:
        self._since_us = 0
        self._for_good: str | None = None
        self.shares = ProcessShares({}, _BEGUN)

    def read(self, nvml: Any, handle: Any) -> None:
        """Take in the samples since the last call.

        Raises ``NVMLError`` for what may pass, and for what concerns the whole GPU.
        """
        if self._for_good is not None:
            return
        first = self._since_us == 0
        if first:
            self._since_us = time.time_ns() // 1000
        try:
            samples = call(nvml, FUNCTION, handle, self._since_us)
        except nvml.NVMLError as error:
            # The binding raises success where there are no samples.
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
        found: dict[int, list[float]] = defaultdict(list)
        newest = self._since_us
        for sample in samples:
            if sample.pid and sample.smUtil <= 100 and sample.timeStamp > self._since_us:
                found[sample.pid].append(sample.smUtil / 100)
                newest = max(newest, sample.timeStamp)
        self._since_us = newest
        self.shares = ProcessShares({pid: sum(each) / len(each) for pid, each in found.items()})
