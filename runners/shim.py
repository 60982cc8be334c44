"""The process between a recorder and a local workload: standard library only, run as a script.

    PYTHON -I -S shim.py FOLDER GRACE_SECONDS tree|namespace|kept COMMAND...

It owns the workload's pipes, so that the workload survives a recorder that dies. In FOLDER it keeps

* ``spool/N``: the workload's output, as frames ``<stream u8, CLOCK_MONOTONIC u64, length u32>``
  plus data, in segments of 1 MiB. If 64 MiB are unread, the oldest segments are dropped, except the
  first: a workload starts by describing itself;
* ``started.json``: PIDs and start times of the shim and the workload, and the time of the launch;
* ``ended.json``: exit code, signal, CPU times, number of bytes on stdout, the end of stderr;
  written last, atomically.

SIGTERM ends the workload's whole process tree: SIGTERM first, SIGKILL after GRACE_SECONDS. Several
SIGTERMs, such as a scheduler sends to every process of a job, count as one request; a separate
signal asks for SIGKILL at once. Processes that outlive a workload that exits by itself are ended
after two seconds; after a stop request they get the rest of the grace period. ``kept``: those that
outlive a workload that exits by itself go on; what they print is no longer read. ``namespace``: the
command is a launcher that gives the workload a PID namespace, and SIGTERM goes only to processes
in it. The launcher would also pass on a SIGTERM of its own, and its helpers that serve the image's
files would end while the workload still saves its state.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
import select
import signal
import struct
import subprocess
import sys
import time

FRAME = struct.Struct("<BQI")
STDOUT, STDERR, PLACE = 1, 2, 4
SEGMENT_BYTES = 1 << 20
MOST_SEGMENTS = 64
LEFTOVER_GRACE = 2.0
UNKILLABLE_NS = 15_000_000_000
TAIL_BYTES = 4096
AT_ONCE = signal.SIGRTMIN
"""Signal for SIGKILL at once; no scheduler sends it."""
_PR_SET_CHILD_SUBREAPER = 36


class Spool:
    """A capped queue of frames on disk. Never raises: data that cannot be written is dropped.

    Each segment starts with the number of bytes that the workload wrote before it; so does the
    frame after a gap. From this a reader knows where and how much is missing.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._number = 1
        self._oldest = 2
        """Number of the next segment to drop."""
        self._fd = -1
        self._size = 0
        self._total = 0
        """Bytes written by the workload."""
        self._placed = False
        """Whether a reader can tell the next frame's position from the frames before."""

    def write(self, stream: int, data: bytes) -> None:
        self.flush()
        self._placed = self._placed and self._append(stream, data)
        self._total += len(data)

    def flush(self) -> None:
        """Write the position of the next frame, if earlier frames do not give it."""
        try:
            if self._fd < 0 or self._size >= SEGMENT_BYTES:
                self._next()
        except OSError:
            self._placed = False
        else:
            self._placed = self._placed or self._append(PLACE, struct.pack("<Q", self._total))

    def _append(self, stream: int, data: bytes) -> bool:
        frame = FRAME.pack(stream, time.monotonic_ns(), len(data)) + data
        try:
            whole = os.write(self._fd, frame) == len(frame)
        except OSError:
            whole = False
        if whole:
            self._size += len(frame)
        else:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, self._size)
        return whole

    def _next(self) -> None:
        number = self._number if self._fd < 0 else self._number + 1
        path = os.path.join(self._folder, f"{number:08d}")
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._number, self._size, self._placed = fd, number, 0, False
        while number - self._oldest >= MOST_SEGMENTS:
            with contextlib.suppress(OSError):  # already read and deleted
                os.unlink(os.path.join(self._folder, f"{self._oldest:08d}"))
            self._oldest += 1


