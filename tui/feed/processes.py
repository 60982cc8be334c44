"""The processes on the watched GPUs and those of the run, as a screen shows them."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.session.rows import GpuProcessRow, Processes, ProcessRow
from gpuwatch.session.schema import MOST_PROCESSES

_OLD_FILE = "recorded by a gpuwatch that did not look at it"
_UNSEEN = "its own numbers are not known: /proc did not show it"


@dataclass(frozen=True)
class GpuUse:
    """What a process has of one GPU."""

    device: str
    """``gpu0``."""
    bytes: int | None
    """Device memory."""
    share: float | None
    """Share of the GPU's time, 0 to 1, over about the last second."""
    reason: str | None = None
    """Why one of the two is not known."""
    graphics: bool = False
    """It draws, and does not compute."""


@dataclass(frozen=True)
class ProcessNow:
    """One process at the moment of the snapshot. Texts are as the session holds them: not clean."""

    pid: int
    """The host's."""
    name: str | None
    """``python train.py``, or the kernel's name of the program."""
    user: str | None
    owned: bool | None
    """Whether it belongs to the run; ``None``: the machine was recorded, or it cannot be told."""
    place: str | None
    """The run's environment for its own, else ``docker 3f2a9c1b4d5e``, ``slurm job 4711`` ..."""
    gpus: tuple[GpuUse, ...]
    cores: float | None
    """CPU seconds per second of the process itself."""
    resident: int | None
    """Bytes of host memory; shared pages count in each process."""
    started: int | None
    """Session time in nanoseconds; below 0: before the session."""
    running: bool
    """Of a session that is over also those that ended in its last minute are there."""
    t: int
    """Session time of this; of one that has ended, when it was seen last."""
    reason: str | None = None
    """Why something of it is not known."""

    @property
    def gpu_bytes(self) -> int | None:
        """Device memory on all its GPUs; ``None``: it is on none, or that is not known."""
        sizes = [each.bytes for each in self.gpus if each.bytes is not None]
        return sum(sizes) if sizes and len(sizes) == len(self.gpus) else None

    @property
    def gpu_share(self) -> float | None:
        """Its share of the time of the GPUs that it is on, their mean."""
        shares = [each.share for each in self.gpus if each.share is not None]
        return sum(shares) / len(shares) if shares and len(shares) == len(self.gpus) else None


def processes_of(
    found: Processes, environment: str, t: int, *, over: bool
) -> tuple[ProcessNow, ...]:
    """What runs at the session's time ``t``, the biggest GPU memory first.

    ``over``: of a session that is over, what ended in its last minute as well.
    """
    on: dict[int, list[GpuProcessRow]] = {}
    for gpu in found.on_gpus:
        if gpu.running or over:
            on.setdefault(gpu.pid, []).append(gpu)
    processes = []
    for row in found.all:
        if row.running or over:
            # In a PID namespace NVML's number is another process's: nothing is known of that one.
            own = [gpu for gpu in on.get(row.pid, ()) if gpu.owned == row.owned]
            on[row.pid] = [gpu for gpu in on.get(row.pid, ()) if gpu.owned != row.owned]
            processes.append(_seen(row, own, environment, t))
    listed = [rows for rows in on.values() if rows]
    processes += [_listed(rows, environment, t, old=not found.all) for rows in listed]
    return tuple(sorted(processes, key=_weight))


def some_may_be_left_out(processes: Sequence[ProcessNow]) -> bool:
    """Whether the run may have more processes than these: so many are all that is recorded.

    Of those on a GPU none is left out.
    """
    return len(processes) >= MOST_PROCESSES and any(each.owned for each in processes)


def _seen(row: ProcessRow, gpus: Sequence[GpuProcessRow], environment: str, t: int) -> ProcessNow:
    return ProcessNow(
        row.pid,
        row.name,
        row.user,
        row.owned,
        environment if row.owned else row.place,
        _on(gpus),
        row.cores,
        row.resident,
        row.started,
        row.running,
        t if row.running else row.t,
        row.reason,
    )


def _listed(rows: Sequence[GpuProcessRow], environment: str, t: int, *, old: bool) -> ProcessNow:
    """One that NVML listed, and of which nothing else is known."""
    row = rows[-1]
    return ProcessNow(
        row.pid,
        next((each.name for each in rows if each.name is not None), None),
        None,
        row.owned,
        environment if row.owned else None,
        _on(rows),
        None,
        None,
        None,
        any(each.running for each in rows),
        t,
        row.reason or (_OLD_FILE if old else _UNSEEN),
    )


def _on(rows: Sequence[GpuProcessRow]) -> tuple[GpuUse, ...]:
    found = [
        GpuUse(row.device, row.bytes, row.share, row.reason, row.kind == "graphics") for row in rows
    ]
    return tuple(sorted(found, key=lambda each: (len(each.device), each.device)))


def _weight(process: ProcessNow) -> tuple[bool, int, bool, int, int]:
    held = process.gpu_bytes
    resident = -(process.resident or 0)
    return not process.gpus, -(held or 0), process.owned is not True, resident, process.pid
