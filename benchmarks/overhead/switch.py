"""Letting a process run and stand still in turns.

It is stopped by SIGSTOP and goes on by SIGCONT. That needs nothing of the program that is measured,
stops all of its threads wherever they are, and leaves the workload alone: a stopped process is in
no run queue. What it missed it does as soon as it goes on, which one that nobody stops need not.
So a guard is left out behind every signal, of either kind. That a window in which it runs holds as
much work as usual is shown by its processor time there.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence

from benchmarks.overhead.windows import Planned, Window
from benchmarks.overhead.workload import processor_clock

GUARD_SECONDS = 0.1
"""Behind a stop the processor and its caches become the workload's again; behind its end is done
what was missed."""


def cpu_seconds(pid: int) -> float:
    """Processor time of all threads of a process so far."""
    return time.clock_gettime(processor_clock(pid))


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
            if each.on != on:
                os.kill(pid, signal.SIGCONT if each.on else signal.SIGSTOP)
                on = each.on
            time.sleep(GUARD_SECONDS)
            start = time.monotonic_ns()
            before = cpu_seconds(pid)
            time.sleep(max(0.0, until - time.monotonic()))
            windows.append(Window(on, start, time.monotonic_ns(), cpu_seconds(pid) - before))
    finally:
        os.kill(pid, signal.SIGCONT)
    return windows