class Shim:
    def __init__(self, folder: str, grace: float, signalled: str, command: list[str]) -> None:
        self._folder = folder
        self._grace = grace
        self._namespace, self._keeps = signalled == "namespace", signalled == "kept"
        self._command = command
        os.makedirs(os.path.join(folder, "spool"), mode=0o700, exist_ok=True)
        self._spool = Spool(os.path.join(folder, "spool"))
        self._pid = 0
        self._status: int | None = None
        self._usage: resource.struct_rusage | None = None
        self._ended_ns = 0
        self._childless = False
        self._stopped = self._at_once = False
        self._kill_at: float | None = None
        self._left_behind = 0
        self._stdout_bytes = 0
        self._stderr_tail = b""

    def run(self) -> None:
        wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        # Handlers, not SIG_IGN, which the workload would inherit.
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        signal.signal(signal.SIGTERM, self._on_stop)
        signal.signal(AT_ONCE, self._on_stop)
        pipes = self._start()
        if not pipes:
            return
        poller = select.poll()
        for fd in (wake_read, *pipes):
            poller.register(fd, select.POLLIN)
        while not self._over():
            for fd, _ in poller.poll(self._timeout_ms()):
                if fd == wake_read:
                    with contextlib.suppress(BlockingIOError):
                        os.read(wake_read, 4096)
                elif data := _read(fd):
                    self._take(pipes[fd], data)
                elif data == b"":
                    poller.unregister(fd)
                    os.close(fd)
                    del pipes[fd]
            self._reap()
            self._enforce()
        for fd, stream in pipes.items():
            while data := _read(fd):
                self._take(stream, data)
        self._spool.flush()
        self._finish()

    def _start(self) -> dict[int, int]:
        """Start the workload; returns stream numbers by the pipes' read ends."""
        pipes: dict[int, int] = {}
        ends = []
        for stream in (STDOUT, STDERR):
            read, write = os.pipe2(os.O_CLOEXEC)
            with contextlib.suppress(OSError):
                fcntl.fcntl(write, 1031, 1 << 20)  # F_SETPIPE_SZ
            os.set_blocking(read, False)
            pipes[read] = stream
            ends.append(write)
        _become_subreaper()
        spawned = time.monotonic_ns()
        try:
            process = subprocess.Popen(
                self._command, stdout=ends[0], stderr=ends[1], start_new_session=True
            )
        except (OSError, ValueError) as error:
            self._note("started.json", {"pid": os.getpid(), "start_time": _start_time("self")})
            failure = {"t": time.monotonic_ns(), "launcher_failed": True, "text": str(error)}
            self._note("ended.json", failure)
            return {}
        self._pid = process.pid
        process.returncode = 0  # reaped by wait4 here, for its resource usage
        for end in ends:
            os.close(end)
        self._note(
            "started.json",
            {
                "pid": os.getpid(),
                "start_time": _start_time("self"),
                "spawned_ns": spawned,
                "workload": self._pid,
                "workload_start_time": _start_time(self._pid),
            },
        )
        return pipes

    def _timeout_ms(self) -> int | None:
        if self._kill_at is not None:
            return max(0, int((self._kill_at - time.monotonic()) * 1000)) + 1
        return 50 if self._status is not None else None

    def _on_stop(self, number: int, _: object) -> None:
        self._stopped = True
        self._at_once = self._at_once or number == AT_ONCE

    def _enforce(self) -> None:
        """Carry out a requested stop, and end processes that the workload left behind."""
        if self._stopped and self._kill_at is None and self._status is None:
            self._signal(signal.SIGTERM)
            self._kill_at = time.monotonic() + self._grace
        elif self._status is not None and self._kill_at is None and (left := self._tree()):
            self._left_behind = len(left)
            if not self._keeps:
                self._signal(signal.SIGTERM)
                self._kill_at = time.monotonic() + LEFTOVER_GRACE
        if self._kill_at is not None and (self._at_once or time.monotonic() >= self._kill_at):
            self._signal(signal.SIGKILL)
            self._kill_at = time.monotonic() + 0.2

    def _signal(self, number: int) -> None:
        pids = self._tree()
        if self._namespace and number == signal.SIGTERM:
            # Empty while the launcher is still starting up: then the launcher itself is ended.
            pids = [pid for pid in pids if _in_namespace(pid)] or pids
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
                if number == signal.SIGTERM:
                    os.kill(pid, signal.SIGCONT)  # a stopped process would not receive it

    def _tree(self) -> list[int]:
        """All living descendants of this process."""
        if self._childless:  # orphans become its children, so there are none either
            return []
        children: dict[int, list[int]] = {}
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    with open(f"/proc/{entry}/stat", "rb") as file:
                        fields = file.read().rpartition(b")")[2].split()
                except OSError:
                    continue
                if fields[0] not in (b"Z", b"X"):
                    children.setdefault(int(fields[1]), []).append(int(entry))
        descendants = list(children.get(os.getpid(), ()))
        for pid in descendants:
            descendants.extend(children.get(pid, ()))
        return descendants

    def _reap(self) -> None:
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                self._childless = True
                return
            if pid == 0:
                return
            if pid == self._pid:
                self._status, self._usage = status, usage
                self._ended_ns = time.monotonic_ns()

    def _over(self) -> bool:
        """Whether the workload exited and nothing of it lives, or has resisted SIGKILL for long."""
        if self._status is None:
            return False
        if self._keeps and not self._stopped:
            return True
        return not self._tree() or time.monotonic_ns() - self._ended_ns > UNKILLABLE_NS

    def _take(self, stream: int, data: bytes) -> None:
        self._spool.write(stream, data)
        if stream == STDOUT:
            self._stdout_bytes += len(data)
        else:
            self._stderr_tail = (self._stderr_tail + data[-TAIL_BYTES:])[-TAIL_BYTES:]

    def _finish(self) -> None:
        code = os.waitstatus_to_exitcode(self._status or 0)
        usage = self._usage
        self._note(
            "ended.json",
            {
                "t": self._ended_ns,
                "code": code if code >= 0 else None,
                "signal": -code if code < 0 else None,
                "user_seconds": usage.ru_utime if usage else None,
                "sys_seconds": usage.ru_stime if usage else None,
                "left_behind": self._left_behind,
                "kept": self._keeps and not self._stopped,
                "stopped": self._stopped,
                "stdout_bytes": self._stdout_bytes,
                "stderr_tail": self._stderr_tail.decode(errors="replace"),
            },
        )

    def _note(self, name: str, value: dict[str, object]) -> None:
        """Write a small file atomically, retrying for as long as the disk is full."""
        path = os.path.join(self._folder, name)
        for _ in range(600):
            try:
                with open(f"{path}.new", "w") as file:
                    json.dump(value, file)
                os.rename(f"{path}.new", path)
                return
            except FileNotFoundError:  # the folder was removed, so nobody needs the file
                return
            except OSError:
                time.sleep(1)


def _start_time(pid: int | str) -> int | None:
    """A process's start in clock ticks since boot: tells it from the PID's next owner."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except OSError:
        return None


def _in_namespace(pid: int) -> bool:
    """Whether a process is in a PID namespace below this one, but not the first one's init."""
    ours, theirs = _numbers("self"), _numbers(pid)
    return len(theirs) > len(ours) and not (len(theirs) == len(ours) + 1 and theirs[-1] == b"1")


def _numbers(pid: int | str) -> list[bytes]:
    """A process's PIDs in this PID namespace and those below it."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            return next((line.split()[1:] for line in file if line.startswith(b"NSpid:")), [])
    except OSError:
        return []


def _read(fd: int) -> bytes | None:
    """The pipe's data; empty at its end, ``None`` before any arrives."""
    try:
        return os.read(fd, 1 << 18)
    except BlockingIOError:
        return None


def _become_subreaper() -> None:
    """Adopt the workload's orphans, so that no process escapes."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


if __name__ == "__main__":
    Shim(sys.argv[1], float(sys.argv[2]), sys.argv[3], sys.argv[4:]).run()
