"""Runs as processes of this machine, started and held by a shim, in any environment."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from gpuwatch.core import paths
from gpuwatch.core.errors import GpuwatchError
from gpuwatch.core.models import JSON, Output, Result, RunState
from gpuwatch.core.processes import ProcessId, boot_id, machine_id, pid_namespace
from gpuwatch.runners import shim
from gpuwatch.runners.shim import FRAME, PLACE, STDERR, STDOUT

_AT_ONCE = 4 << 20
_STREAMS = {STDOUT: "stdout", STDERR: "stderr"}
_Frame = tuple[int, int, bytes]
"""Stream, nanoseconds, payload."""


class SpoolReader:
    """Follows the frames from a cursor ``SEGMENT:OFFSET:TOTAL``; ``TOTAL`` is bytes of output."""

    def __init__(self, folder: Path, cursor: str | None = None) -> None:
        self._folder = folder
        self._segment, self._offset, self._total = map(int, (cursor or "1:0:0").split(":"))
        self._released = 0

    def cursor(self) -> str:
        return f"{self._segment}:{self._offset}:{self._total}"

    def read(self) -> list[Output]:
        """Complete frames since the last call, at most about 4 MiB, and notes on gaps."""
        outputs: list[Output] = []
        size = 0
        following: int | None = None
        while size < _AT_ONCE:
            used = 0
            for stream, t, payload in _frames(self._read_segment()):
                used += FRAME.size + len(payload)
                if stream == PLACE:
                    outputs.extend(self._missing(t, *struct.unpack("<Q", payload)))
                elif stream in _STREAMS:
                    self._total += len(payload)
                    outputs.append(Output(t, _STREAMS[stream], payload))
            self._offset += used
            size += used
            if used:
                continue
            if following is None:
                # A segment with a successor is complete; data written to it meanwhile is read
                # before the successor.
                later = (number for number in self._numbers() if number > self._segment)
                following = next(later, None)
                if following is None:
                    break
                continue
            self._segment, self._offset, following = following, 0, None
        return outputs

    def _missing(self, t: int, total: int) -> list[Output]:
        """A note on dropped output, if a frame's position is beyond ``total`` bytes."""
        lost, self._total = total - self._total, total
        return [Output(t, "stdout", b"", lost=lost)] if lost > 0 else []

    def release(self, cursor: str) -> None:
        """Delete the segments before the cursor."""
        keep = int(cursor.partition(":")[0])
        for number in self._numbers():
            if self._released < number < keep:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self._path(number))
        self._released = keep - 1

    def _path(self, number: int) -> str:
        return os.path.join(self._folder, f"{number:08d}")

    def _numbers(self) -> list[int]:
        try:
            return sorted(int(name) for name in os.listdir(self._folder) if name.isdigit())
        except FileNotFoundError:
            return []

    def _read_segment(self) -> bytes:
        try:
            file = os.open(self._path(self._segment), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return b""
        try:
            return os.pread(file, _AT_ONCE, self._offset)
        finally:
            os.close(file)


def _frames(data: bytes) -> Iterator[_Frame]:
    """The complete frames at the start of ``data``."""
    at = 0
    while at + FRAME.size <= len(data):
        stream, t, length = FRAME.unpack_from(data, at)
        end = at + FRAME.size + length
        if end > len(data):
            break
        yield stream, t, data[at + FRAME.size : end]
        at = end


GRACE_SECONDS = 10.0
"""Time between SIGTERM and SIGKILL when a run is stopped."""

_START_PATIENCE = 10.0


@dataclass(frozen=True)
class Ending:
    """Evidence for recognising a launcher's own failure."""

    pid: int | None
    """PID of the launcher, which may have become the workload."""
    code: int | None
    stdout_bytes: int
    stderr: str
    """The last 4 KiB."""
    signal: int | None = None


Blame = Callable[[Ending], str | None]
"""Returns the launcher's own error message; ``None`` if the workload itself ended."""

Remark = Callable[[Ending], str | None]
"""Returns a note on the workload's own end, if there is one."""


class LocalRun:
    """A workload under a shim, found again by its folder."""

    def __init__(
        self,
        kind: str,
        folder: Path,
        holder: ProcessId,
        cursor: str | None = None,
        blame: Blame | None = None,
        remark: Remark | None = None,
    ) -> None:
        self._kind = kind
        self._folder = folder
        self._holder = holder
        self._spool = SpoolReader(folder / "spool", cursor)
        self._blame = blame
        self._remark = remark
        self._stops = 0

    @classmethod
    def start(
        cls,
        kind: str,
        command: Sequence[str],
        *,
        folder: Path,
        working_directory: str,
        variables: Mapping[str, str],
        blame: Blame | None = None,
        remark: Remark | None = None,
        pid_namespace: bool = False,
        keeps_children: bool = False,
        takes_input: bool = False,
    ) -> LocalRun:
        """Start ``command`` under a shim, in a session of its own.

        ``keeps_children``: what it leaves running goes on. ``takes_input``: it reads this process's
        standard input.

        ``pid_namespace`` means that the command is a launcher that gives the workload a PID
        namespace; stopping then signals only the workload.

        Raises:
            GpuwatchError: the shim itself could not be started.
        """
        signalled = "namespace" if pid_namespace else "kept" if keeps_children else "tree"
        arguments = [sys.executable, "-I", "-S", shim.__file__, str(folder), str(GRACE_SECONDS)]
        process = subprocess.Popen(
            [*arguments, signalled, *command],
            cwd=working_directory,
            env=dict(variables),
            stdin=None if takes_input else subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=(folder / "shim.log").open("wb"),
            start_new_session=True,
        )
        deadline = time.monotonic() + _START_PATIENCE
        while not (folder / "started.json").exists():
            if process.poll() is not None or time.monotonic() > deadline:
                break
            time.sleep(0.002)
        if not (folder / "started.json").exists():
            log = (folder / "shim.log").read_text(errors="replace").strip().splitlines()
            raise GpuwatchError(f"the workload's shim did not start: {' '.join(log[-1:])}")
        # The shim's note tells who it is: with a short workload it may be over by now.
        return cls.attach({"kind": kind, "folder": str(folder)}, None, blame, remark)

    @classmethod
    def attach(
        cls,
        handle: Mapping[str, JSON],
        cursor: str | None,
        blame: Blame | None = None,
        remark: Remark | None = None,
    ) -> LocalRun:
        """The run for a handle; it may have ended meanwhile."""
        folder = Path(str(handle["folder"]))
        # A recorder that died before it could note the start has no holder.
        holder = handle.get("holder") or _read_note(folder / "started.json")
        process = ProcessId(
            str(holder.get("host", socket.gethostname())),
            str(holder.get("boot_id", boot_id())),
            int(holder.get("pid", 0)),
            int(holder.get("start_time", 0)),
            holder.get("pid_namespace", pid_namespace()),
            str(holder.get("machine", machine_id())),
        )
        return cls(str(handle["kind"]), folder, process, cursor, blame, remark)

    def handle(self) -> dict[str, JSON]:
        return {"kind": self._kind, "folder": str(self._folder), "holder": asdict(self._holder)}

    def spawned_ns(self) -> int | None:
        value = self._note("started.json").get("spawned_ns")
        return value if isinstance(value, int) else None

    def pids(self) -> Sequence[int]:
        note = self._note("started.json")
        pid, started = note.get("workload"), note.get("workload_start_time")
        if not isinstance(pid, int) or not isinstance(started, int):
            return ()
        workload = replace(self._holder, pid=pid, start_time=started)
        return (pid,) if workload.alive() else ()

    def read(self) -> list[Output]:
        return self._spool.read()

    def cursor(self) -> str:
        return self._spool.cursor()

    def release(self, cursor: str) -> None:
        self._spool.release(cursor)

    def state(self) -> RunState:
        if self._holder.alive() is not False:  # the shim writes the result last
            return RunState.RUNNING
        return RunState.EXITED if self._note("ended.json") else RunState.LOST

    def result(self) -> Result | None:
        if self._holder.alive() is not False:
            return None
        note = self._note("ended.json")
        if not note:
            text = "its shim is gone"
            if self.pids():
                text += "; the workload still ran: `gpuwatch stop SESSION` ends it"
            return Result(None, None, time.monotonic_ns(), lost=True, text=text)
        # A launcher that was stopped prints errors too, but did not fail.
        ending = None
        if not note.get("stopped"):
            ending = Ending(
                self._note("started.json").get("workload"),
                note.get("code"),
                int(note.get("stdout_bytes") or 0),
                str(note.get("stderr_tail") or ""),
                note.get("signal"),
            )
        blamed = self._blame(ending) if self._blame and ending else None
        remark = self._remark(ending) if self._remark and ending else None
        return Result(
            code=note.get("code"),
            signal=note.get("signal"),
            t=int(note["t"]),
            user_seconds=note.get("user_seconds"),
            sys_seconds=note.get("sys_seconds"),
            launcher_failed=bool(blamed or note.get("launcher_failed")),
            text=blamed or note.get("text") or remark,
            left_behind=int(note.get("left_behind") or 0),
            kept=bool(note.get("kept")),
        )

    def stop(self) -> None:
        self._stops += 1
        with contextlib.suppress(ProcessLookupError):
            if self._holder.alive():
                os.kill(self._holder.pid, signal.SIGTERM if self._stops == 1 else shim.AT_ONCE)
                return
            # Without its shim only the workload's own process group can be reached.
            for pid in self.pids():
                os.killpg(pid, signal.SIGTERM if self._stops == 1 else signal.SIGKILL)

    def forget(self) -> None:
        paths.remove_run_folder(self._folder)

    def _note(self, name: str) -> dict[str, JSON]:
        return _read_note(self._folder / name)


def _read_note(path: Path) -> dict[str, JSON]:
    """A small JSON file from the shim; empty while it does not exist."""
    try:
        value = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
