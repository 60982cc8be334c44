"""A process's own files under ``/proc``, safe against PID reuse.

Files stay open, which is fastest, while the limit on open files permits. Later processes' files
are opened for each read, and the start time shows whether the process is still the same.

Field numbers are those of proc_pid_stat(5) and proc_pid_io(5).
"""

from __future__ import annotations

import os
import resource
from pathlib import Path

from gpuwatch.core.lazy_dataclass import dataclass

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


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


_FOR_OTHERS = 64
"""Open files reserved for the rest of the recorder."""
_EACH = 3
"""Files per process."""


def _room() -> int:
    """Number of processes whose files may stay open: they take half of the limit on open files,
    after the recorder's own reserve."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 20 if limit == resource.RLIM_INFINITY else max(0, limit - _FOR_OTHERS) // 2 // _EACH


_ROOM = _room()
_kept: set[ProcFiles] = set()


class ProcFiles:
    """The files of one process. All methods and the constructor raise ``OSError`` if it is gone."""

    def __init__(self, proc: Path, pid: int) -> None:
        self._folder = proc / str(pid)
        self._task = self._folder / "task"
        self._stat: int | None = None
        self._io: int | None = None
        self._children: int | None = None
        self._main = str(pid)
        self._started = 0
        if len(_kept) < _ROOM:
            self._stat = os.open(self._folder / "stat", os.O_RDONLY | os.O_CLOEXEC)
            _kept.add(self)
        else:
            self._started = parse_stat((self._folder / "stat").read_bytes()).started

    def stat(self) -> Stat:
        """Raises ``OSError`` once the process has been reaped."""
        if self._stat is not None:
            return parse_stat(os.pread(self._stat, 1024, 0))
        stat = parse_stat((self._folder / "stat").read_bytes())
        if stat.started != self._started:
            raise ProcessLookupError(f"process {self._main} is another by now")
        return stat

    def io(self) -> Io:
        """Raises ``PermissionError``, or another ``OSError`` if the kernel does not count I/O."""
        if self._stat is None:
            text = (self._folder / "io").read_bytes()
        else:
            if self._io is None:
                self._io = os.open(self._folder / "io", os.O_RDONLY | os.O_CLOEXEC)
            text = os.pread(self._io, 512, 0)
        read = written = 0
        for line in text.split(b"\n"):
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
        text = (self._folder / "smaps_rollup").read_bytes()
        return int(text.partition(b"\nPss:")[2].split(None, 1)[0]) * 1024

    def children(self, threads: int) -> list[int]:
        """PIDs of the children of every thread. Raises ``OSError`` if the kernel lacks the file.

        Only the main thread's file is kept open: a process can have hundreds of threads.
        """
        path = self._task / self._main / "children"
        if self._stat is None:
            pids = path.read_bytes().split()
        else:
            if self._children is None:
                self._children = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            pids = os.pread(self._children, 65536, 0).split()
        if threads > 1:
            for task in os.listdir(self._task):
                if task != self._main:
                    try:
                        pids += (self._task / task / "children").read_bytes().split()
                    except OSError:
                        continue
        return [int(pid) for pid in pids]

    def close(self) -> None:
        for descriptor in (self._stat, self._io, self._children):
            if descriptor is not None:
                os.close(descriptor)
        self._io = self._children = None
        _kept.discard(self)
