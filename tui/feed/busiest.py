"""The processes of this machine now, the busiest first, where there is no GPU to be on."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from gpuwatch.core.live_process import command_line, command_text
from gpuwatch.core.units import NS
from gpuwatch.core.users import USERS, uid_of
from gpuwatch.tui.feed.processes import ProcessNow

_FIRST_SECONDS, _SECONDS = 0.5, 2.0
"""Time between the first two looks at all processes, and between later ones."""
_TICKS, _PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")

_Key = tuple[int, int]
"""PID, and start in clock ticks since boot."""


class Busiest:
    """Looks at all processes again and again; between two looks it is known what each used."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._looked = 0
        """Monotonic nanoseconds of the last look; 0: there was none."""
        self._used: dict[_Key, int] = {}
        """CPU time in clock ticks."""
        self._found: tuple[ProcessNow, ...] | None = None
        """``None``: what each uses is not known yet."""

    def find(self, t: int) -> tuple[ProcessNow, ...]:
        """The busiest first; empty until the second look. ``t``: session time in nanoseconds."""
        now = time.monotonic_ns()
        wait = _FIRST_SECONDS if self._found is None else _SECONDS
        if not self._looked or now - self._looked >= wait * NS:
            self._look(now, t)
        return self._found or ()

    def _look(self, now: int, t: int) -> None:
        told: dict[_Key, tuple[int, int, str]] = {}
        """CPU time in clock ticks, resident bytes and name."""
        for name in os.listdir(self._proc):
            if name.isdecimal():
                with suppress(OSError, ValueError, IndexError):
                    stat = (self._proc / name / "stat").read_bytes()
                    start, end = stat.index(b"(") + 1, stat.rindex(b")")
                    fields = stat[end + 2 :].split()
                    ticks = int(fields[11]) + int(fields[12])
                    comm = stat[start:end].decode(errors="replace").strip()
                    told[int(name), int(fields[19])] = ticks, int(fields[21]) * _PAGE, comm
        if self._looked:
            seconds, age = (now - self._looked) / NS, time.clock_gettime(time.CLOCK_BOOTTIME)
            known = {(each.pid, each.start): each for each in self._found or ()}
            shares = [
                ((ticks - before) / _TICKS / seconds, resident, comm, key)
                for key, (ticks, resident, comm) in told.items()
                if (before := self._used.get(key)) is not None
            ]
            found = []
            for cores, resident, comm, key in sorted(shares, reverse=True):
                process = known.get(key)
                # What slept is as it was: there may be thousands to read.
                if process is not None and not cores and process.name == comm:
                    process = replace(process, cores=cores, resident=resident or None, t=t)
                else:
                    process = described(
                        key, t, age, cores=cores, resident=resident, proc=self._proc
                    )
                found += [] if process is None else [process]
            self._found = tuple(found)
        self._looked, self._used = now, {key: ticks for key, (ticks, _, _) in told.items()}


def described(
    key: _Key,
    t: int,
    since_boot: float,
    *,
    cores: float | None,
    resident: int | None,
    proc: Path = Path("/proc"),
    reason: str | None = None,
) -> ProcessNow | None:
    """What ``/proc`` tells of a process; ``None``: it has ended.

    ``reason``: why one of the values is unknown.
    """
    pid, start = key
    try:
        comm = (proc / str(pid) / "comm").read_text(errors="replace").strip()
        uid = uid_of((proc / str(pid) / "status").read_bytes())
    except OSError:
        return None
    words = command_line(pid, start)
    age = since_boot - start / _TICKS
    return ProcessNow(
        pid=pid,
        name=comm,
        user=None if uid is None else USERS.name(uid),
        owned=None,
        place=None,
        gpus=(),
        cores=cores,
        resident=resident or None,  # a thread of the kernel has none
        started=t - round(age * NS),
        running=True,
        t=t,
        reason=reason,
        start=start,
        started_unix=time.time() - age,
        command=command_text(words) if words else None,
    )
