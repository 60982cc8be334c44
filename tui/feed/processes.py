"""The processes on the recorded GPUs and those of the run, for the screens.

Sessions hold no command lines, which may have secrets in them. Those of a session that goes on here
are read from ``/proc``, shown, and written nowhere.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpuwatch.core.aggregate import average_of, grouped
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.live_process import command_line, command_text
from gpuwatch.core.models import JSON, mapping
from gpuwatch.core.processes import start_time
from gpuwatch.core.text import clean
from gpuwatch.core.units import NS
from gpuwatch.session.reading.status import process_id
from gpuwatch.session.rows import GpuProcessRow, Processes
from gpuwatch.session.schema import MOST_PROCESSES

_OVER = "CPU and GPU shares are of a moment while it ran: ← goes back"


@dataclass(frozen=True)
class ProcessNow:
    """One process at the moment of the snapshot; its texts come from the session uncleaned."""

    pid: int
    """PID on the host."""
    name: str | None
    """``python train.py``, or the kernel's name of the program."""
    user: str | None
    owned: bool | None
    """Whether it belongs to the run; ``None``: unknown, or a recording of the machine alone."""
    place: str | None
    """Environment of the run, ``docker 3f2a9c1b4d5e``, ``slurm job 4711`` ..."""
    gpus: tuple[GpuProcessRow, ...]
    cores: float | None
    """CPU seconds per second of the process itself."""
    resident: int | None
    """Resident host memory in bytes, with shared pages."""
    started: int | None
    """Start in nanoseconds of session time; below 0: before the session."""
    running: bool
    """``False``: ended in the last minute of a finished session."""
    t: int
    """Session time of these values in nanoseconds."""
    reason: str | None = None
    """Why one of the values is unknown."""
    start: int | None = None
    """Start in clock ticks since boot, where it runs on this machine now; else ``None``."""
    started_unix: float | None = None
    """``started`` in Unix seconds, by the clock of where it was recorded."""
    command: str | None = None
    """Its whole command line, in no session: ``/proc`` tells it now. One line, cleaned."""

    @property
    def gpu_bytes(self) -> int | None:
        """Device memory on all its GPUs in bytes; ``None``: unknown, or it uses no GPU."""
        sizes = [use.bytes for use in self.gpus if use.bytes is not None]
        return sum(sizes) if sizes and len(sizes) == len(self.gpus) else None

    @property
    def gpu_share(self) -> float | None:
        """Mean share of the time of its GPUs, 0 to 1; ``None``: unknown, or it uses no GPU."""
        return average_of([use.share for use in self.gpus])

    @property
    def memory_share(self) -> float | None:
        """Mean share of the time in which it read or wrote the memory of its GPUs, 0 to 1;
        ``None``: unknown, or it uses no GPU."""
        return average_of([use.memory_share for use in self.gpus])


def processes_of(
    recorded: Processes, environment: str, t: int, *, ended: bool, began: float | None = None
) -> tuple[ProcessNow, ...]:
    """The processes at session time ``t`` in nanoseconds, the largest GPU memory first.

    ``ended``: include those that ended in the session's last minute; none is told to be busy.
    ``began``: its start on the Unix clock, in nanoseconds.
    """
    uses = grouped((use.pid, use) for use in recorded.on_gpus if use.running or ended)
    processes = []
    for row in recorded.all:
        if row.running or ended:
            # In a PID namespace NVML's PID may belong to another process: ``owned`` must agree.
            own = [use for use in uses.get(row.pid, ()) if use.owned == row.owned]
            uses[row.pid] = [use for use in uses.get(row.pid, ()) if use.owned != row.owned]
            process = ProcessNow(
                pid=row.pid,
                name=row.name,
                user=row.user,
                owned=row.owned,
                place=environment if row.owned else row.place,
                gpus=_in_order(own),
                cores=row.cores,
                resident=row.resident or None,  # 0: it had given its memory back, to end
                started=row.started,
                running=row.running,
                t=t if row.running else row.t,
                reason=row.reason,
                started_unix=None
                if row.started is None or began is None
                else (began + row.started) / NS,
            )
            processes.append(process)
    for rows in filter(None, uses.values()):  # those that only NVML knows
        process = ProcessNow(
            pid=rows[-1].pid,
            name=next((use.name for use in rows if use.name is not None), None),
            user=None,
            owned=rows[-1].owned,
            place=environment if rows[-1].owned else None,
            gpus=_in_order(rows),
            cores=None,
            resident=None,
            started=None,
            running=any(use.running for use in rows),
            t=t,
            reason=rows[-1].reason or "unknown: the process is not in /proc",
        )
        processes.append(process)
    processes.sort(key=_sort_key)
    return tuple(map(_without_use, processes) if ended else processes)


