"""The workload's process tree as a telemetry source: device ``workload``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from pathlib import Path

from gpuwatch.core.metrics import Method
from gpuwatch.telemetry.base import Change, Channel, Device, Event, Value, measured
from gpuwatch.telemetry.host.cgroup import GroupUsage
from gpuwatch.telemetry.nvml.errors import Unavailable
from gpuwatch.telemetry.nvml.fields import GpuProcess
from gpuwatch.telemetry.nvml.processes import SOURCE, ProcessShares
from gpuwatch.telemetry.process.tree import ProcessRow, ProcessTree

Listed = Mapping[str, Sequence[GpuProcess] | None]
"""The processes on each GPU by device id; ``None`` if they are not known."""
GpuProcesses = Callable[[], Listed]
"""The processes on each GPU by device id, as returned by :meth:`NvmlSource.processes`."""

GpuShares = Callable[[], Mapping[str, ProcessShares]]
"""Shares of each GPU's time per process, as returned by :meth:`NvmlSource.process_shares`."""

_channel = partial(measured, "workload")
_GROUP = 7
"""Index of the control group's first channel."""
_MEMORY = "/proc/PID/stat rss; of several processes /proc/PID/smaps_rollup Pss"
_MEMORY_AT_MOST = "/proc/PID/stat rss: shared pages once a process (smaps_rollup denied)"
_NO_GROUP = "no control group of the container was found"

OTHER_PIDS = (
    "gpuwatch runs in a PID namespace of its own, as in a pod, and NVML lists PIDs of the host: "
    "only gpuwatch on the host can tell whose they are"
)
_FIRST_PID_NAMESPACE = "pid:[4026531836]"
"""The host's own PID namespace: ``PROC_PID_INIT_INO`` in the kernel's proc_ns.h."""


class WorkloadSource:
    """CPU time, memory, I/O, device memory and GPU time of the workload's process tree.

    The roots can be set later, when the workload has started. Every value is ``None`` before that
    and after the last process has ended.
    """

    def __init__(
        self,
        gpu_processes: GpuProcesses | Unavailable,
        roots: Iterable[int] = (),
        *,
        contained: bool = False,
        gpu_shares: GpuShares = dict,
    ) -> None:
        self.devices = (Device("workload", "workload", "workload"),)
        self._tree = ProcessTree(())
        self._contained = contained
        self._group: GroupUsage | None = None
        self._gpu_processes: GpuProcesses | None = None
        self._gpu_shares = gpu_shares
        self.told_gpus: frozenset[str] = frozenset()
        """Device ids of the GPUs that the workload says it uses."""
        self._seen_on: set[str] = set()
        reason = None
        if isinstance(gpu_processes, Unavailable):
            reason = gpu_processes.reason
        elif not sees_host_pids():
            reason = OTHER_PIDS
        else:
            self._gpu_processes = gpu_processes
        self.channels: tuple[Channel, ...] = (
            _channel("process.cpu.time", "/proc/PID/stat utime, stime, cutime, cstime"),
            _channel("process.memory.usage", _MEMORY),
            _channel("process.io.read", "/proc/PID/io read_bytes"),
            _channel("process.io.write", "/proc/PID/io write_bytes"),
            _channel("process.gpu.memory.usage", "NVML running processes, host PIDs", reason),
            _channel("process.gpu.utilization", SOURCE, reason),
            _channel("process.cpu.wait", "/proc/PID/task/TID/schedstat; at least"),
        )
        if contained:
            self.channels += (
                _channel("container.cpu.time", "cgroup", _NO_GROUP),
                _channel("container.memory.usage", "cgroup", _NO_GROUP),
            )
        self._now = list(self.channels)
        self._changes: list[Change] = []
        self.set_roots(roots)

    def set_roots(self, roots: Iterable[int]) -> None:
        """Watch these processes and their descendants; the totals restart.

        With ``contained`` the control group of the first one is watched too.
        """
        listed = list(roots)
        self.roots = tuple(listed)
        """The processes at the top of the tree, as last set."""
        self._tree.set_roots(listed)
        if self._contained and listed:
            self._group = GroupUsage(listed[0])
            for place, source in enumerate(self._group.sources, _GROUP):
                self._now[place] = replace(self._now[place], source=source)

    def add_roots(self, roots: Iterable[int]) -> None:
        """Watch these processes too; the totals go on."""
        self._tree.add_roots(roots)

    def rows(self) -> list[ProcessRow]:
        """The living processes as of the last sample. Safe in another thread."""
        return self._tree.rows()

    @property
    def pids(self) -> frozenset[int]:
        """The processes of the tree as of the last sample."""
        return self._tree.pids

    def sample(self) -> Sequence[Value]:
        """CPU seconds, resident bytes, bytes read and written, bytes of device memory, share of
        GPU time, seconds of waiting for a core; with ``contained`` also the group's CPU seconds
        and bytes."""
        tree = self._tree.sample()
        used: int | None = None
        share: float | None = None
        if tree.processes and self._gpu_processes is not None:
            pids, listed = self._tree.pids, self._gpu_processes()
            self._seen_on |= _on(pids, listed)
            reason = _not_told(listed, self.told_gpus - self._seen_on)
            share, why_no_share = _gpu_time(pids, listed, self._gpu_shares(), reason)
            if reason is None:
                used, reason = _device_memory(pids, listed)
            self._say(4, reason)
            self._say(5, why_no_share)
        if (self._now[1].method is Method.BOUND) is not tree.at_most:
            method, source = Method.MEASURED, _MEMORY
            if tree.at_most:
                method, source = Method.BOUND, _MEMORY_AT_MOST
            self._now[1] = replace(self._now[1], method=method, source=source)
            self._changes.append(Change(self._now[1]))
        self._say(2, tree.io_reason)
        self._say(3, tree.io_reason)
        self._say(6, tree.core_wait_reason)
        values: list[Value] = [tree.cpu_s, tree.resident, tree.io_read, tree.io_written]
        values += [used, share, tree.core_wait_s]
        if self._contained:
            group = (self._group.cpu_s(), self._group.memory()) if self._group else (None, None)
            for place, value in enumerate(group, _GROUP):
                if value is not None:
                    self._say(place, None)
            values += group
        return values

    def drain(self) -> tuple[Sequence[Change], Sequence[Event]]:
        changes, self._changes = self._changes, []
        return changes, ()

    def close(self) -> None:
        self._tree.close()

    def _say(self, place: int, reason: str | None) -> None:
        channel = self._now[place]
        if channel.reason != reason:
            self._now[place] = _channel(channel.metric, channel.source, reason)
            self._changes.append(Change(self._now[place]))


