"""Processor time taken by other programs and the hypervisor during a measurement."""

from __future__ import annotations

import os
import time
from pathlib import Path

BUSY = 0.05
"""Share of the machine taken by others from which a measurement counts as disturbed."""


class OtherLoad:
    """Counts from its creation on."""

    def __init__(self) -> None:
        self._before = _processor_times()
        self._own = time.process_time()

    def share(self) -> float | None:
        """Others' share of all processor time since creation; ``None`` without /proc/stat."""
        after = _processor_times()
        if self._before is None or after is None or after[1] <= self._before[1]:
            return None
        own_time = time.process_time() - self._own
        others = (after[0] - self._before[0] - own_time) / (after[1] - self._before[1])
        return min(1.0, max(0.0, others))


def _processor_times() -> tuple[float, float] | None:
    """Non-idle (including stolen) and total seconds of all processors since boot."""
    try:
        words = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:]
        fields = [int(word) for word in words][:8]
    except (OSError, ValueError):
        return None
    if len(fields) < 5:
        return None
    tick = os.sysconf("SC_CLK_TCK")
    return (sum(fields) - fields[3] - fields[4]) / tick, sum(fields) / tick
