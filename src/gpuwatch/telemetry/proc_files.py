"""A process's own files under ``/proc``, kept open: a reused PID cannot answer for the old one.

Field numbers are those of proc_pid_stat(5) and proc_pid_io(5).
"""

from __future__ import annotations

import os
from pathlib import Path

from gpuwatch.deferred import dataclass

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Stat:
    """What ``/proc/PID/stat`` says; times in clock ticks."""

    name: str
    state: str
    """``Z`` and ``X`` have ended."""
    parent: int
    own: int
    """User and system time of the process and its threads."""
    waited: int
    """User and system time of the children it has waited for, and of those that they waited for."""
    threads: int
    started: int
    """Clock ticks from boot to the start of the process."""
    resident: int
    """Pages."""
    session: int
    """The process that began the session it is in."""


@dataclass(frozen=True)
class Io:
    """Bytes that went to or came from storage, waited-for children included."""

    read: int
    written: int


def parse_stat(text: bytes) -> Stat:
    """Parse one line of ``/proc/PID/stat``; a name may hold spaces and brackets."""
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


class ProcFiles:
    """The open files of one process. Raises ``OSError`` from the start on if it is gone."""

    def __init__(self, proc: Path, pid: int) -> None:
        self._folder = proc / str(pid)
        self._task = self._folder / "task"
        self._stat = os.open(self._folder / "stat", os.O_RDONLY | os.O_CLOEXEC)
        self._io: int | None = None
        self._children: int | None = None
        self._main = str(pid)

    def stat(self) -> Stat:
        """Raises ``OSError`` once the process has been reaped."""
        return parse_stat(os.pread(self._stat, 1024, 0))

    def io(self) -> Io:
        """Raises ``PermissionError``, or another ``OSError`` where the kernel does not count."""
        if self._io is None:
            self._io = os.open(self._folder / "io", os.O_RDONLY | os.O_CLOEXEC)
        read = written = 0
        for line in os.pread(self._io, 512, 0).split(b"\n"):
            if line.startswith(b"read_bytes:"):
                read = int(line[11:])
            elif line.startswith(b"write_bytes:"):
                written = int(line[12:])
        return Io(read, written)

    def children(self, threads: int) -> list[int]:
        """PIDs of the children of every thread. Raises ``OSError`` where the kernel lacks the file.

        Only the main thread's file is kept open: a process may have hundreds of threads.
        """
        if self._children is None:
            path = self._task / self._main / "children"
            self._children = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        found = os.pread(self._children, 65536, 0).split()
        if threads > 1:
            for task in os.listdir(self._task):
                if task != self._main:
                    try:
                        found += (self._task / task / "children").read_bytes().split()
                    except OSError:
                        continue
        return [int(pid) for pid in found]

    def close(self) -> None:
        for descriptor in (self._stat, self._io, self._children):
            if descriptor is not None:
                os.close(descriptor)
        self._io = self._children = None