def _on(pids: Set[int], listed: Listed) -> set[str]:
    """The devices with one of these processes."""
    return {
        device
        for device, processes in listed.items()
        for process in processes or ()
        if process.pid in pids
    }


def _not_told(listed: Listed, never_listed: Set[str]) -> str | None:
    """Why the lists do not say what the workload uses. ``never_listed``: GPUs that it says it uses,
    and on which NVML never listed it."""
    for device, processes in listed.items():
        if processes is None:
            return f"NVML does not list the processes of {device}"
        if device in never_listed:
            return f"NVML lists no process of the workload on {device}, which it says it uses"
    return None


def _device_memory(pids: Set[int], listed: Listed) -> tuple[int | None, str | None]:
    """Bytes, or the reason. A process listed for both compute and graphics counts once per GPU."""
    total = 0
    for device, processes in listed.items():
        used: dict[int, int] = {}
        for process in processes or ():
            if process.pid not in pids:
                continue
            if process.used is None:
                return None, f"NVML does not say how much memory a process holds on {device}"
            used[process.pid] = max(process.used, used.get(process.pid, 0))
        total += sum(used.values())
    return total, None


def _gpu_time(
    pids: Set[int], listed: Listed, by_device: Mapping[str, ProcessShares], not_told: str | None
) -> tuple[float | None, str | None]:
    """The tree's share of GPU time, mean over the GPUs that it uses; or the reason: ``not_told``
    where it may be on some that do not list it.

    0 while it is on none: its mean is over the same time as that of the GPU's utilization.
    """
    on = _on(pids, listed)
    per_device: list[float] = []
    for device in on - by_device.keys():
        return None, f"{device}: NVML does not say how its time was shared"
    for device, shares in by_device.items():
        own_shares = [share.kernels for pid, share in shares.by_pid.items() if pid in pids]
        if shares.reason is not None and device in on:
            return None, f"{device}: {shares.reason}"
        known = [share for share in own_shares if share is not None]
        if len(known) < len(own_shares):
            return None, f"{device}: NVML gives no valid sample of a process"
        if own_shares or device in on:
            per_device.append(min(1.0, sum(known)))
    if not per_device:
        if not listed:
            not_told = "NVML does not list the processes of any GPU"
        return (None, not_told) if not_told else (0.0, None)
    return sum(per_device) / len(per_device), None


def sees_host_pids() -> bool:
    """Whether this process sees host PIDs, as NVML does."""
    try:
        return str(Path("/proc/self/ns/pid").readlink()) == _FIRST_PID_NAMESPACE
    except OSError:
        return False
