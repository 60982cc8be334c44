"""The processes that use most of the CPU of this machine now, where there is no GPU to be on."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from gpuwatch.core.live_process import command_line, command_text
from gpuwatch.core.units import NS
from gpuwatch.core.users import USERS, uid_of
from gpuwatch.tui.feed.processes import ProcessNow

_FIRST_SECONDS, _SECONDS = 0.5, 2.0
"""Time between the first two looks at all processes, and between later ones."""
MOST = 30
"""Processes that are shown; of those that use no CPU the largest."""
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
        self._shares: list[tuple[float, int, _Key]] | None = None
        """Cores, resident bytes and key of those that are shown; ``None``: not known yet."""

    def find(self, t: int) -> tuple[ProcessNow, ...]:
        """The busiest first; empty until the second look. ``t``: session time in nanoseconds."""
        now = time.monotonic_ns()
        wait = _FIRST_SECONDS if self._shares is None else _SECONDS
        if not self._looked or now - self._looked >= wait * NS:
            self._look(now)
        age = time.clock_gettime(time.CLOCK_BOOTTIME)
        found = (
            described(key, t, age, cores=cores, resident=resident, proc=self._proc)
            for cores, resident, key in self._shares or ()
        )
        return tuple(process for process in found if process is not None)

    def _look(self, now: int) -> None:
        used: dict[_Key, int] = {}
        resident: dict[_Key, int] = {}
        for name in os.listdir(self._proc):
            if name.isdecimal():
                with suppress(OSError, ValueError, IndexError):
                    stat = (self._proc / name / "stat").read_bytes()
                    fields = stat[stat.rindex(b")") + 2 :].split()
                    key = int(name), int(fields[19])
                    used[key] = int(fields[11]) + int(fields[12])
                    resident[key] = int(fields[21]) * _PAGE
        if self._looked:
            seconds = (now - self._looked) / NS
            shares = [
                ((ticks - before) / _TICKS / seconds, resident[key], key)
                for key, ticks in used.items()
                if (before := self._used.get(key)) is not None
            ]
            self._shares = sorted(shares, reverse=True)[:MOST]
        self._looked, self._used = now, used


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
