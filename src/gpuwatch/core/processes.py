"""Telling a process apart from another that got its number later."""

from __future__ import annotations

import os
import select
import socket
import threading
import weakref
from collections.abc import Callable
from functools import cache
from pathlib import Path

from gpuwatch.core.lazy_dataclass import dataclass


@dataclass(frozen=True)
class ProcessId:
    """A process for all time: host, boot, number, start in clock ticks since boot."""

    host: str
    boot_id: str
    pid: int
    start_time: int
    pid_namespace: int | None = None
    """In which the number counts, see pid_namespaces(7); ``None``: not noted."""
    machine: str = ""
    """See :func:`machine_id`; empty: not noted, or there is none."""

    def alive(self) -> bool | None:
        """Whether it still runs; ``None`` where that cannot be known: on another host, or in a
        container with process numbers of its own."""
        if self.boot_id != boot_id():
            return False if is_this_machine(self.host, self.machine) else None
        if self.pid_namespace is None:
            here = self.host == socket.gethostname()
        else:
            here = self.pid_namespace == pid_namespace()
        return start_time(self.pid) == self.start_time if here else None

    @property
    def place(self) -> str:
        """Where it runs, as a person on this machine would say it."""
        if self.host != socket.gethostname():
            return self.host
        if self.boot_id != boot_id():
            return f"another machine of the name {self.host}"
        return f"{self.host}, in another PID namespace (a container)"


def when_ended(process: ProcessId, call: Callable[[], None]) -> bool:
    """Have a thread make ``call`` once the process has ended, without a look in between.

    ``False``: nobody will, for it is none of this machine's living ones, or the kernel cannot tell
    (Linux before 5.3, some sandboxes).
    """
    fd = _descriptor(process)
    if fd is None:
        return False

    def wait() -> None:
        poller = select.poll()
        poller.register(fd, select.POLLIN)
        poller.poll()
        os.close(fd)
        call()

    threading.Thread(target=wait, name="gpuwatch-end", daemon=True).start()
    return True


class LivenessCheck:
    """Whether one process lives, for who asks often.

    The kernel is asked about a descriptor of the process, where that could be had: one call, and no
    file of ``/proc`` to open, read and parse.
    """

    def __init__(self, process: ProcessId) -> None:
        self._process = process
        self._poller: select.poll | None = None
        fd = _descriptor(process)
        if fd is not None:
            self._poller = select.poll()
            self._poller.register(fd, select.POLLIN)
            weakref.finalize(self, os.close, fd)

    def alive(self) -> bool | None:
        """As :meth:`ProcessId.alive`."""
        if self._poller is not None:
            return not self._poller.poll(0)
        return self._process.alive()


def _descriptor(process: ProcessId) -> int | None:
    """A descriptor that can be read from once the process has ended; ``None`` where it is none of
    this machine's living ones, or the kernel has no such thing."""
    try:
        fd = os.pidfd_open(process.pid)
    except OSError:
        return None
    if process.alive():
        return fd
    os.close(fd)
    return None


def identify(pid: int) -> ProcessId | None:
    """The process that has this number now; ``None`` when there is none."""
    started = start_time(pid)
    if started is None:
        return None
    return ProcessId(socket.gethostname(), boot_id(), pid, started, pid_namespace(), machine_id())


@cache
def boot_id() -> str:
    """This boot of this machine; empty where the kernel does not tell."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


@cache
def machine_id() -> str:
    """What tells this machine from another of its name, see machine-id(5); empty where there is
    none."""
    try:
        return Path("/etc/machine-id").read_text().strip()
    except OSError:
        return ""


def is_this_machine(host: str, machine: str) -> bool:
    """Whether what was noted of a machine is of this one; of an older file, by its name alone."""
    return host == socket.gethostname() and machine in ("", machine_id())


@cache
def pid_namespace() -> int | None:
    """The inode of this process's PID namespace; ``None`` where the kernel has none."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return None


def start_time(pid: int) -> int | None:
    """Start in clock ticks since boot, of a process that is neither gone nor a zombie."""
    try:
        file = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except OSError:
        return None
    try:
        stat = os.read(file, 4096)
    except OSError:
        return None
    finally:
        os.close(file)
    fields = stat[stat.rindex(b")") + 2 :].split()
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def parents(proc: Path = Path("/proc")) -> dict[int, int]:
    """Every process's parent, from a scan of all of ``/proc``."""
    found: dict[int, int] = {}
    for name in os.listdir(proc):
        if not name.isdecimal():
            continue
        try:
            with open(f"{proc}/{name}/stat", "rb", buffering=0) as file:
                text = file.read(512)
        except OSError:
            continue
        found[int(name)] = int(text[text.rindex(b")") + 4 :].split(None, 1)[0])
    return found
