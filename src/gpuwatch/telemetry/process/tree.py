"""A workload's processes and their combined usage."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from gpuwatch.core.aggregate import grouped
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.processes import parents
from gpuwatch.telemetry.process.proc_files import PAGE_BYTES, TICKS_PER_S, Io, ProcFiles, Stat


def innermost(roots: Sequence[int], *, container: bool) -> tuple[int, ...]:
    """The process reached from ``roots`` by following single children, then those above it on the
    way, up to where the search starts.

    With ``container`` the search starts at the first process with other mounts than this one,
    preferably one with its own PID namespace: everything before it belongs to the engine. Empty
    while there is no such process.
    """
    children = grouped((parent, pid) for pid, parent in parents().items())
    start = _inside(roots, children) if container else next(iter(roots), None)
    if start is None:
        return ()
    line = [start]
    while len(below := children.get(line[0], [])) == 1:
        line.insert(0, below[0])
    return tuple(line)


def _inside(roots: Sequence[int], children: dict[int, list[int]]) -> int | None:
    tree = list(roots)
    for pid in tree:
        tree += sorted(children.get(pid, ()))
    elsewhere = [pid for pid in tree if _differs(pid, "mnt")]
    numbered = [pid for pid in elsewhere if _differs(pid, "pid")]
    return next(iter(numbered or elsewhere), None)


def _differs(pid: int, namespace: str) -> bool:
    with suppress(OSError):
        return os.readlink(f"/proc/{pid}/ns/{namespace}") != os.readlink(
            f"/proc/self/ns/{namespace}"
        )
    return False


SCAN_EVERY_S = 1.0
"""Minimum seconds between two scans of ``/proc`` if the kernel lists no children."""
SCAN_SHARE = 0.02
"""Maximum share of one core's time for the scans."""
SHARED_EVERY_S, SHARED_SHARE = 2.0, 0.005
"""The same for looks at what processes share of their memory."""
WAIT_EVERY_S, WAIT_SHARE = 0.5, 0.002
"""The same for reads of how long each thread waited for a core."""
MOST_THREADS = 500
"""Threads from which on that is not read: one read of all would delay the other figures."""
_FEW_SHARED = 0.02
"""Share of the memory that may be counted twice."""


@dataclass(frozen=True)
class TreeSample:
    """The tree at one moment. Every number is ``None`` once no process is left."""

    processes: int
    cpu_s: float | None
    """User and system seconds since the roots started, including ended descendants."""
    resident: int | None
    """Bytes of memory."""
    at_most: bool
    """Whether a page that several processes share counts in ``resident`` once for each."""
    io_read: int | None
    io_written: int | None
    io_reason: str | None
    """Why the bytes read and written are unknown."""
    core_wait_s: float | None
    """Seconds, at least, in which threads were ready and had no core; known at some samples."""
    core_wait_reason: str | None


_NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE)


@dataclass(frozen=True)
class ProcessRow:
    pid: int
    name: str
    cpu_s: float
    """User and system seconds of the process itself."""
    resident: int
    """Bytes."""
    started: int
    """Clock ticks from boot."""
    at: float
    """Time of the read, in monotonic seconds."""


def process_row(pid: int, stat: Stat, at: float) -> ProcessRow:
    """A process whose ``stat`` was read at ``at``, in monotonic seconds."""
    cpu_s, resident = stat.own / TICKS_PER_S, stat.resident * PAGE_BYTES
    return ProcessRow(pid, stat.name, cpu_s, resident, stat.started, at)


class _Member:
    def __init__(self, files: ProcFiles) -> None:
        self.files = files
        self.look()
        self.io = Io(0, 0)

    def look(self) -> None:
        """Read the numbers; other threads see numbers and time updated together."""
        self.read = time.monotonic(), self.files.stat()

    @property
    def stat(self) -> Stat:
        return self.read[1]


def _proportional(living: Sequence[_Member]) -> int | None:
    """Bytes of these processes, each page once; ``None``: the kernel does not tell it of all."""
    total = 0
    for member in living:
        try:
            total += member.files.proportional()
        except ProcessLookupError:
            continue  # it has just ended
        except (OSError, ValueError, IndexError):
            return None
    return total


