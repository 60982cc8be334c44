"""What a process and all its descendants cost: processor time and memory, from the kernel."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import psutil

_TICKS = os.sysconf("SC_CLK_TCK")


def members(root: int) -> list[int]:
    """``root`` and its descendants that live now."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return [root, *(child.pid for child in psutil.Process(root).children(recursive=True))]
    return [root]


def cpu_seconds(roots: list[int]) -> float:
    """Processor time of the trees so far, and of every child that ended and was waited for."""
    return sum(_cpu_seconds(pid) for root in roots for pid in members(root))


def _cpu_seconds(pid: int) -> float:
    try:
        # The process's own clock counts nanoseconds; /proc/PID/stat only hundredths of a second.
        own = time.clock_gettime((~pid << 3) | 2)
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return own + (int(fields[13]) + int(fields[14])) / _TICKS


def memory_bytes(roots: list[int]) -> int:
    """Proportional set size of the trees: a page that several share counts in parts."""
    total = 0
    for pid in (pid for root in roots for pid in members(root)):
        with contextlib.suppress(psutil.Error):
            total += psutil.Process(pid).memory_full_info().pss
    return total
