"""A process's own files under ``/proc``. The start time shows whether a PID is still the same
process's.

Field numbers are those of proc_pid_stat(5) and proc_pid_io(5).
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from gpuwatch.core.lazy_dataclass import dataclass

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_MOST_BYTES = 1 << 16


@dataclass(frozen=True)
class Stat:
    """Fields of ``/proc/PID/stat``; times in clock ticks."""

    name: str
    state: str
    """``Z`` and ``X`` mean ended."""
    parent: int
    own: int
    """User and system time of the process and its threads."""
    waited: int
    """User and system time of the children it has waited for, and of those they waited for."""
    threads: int
    started: int
    """Clock ticks from boot to the start of the process."""
    resident: int
    """Pages."""
    session: int
    """The leader of the process's session."""


@dataclass(frozen=True)
class Io:
    """Bytes that went to or came from storage, waited-for children included."""

    read: int
    written: int


def parse_stat(text: bytes) -> Stat:
    """Parse one line of ``/proc/PID/stat``; a name may contain spaces and brackets."""
    opening, closing = text.index(b"("), text.rindex(b")")
    field = text[closing + 2 :].split()
    return Stat(
        name=text[opening + 1 : closing].decode("utf-8", "replace"),
        state=field[0].decode("ascii"),
        parent=int(field[1]),
        own=int(field[11]) + int(field[12]),
        waited=int(field[13]) + int(field[14]),
        threads=int(field[17]),
        started=int(field[19]),
        resident=int(field[21]),
        session=int(field[3]),
    )


def read_stat(pid: int) -> Stat | None:
    """``None`` for a process that has ended, or that ``/proc`` does not show."""
    try:
        return parse_stat(_read(f"/proc/{pid}/stat"))
    except (OSError, ValueError):
        return None


class ProcFiles:
    """The files of one process. All methods raise ``OSError`` if it is gone."""

    def __init__(self, proc: Path, pid: int) -> None:
        self._folder = f"{proc}/{pid}"
        self._main = str(pid)
        self._started: int | None = None

    def stat(self) -> Stat:
        """Raises ``OSError`` once the process has been reaped, also if its PID is another's by
        now."""
        stat = parse_stat(_read(f"{self._folder}/stat"))
        if self._started not in (None, stat.started):
            raise ProcessLookupError(f"process {self._main} is another by now")
        self._started = stat.started
        return stat

    def io(self) -> Io:
        """Raises ``PermissionError``, or another ``OSError`` if the kernel does not count I/O."""
        read = written = 0
        for line in _read(f"{self._folder}/io").split(b"\n"):
            if line.startswith(b"read_bytes:"):
                read = int(line[11:])
            elif line.startswith(b"write_bytes:"):
                written = int(line[12:])
        return Io(read, written)

    def proportional(self) -> int:
        """Resident bytes, a page that n processes share counting for 1/n: ``Pss`` of
        proc_pid_smaps_rollup(5). Takes milliseconds for a large process.

        Raises ``PermissionError`` for another user's process, or another ``OSError`` if the kernel
        lacks the file.
        """
        text = _read(f"{self._folder}/smaps_rollup")
        return int(text.partition(b"\nPss:")[2].split(None, 1)[0]) * 1024

    def core_waits(self) -> dict[str, int]:
        """Nanoseconds in which each thread was ready and had no core (the kernel's sched-stats)."""
        waits = {}
        for task in os.listdir(f"{self._folder}/task"):
            with suppress(OSError, IndexError):  # it has just ended
                waits[task] = int(_read(f"{self._folder}/task/{task}/schedstat").split()[1])
        return waits

    @staticmethod
    def tells_core_waits(proc: Path) -> bool:
        """Whether this kernel counts them; one that does not may have the file, full of zeros."""
        with suppress(OSError):
            return not _read(f"{proc}/self/schedstat").startswith(b"0 ")
        return False

    def children(self, threads: int) -> list[int]:
        """PIDs of the children of every thread. Raises ``OSError`` if the kernel lacks the file."""
        tasks = f"{self._folder}/task"
        pids = _read(f"{tasks}/{self._main}/children").split()
        if threads > 1:
            for task in os.listdir(tasks):
                if task != self._main:
                    with suppress(OSError):
                        pids += _read(f"{tasks}/{task}/children").split()
        return [int(pid) for pid in pids]


def _read(path: str) -> bytes:
    """Faster than by a file object: every file of every process is read with each sample."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, _MOST_BYTES)
    finally:
        os.close(descriptor)