class ProcessTree:
    """The processes ``roots`` and all their descendants, rediscovered as they come and go.

    The totals of CPU time and bytes never decrease: a descendant's usage when last seen stays in
    the total, whether or not its parent waits for it. One that starts and ends between two samples
    is counted if its parent waits for it.
    """

    def __init__(self, roots: Iterable[int] = (), proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._members: dict[int, _Member] = {}
        self._gone = 0
        self._gone_io = Io(0, 0)
        self._io_reason: str | None = None
        self._lists_children: bool | None = None
        self._last_pid = b""
        self._scan_due = 0.0
        self._shared_due = 0.0
        self._twice: int | None = None
        """Bytes that several processes share, as often as they count too often."""
        self._loadavg = os.open(proc / "loadavg", os.O_RDONLY | os.O_CLOEXEC)
        self.set_roots(roots)

    @property
    def pids(self) -> frozenset[int]:
        """The processes as of the last sample."""
        return frozenset(self._members)

    def set_roots(self, roots: Iterable[int]) -> None:
        """Watch other processes from now on; totals restart. Roots that are gone are left out."""
        self._members = {}
        self._gone, self._gone_io, self._io_reason = 0, Io(0, 0), None
        self._last_pid, self._scan_due, self._shared_due = b"", 0.0, 0.0
        self._core_waits: dict[str, int] = {}
        self._core_wait, self._wait_due = 0, 0.0
        told = ProcFiles.tells_core_waits(self._proc)
        self._wait_reason = None if told else "this kernel does not count waits for a core"
        self.add_roots(roots)

    def add_roots(self, roots: Iterable[int]) -> None:
        """Watch these processes too. Those that are gone or watched already are left out."""
        for pid in roots:
            if pid not in self._members:
                self._add(pid, None)

    def sample(self) -> TreeSample:
        """Read every process of the tree and look for new ones."""
        if self._members:
            self._refresh()
            self._find_new()
        members = self._members.values()
        living = [m for m in members if m.stat.state not in "ZX"]
        if not members:
            reasons = self._io_reason, None, self._wait_reason
            return TreeSample(0, None, None, False, None, None, *reasons)
        ticks = self._gone + sum(m.stat.own + m.stat.waited for m in members)
        read = self._gone_io.read + sum(m.io.read for m in members)
        written = self._gone_io.written + sum(m.io.written for m in members)
        return TreeSample(
            len(living),
            ticks / TICKS_PER_S,
            *self._memory(living),
            read if self._io_reason is None else None,
            written if self._io_reason is None else None,
            self._io_reason,
            self._core_wait_s(living),
            self._wait_reason,
        )

    def _core_wait_s(self, living: Sequence[_Member]) -> float | None:
        """At least: what living threads have waited, or what all did from look to look."""
        now = time.monotonic()
        if sum(member.stat.threads for member in living) > MOST_THREADS:
            self._wait_reason = f"over {MOST_THREADS} threads, too many to read each"
        if self._wait_reason is not None or now < self._wait_due:
            return None
        began, before = time.thread_time(), self._core_waits
        self._core_waits = {}
        for member in living:
            with suppress(OSError):
                self._core_waits |= member.files.core_waits()
        # A thread may have the number of one that ended.
        waits = self._core_waits.items()
        self._core_wait += sum(max(0, wait - before.get(thread, wait)) for thread, wait in waits)
        self._core_wait = max(self._core_wait, sum(self._core_waits.values()))
        used = time.thread_time() - began
        self._wait_due = now + max(WAIT_EVERY_S, used / WAIT_SHARE)
        return self._core_wait / 1e9

    def _memory(self, living: Sequence[_Member]) -> tuple[int | None, bool]:
        """Bytes of these processes, and whether that is only an upper bound.

        What is counted twice is looked for as rarely as the time that it takes asks for, and holds
        until then; where it can be but little, not at all.
        """
        sizes = [member.stat.resident * PAGE_BYTES for member in living]
        resident, largest = sum(sizes), max(sizes, default=0)
        if resident - largest <= _FEW_SHARED * resident:
            return resident or None, False  # 0: it has given its memory back, to end
        now = time.monotonic()
        if now >= self._shared_due:
            began = time.thread_time()
            once = _proportional(living)
            self._twice = None if once is None else resident - once
            used = time.thread_time() - began
            self._shared_due = now + max(SHARED_EVERY_S, used / SHARED_SHARE)
        if self._twice is None:
            return resident, True
        return max(largest, resident - self._twice), False

    def rows(self) -> list[ProcessRow]:
        """The living processes as of the last sample, by PID. Safe in another thread."""
        reads = [(pid, *member.read) for pid, member in sorted(self._members.items())]
        return [process_row(pid, stat, at) for pid, at, stat in reads if stat.state not in "ZX"]

    def close(self) -> None:
        """Idempotent."""
        self.set_roots(())
        if self._loadavg >= 0:
            os.close(self._loadavg)
            self._loadavg = -1

    def _add(self, pid: int, parent: int | None) -> bool:
        """Add a process, unless it is gone or its PID now belongs to another parent's child."""
        try:
            member = _Member(ProcFiles(self._proc, pid))
        except (OSError, ValueError):
            return False
        if parent is not None and member.stat.parent != parent:
            return False
        self._members[pid] = member
        self._read_io(member)
        return True

    def _read_io(self, member: _Member) -> None:
        if self._io_reason is not None or member.stat.state in "ZX":
            return
        try:
            member.io = member.files.io()
        except PermissionError:
            self._io_reason = "no permission to read /proc/PID/io of the workload's processes"
        except FileNotFoundError:
            if not (self._proc / "self" / "io").exists():
                self._io_reason = "this kernel keeps no account of I/O per process"
        except OSError:
            return

    def _refresh(self) -> None:
        before: dict[int, tuple[Stat, Io]] = {}
        ended: dict[int, _Member] = {}
        for pid, member in list(self._members.items()):
            before[pid] = (member.stat, member.io)
            try:
                member.look()
            except (OSError, ValueError) as error:
                if isinstance(error, OSError) and error.errno in _NO_DESCRIPTOR:
                    continue  # unreadable now, but perhaps not ended
                ended[pid] = self._members.pop(pid)
                continue
            self._read_io(member)
        if ended:
            self._keep(ended, before)

    def _keep(self, ended: dict[int, _Member], before: dict[int, tuple[Stat, Io]]) -> None:
        """Keep the usage of ended processes, less what a living ancestor's totals already include.

        The kernel adds a child's totals to its parent's when the parent waits for it, but not if
        the parent ignores it or has already ended.
        """
        owed: dict[int, list[int]] = {}
        for member in ended.values():
            heir = member.stat.parent
            while heir in ended:
                heir = ended[heir].stat.parent
            sums = owed.setdefault(heir if heir in self._members else 0, [0, 0, 0])
            sums[0] += member.stat.own + member.stat.waited
            sums[1] += member.io.read
            sums[2] += member.io.written
        for heir, (ticks, read, written) in owed.items():
            if heir:
                now, (stat, io) = self._members[heir], before[heir]
                ticks = max(0, ticks - (now.stat.waited - stat.waited))
                read = max(0, read - (now.io.read - io.read))
                written = max(0, written - (now.io.written - io.written))
            self._gone += ticks
            self._gone_io = Io(self._gone_io.read + read, self._gone_io.written + written)

    def _find_new(self) -> None:
        """Look for new descendants, unless no process was created since the last look."""
        last_pid = os.pread(self._loadavg, 128, 0).rsplit(None, 1)[-1]
        if last_pid == self._last_pid:
            return
        if self._lists_children is None:
            me = str(os.getpid())
            self._lists_children = (self._proc / me / "task" / me / "children").exists()
        if self._lists_children:
            self._walk(self._children)
        else:
            now = time.monotonic()
            if now < self._scan_due:
                return
            began = time.thread_time()
            children = grouped((parent, pid) for pid, parent in parents(self._proc).items())
            self._walk(lambda pid: children.get(pid, []))
            used = time.thread_time() - began
            self._scan_due = now + max(SCAN_EVERY_S, used / SCAN_SHARE)
        self._last_pid = last_pid

    def _children(self, pid: int) -> list[int]:
        member = self._members[pid]
        with suppress(OSError):
            return member.files.children(member.stat.threads)
        return []

    def _walk(self, children: Callable[[int], list[int]]) -> None:
        queue = list(self._members)
        for pid in queue:
            queue += [c for c in children(pid) if c not in self._members and self._add(c, pid)]
