"""Letting a process run and stand still in turns.

It is stopped by SIGSTOP and goes on by SIGCONT. That needs nothing of the program that is measured,
stops all of its threads wherever they are, and leaves the workload alone: a stopped process is in
no run queue. What it should have done meanwhile it does as soon as it goes on. That is part of its
cost, so a window in which it runs begins with the signal; only after it was stopped a guard is left
out. The same with a stand-in that does nothing shows that this favours no side.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence

from benchmarks.overhead.windows import Planned, Window

GUARD_SECONDS = 0.1
"""Behind a stop, in which processor and caches become the workload's again."""


def cpu_seconds(pid: int) -> float:
    """Processor time of all threads of a process so far."""
    return time.clock_gettime((~pid << 3) | 2)  # CPUCLOCK_SCHED of a process


def uninterrupted(pid: int, seconds: float) -> float:
    """The share of one core that a process uses which nobody stops."""
    start, before = time.monotonic(), cpu_seconds(pid)
    time.sleep(seconds)
    return (cpu_seconds(pid) - before) / (time.monotonic() - start)


def switched(pid: int, planned: Sequence[Planned]) -> list[Window]:
    """Go through the windows; the process runs afterwards, whatever happens."""
    windows = []
    on = True
    try:
        for each in planned:
            until = time.monotonic() + each.seconds
            start = time.monotonic_ns()
            if each.on != on:
                os.kill(pid, signal.SIGCONT if each.on else signal.SIGSTOP)
                on = each.on
            if not on:
                time.sleep(GUARD_SECONDS)
                start = time.monotonic_ns()
            before = cpu_seconds(pid)
            time.sleep(max(0.0, until - time.monotonic()))
            windows.append(Window(on, start, time.monotonic_ns(), cpu_seconds(pid) - before))
    finally:
        os.kill(pid, signal.SIGCONT)
    return windows
