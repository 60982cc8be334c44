"""Identifies processes beyond their PIDs, which the kernel reuses."""

from __future__ import annotations

import os
import select
import socket
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path

from gpuwatch.core.lazy_dataclass import dataclass


@dataclass(frozen=True)
class ProcessId:
    """A unique process: host, boot, PID, and start in clock ticks since boot."""

    host: str
    boot_id: str
    pid: int
    start_time: int
    pid_namespace: int | None = None
    """The PID's namespace, see pid_namespaces(7); ``None``: not recorded."""
    machine: str = ""
    """See :func:`machine_id`; empty if missing or not recorded."""

    def alive(self) -> bool | None:
        """Whether it still runs; ``None`` if that cannot be known: on another host, or in a
        container with its own PID namespace."""
        if self.boot_id != boot_id():
            return False if is_this_machine(self.host, self.machine) else None
        if self.pid_namespace is None:
            here = self.host == socket.gethostname()
        else:
            here = self.pid_namespace == pid_namespace()
        return start_time(self.pid) == self.start_time if here else None

    @property
    def place(self) -> str:
        """Where it runs, as seen from this machine."""
        if self.host != socket.gethostname():
            return self.host
        if self.boot_id != boot_id():
            return f"another machine of the name {self.host}"
        return f"{self.host}, in another PID namespace (a container)"


def when_ended(process: ProcessId, call: Callable[[], None]) -> bool:
    """Start a thread that makes ``call`` when the process ends, without polling.

    Returns ``False``, and starts none, if no such process lives here or the kernel has no pidfd
    (Linux before 5.3, some sandboxes).
    """
    try:
        fd = os.pidfd_open(process.pid)  # readable when the process has ended
    except OSError:
        return False
    if not process.alive():
        os.close(fd)
        return False

    def wait() -> None:
        poller = select.poll()
        poller.register(fd, select.POLLIN)
        poller.poll()
        os.close(fd)
        call()

    threading.Thread(target=wait, name="gpuwatch-end", daemon=True).start()
    return True


def identify(pid: int) -> ProcessId | None:
    """The process that has this PID now, or ``None``."""
    started = start_time(pid)
    if started is None:
        return None
    return ProcessId(socket.gethostname(), boot_id(), pid, started, pid_namespace(), machine_id())


@cache
def boot_id() -> str:
    """The ID of the current boot; empty if the kernel has none."""
    return read_text(Path("/proc/sys/kernel/random/boot_id")) or ""


@cache
def machine_id() -> str:
    """Tells apart machines of the same name, see machine-id(5); empty if missing."""
    return read_text(Path("/etc/machine-id")) or ""


def read_text(path: Path) -> str | None:
    """A small file's text, stripped; ``None`` if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def is_this_machine(host: str, machine: str) -> bool:
    """Whether a recorded host and machine ID mean this machine; some machines have no ID."""
    return host == socket.gethostname() and machine in ("", machine_id())


@cache
def pid_namespace() -> int | None:
    """The inode of this process's PID namespace; ``None`` if the kernel has none."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return None


def start_time(pid: int) -> int | None:
    """Start in clock ticks since boot; ``None`` if the process is gone or a zombie."""
    fields = _stat(pid)
    return None if fields is None or fields[0] in (b"Z", b"X") else int(fields[19])


def parents(proc: Path = Path("/proc")) -> dict[int, int]:
    """The parent PID of every process, from a scan of ``/proc``."""
    stats = {name: _stat(name, proc) for name in os.listdir(proc) if name.isdecimal()}
    return {int(name): int(fields[1]) for name, fields in stats.items() if fields is not None}


def _stat(pid: int | str, proc: Path = Path("/proc")) -> list[bytes] | None:
    """The fields of ``/proc/PID/stat`` behind the name, which may hold anything: the state, the
    parent and so on; ``None`` if the process is gone."""
    try:
        with open(f"{proc}/{pid}/stat", "rb", buffering=0) as file:
            stat = file.read(4096)
    except OSError:
        return None
    return stat[stat.rindex(b")") + 2 :].split()
