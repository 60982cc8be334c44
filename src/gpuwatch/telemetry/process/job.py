"""The processes of a Slurm job on this node, as far as they can be told from here."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Container, Sequence
from pathlib import Path

from gpuwatch.telemetry.base import Value
from gpuwatch.telemetry.nvml.errors import Unavailable
from gpuwatch.telemetry.process.identity import place_of
from gpuwatch.telemetry.process.workload import GpuProcesses, GpuShares, WorkloadSource

_EVERY_SECONDS = 2.0
"""Smallest time between two looks for processes that are no descendants of those known."""
_SHARE = 0.02
"""Largest share of one core's time for these looks."""


class JobSource(WorkloadSource):
    """The usage of a job's processes, those of its later steps included."""

    def __init__(
        self,
        job: str,
        gpu_processes: GpuProcesses | Unavailable,
        *,
        gpu_shares: GpuShares = dict,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``job``: its number. The recorder itself and who started it, which are in the job too,
        are left out."""
        self._ours = frozenset({os.getpid(), os.getppid()})
        self._job = job
        self._clock = clock
        self._due = 0.0
        super().__init__(gpu_processes, gpu_shares=gpu_shares)

    def sample(self) -> Sequence[Value]:
        """As :meth:`WorkloadSource.sample`."""
        begun = self._clock()
        if begun >= self._due:
            self.add_roots(processes_of(self._job, known=self.pids | self._ours))
            took = self._clock() - begun
            self._due = begun + max(_EVERY_SECONDS, took / _SHARE)
        return super().sample()


def processes_of(job: str, *, known: Container[int] = (), proc: Path = Path("/proc")) -> list[int]:
    """The processes of a job, except the ``known`` ones: by their control group, or by the
    environment in which they were started, which only this user's own show."""
    pids = [int(name) for name in os.listdir(proc) if name.isdecimal()]
    return [pid for pid in pids if pid not in known and _is_of(job, proc / str(pid))]


def _is_of(job: str, process: Path) -> bool:
    try:
        if place_of((process / "cgroup").read_text("utf-8", "replace")) == f"slurm job {job}":
            return True
        if process.stat().st_uid != os.geteuid():
            return False
        variables = (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return f"SLURM_JOB_ID={job}".encode() in variables
