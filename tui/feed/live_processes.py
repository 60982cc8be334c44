"""Finds the processes of a session that goes on here in ``/proc``, with their command lines.

Sessions hold no command lines, which may have secrets in them. What is read here is shown, and
written nowhere.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpuwatch.core.live_process import command_line, command_text
from gpuwatch.core.models import JSON, mapping
from gpuwatch.core.processes import start_time
from gpuwatch.core.units import NS
from gpuwatch.session.reading.status import process_id
from gpuwatch.tui.feed.processes import ProcessNow

_INACCURACY_NS = NS
"""How far a recorded start may be off: it is noted when the recorder comes to it. No PID is given
to another process that soon."""

_Key = tuple[int, int | None, str | None]
"""PID, recorded start and name. A recorder tells each process's start again once a minute, a little
different, and its name when it changes: then its command line is read anew."""


class LiveProcesses:
    """Remembers what was found."""

    def __init__(self) -> None:
        self._known: dict[_Key, tuple[int, str | None]] = {}

    def find(
        self, processes: Sequence[ProcessNow], meta: Mapping[str, JSON]
    ) -> tuple[ProcessNow, ...]:
        """``processes``, with ``start`` and ``command`` of those that run here.

        ``meta``: of the session. Of a recorder that has ended, or runs on another host or in
        another PID namespace, none does.
        """
        recorder = process_id(meta.get("recorder"))
        base = mapping(meta.get("clock")).get("monotonic_ns")
        before, self._known = self._known, {}
        if recorder is None or not isinstance(base, int) or not recorder.alive():
            return tuple(processes)
        found = []
        for process in processes:
            key = process.pid, process.started, process.name
            known = before.get(key) or _looked_up(process, base)
            if known is not None:
                self._known[key] = known
                process = replace(process, start=known[0], command=known[1])
            found.append(process)
        return tuple(found)


def _looked_up(process: ProcessNow, base: int) -> tuple[int, str | None] | None:
    """Start and command line; ``None``: it ended, or ``/proc`` does not show it.

    ``base``: the session's start on the monotonic clock in nanoseconds, which stands still while
    the machine sleeps; starts are on one that does not.
    """
    start = start_time(process.pid)
    if start is None or process.started is None:
        return None
    slept = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns()
    recorded = process.started + base + slept
    if abs(start * NS // os.sysconf("SC_CLK_TCK") - recorded) > _INACCURACY_NS:
        return None
    words = command_line(process.pid, start)
    return start, (command_text(words) if words else None)