def _without_use(process: ProcessNow) -> ProcessNow:
    gpus = tuple(replace(use, share=None, memory_share=None) for use in process.gpus)
    return replace(process, gpus=gpus, cores=None, reason=process.reason or _OVER)


def as_sampled(
    processes: Sequence[ProcessNow], cores: float | None, resident: float | None
) -> tuple[ProcessNow, ...]:
    """A run's only process with the samples of the run, which are newer than those of each."""
    own = [process for process in processes if process.owned]
    if len(own) != 1 or resident is None:
        return tuple(processes)
    now = replace(own[0], cores=cores, resident=int(resident))
    return tuple(now if process is own[0] else process for process in processes)


def may_be_truncated(processes: Sequence[ProcessNow]) -> bool:
    """Whether the run may have more processes without a GPU than were recorded."""
    return len(processes) >= MOST_PROCESSES and any(process.owned for process in processes)


def _in_order(uses: Sequence[GpuProcessRow]) -> tuple[GpuProcessRow, ...]:
    return tuple(sorted(uses, key=lambda use: (len(use.device), use.device)))


def _sort_key(process: ProcessNow) -> tuple[bool, int, bool, int, int]:
    memory, resident = -(process.gpu_bytes or 0), -(process.resident or 0)
    return not process.gpus, memory, process.owned is not True, resident, process.pid


# Those that run here now.

_INACCURACY_NS = NS
"""How far a recorded start may be off: it is noted when the recorder comes to it. No PID is given
to another process that soon."""

_Key = tuple[int, int | None, str | None]
"""PID, recorded start and name. A recorder tells each process's start again once a minute, a little
different, and its name when it changes: then its command line is read anew."""


def runs_here(meta: Mapping[str, JSON]) -> bool:
    """Whether the recorder of the session with this ``meta`` lives and sees the PIDs seen here."""
    recorder = process_id(meta.get("recorder"))
    return recorder is not None and recorder.alive() is True


def said_of(process: ProcessNow) -> str:
    """Its command line where it is known here, else its recorded name; empty: neither is."""
    return process.command or clean(process.name or "")


def owner_text(process: ProcessNow) -> str:
    """``ann train.py``: its user and program, without the Python that most share."""
    name = process.name or ""
    python, _, script = name.partition(" ")
    known = python.startswith("python") and script and not script.startswith("-c")
    program = script if known else name
    told = " ".join(clean(part) for part in (process.user, program) if part)
    return told or f"PID {process.pid}"


def shown_command(process: ProcessNow) -> str:
    """What is said of it, with the program's name without its folder: the arguments tell more."""
    program, blank, arguments = said_of(process).partition(" ")
    if process.command:  # the kernel's name of a process may have a slash
        program = program.rpartition("/")[2] or program
    return f"{program}{blank}{arguments}"


class LiveProcesses:
    """Finds the processes of a session in ``/proc``, and remembers what was found."""

    def __init__(self) -> None:
        self._known: dict[_Key, tuple[int, str | None]] = {}

    def find(
        self, processes: Sequence[ProcessNow], meta: Mapping[str, JSON]
    ) -> tuple[ProcessNow, ...]:
        """``processes``, with ``start`` and ``command`` of those that run here.

        ``meta``: of the session. Of a recorder that has ended, or runs on another host or in
        another PID namespace, none does.
        """
        base = mapping(meta.get("clock")).get("monotonic_ns")
        before, self._known = self._known, {}
        if not isinstance(base, int) or not runs_here(meta):
            return tuple(processes)
        found = []
        for process in processes:
            key = process.pid, process.started, process.name
            known = before.get(key) or _looked_up(process, base)
            if known is not None:
                self._known[key] = known
                process = replace(process, start=known[0], command=known[1])
            found.append(process)
        return tuple(found)


def _looked_up(process: ProcessNow, base: int) -> tuple[int, str | None] | None:
    """Start and command line; ``None``: it ended, or ``/proc`` does not show it.

    ``base``: the session's start on the monotonic clock in nanoseconds, which stands still while
    the machine sleeps; starts are on one that does not.
    """
    start = start_time(process.pid)
    if start is None or process.started is None:
        return None
    slept = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns()
    recorded = process.started + base + slept
    if abs(start * NS // os.sysconf("SC_CLK_TCK") - recorded) > _INACCURACY_NS:
        return None
    words = command_line(process.pid, start)
    return start, (command_text(words) if words else None)
