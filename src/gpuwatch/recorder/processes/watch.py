"""Watches every process on a GPU or in the workload's tree: its owner and what it uses.

Runs apart from the sampling: the writing thread asks ten times a second, mostly in vain.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.processes import read_text
from gpuwatch.recorder.processes.gpu_holders import GpuHolder, GpuHolders, GpuUsage, Key, held
from gpuwatch.session.rows import MPS_SERVER
from gpuwatch.session.schema import MOST_PROCESSES, RESTATED_SECONDS
from gpuwatch.session.writing.statements import Row, process, process_use
from gpuwatch.telemetry.nvml.source import NvmlSource
from gpuwatch.telemetry.process.identity import ProcessIdentity, identify, place_of, with_user_name
from gpuwatch.telemetry.process.proc_files import TICKS_PER_S, Stat, read_stat
from gpuwatch.telemetry.process.tree import ProcessRow, process_row
from gpuwatch.telemetry.process.workload import OTHER_PIDS, WorkloadSource, sees_host_pids

_DEEPEST = 64
"""Most ancestors to check."""


class RunProcesses:
    """Knows the run's processes by their ancestors, their session and their container.

    The tree alone is not enough: NVML may list a process before the tree has found it, and an
    orphan moves below the shim, or below another process in its container.
    """

    def __init__(self, tree: WorkloadSource) -> None:
        self._tree = tree
        self._roots: tuple[int, ...] = ()
        self._above: frozenset[int] = frozenset()
        self._places: frozenset[str] = frozenset()
        self._known: set[tuple[int, int]] = set()

    def owns(self, pid: int) -> bool | None:
        """Whether a process belongs to the run; if so, it does until it ends.

        ``None``: it has ended, or ``/proc`` does not show it.
        """
        stat = read_stat(pid)
        if stat is None:
            return pid in self._tree.pids or None
        if (pid, stat.started) in self._known:
            return True
        self._look_at_roots()
        if self._belongs(pid, stat):
            self._known.add((pid, stat.started))
            return True
        return False

    def _belongs(self, pid: int, stat: Stat) -> bool:
        mine = self._tree.pids | self._above
        if stat.session in self._roots or self._place(pid) in self._places:
            return True
        above: Stat | None = stat
        for _ in range(_DEEPEST):
            if pid in mine:
                return True
            if above is None or above.parent <= 1:
                return False
            pid = above.parent
            if above.session in self._roots:
                return True
            above = read_stat(pid)
        return False

    def _look_at_roots(self) -> None:
        """Find the run's own container, if any, and the shim above the run."""
        roots = self._tree.roots
        if roots == self._roots:
            return
        self._roots = roots
        of_recorder = self._place("self")
        places = {self._place(pid) for pid in roots} - {None, of_recorder}
        self._places = frozenset(str(place) for place in places)
        stats = [read_stat(pid) for pid in roots]
        parents = {stat.parent for stat in stats if stat is not None}
        self._above = frozenset(pid for pid in parents if self._is_shim(pid))

    def _is_shim(self, pid: int) -> bool:
        words = (read_text(Path(f"/proc/{pid}/cmdline")) or "").split("\0")
        return any(word.endswith("/shim.py") for word in words[:8])

    def _place(self, pid: int | str) -> str | None:
        return place_of(read_text(Path(f"/proc/{pid}/cgroup")) or "")


LISTS_SECONDS = 0.5
"""Seconds between two looks at NVML's process lists, which are read once a second."""
EVERY_SECONDS = 2.0
"""Seconds between two looks at what each process uses."""
_FEW_LOOKS, _MANY_LOOKS = 3, 6
"""Number of complete lists after which a process on a GPU would have been seen; number of
incomplete lists after which no complete one is expected."""
_OLD_ENOUGH_SECONDS = 1.0
"""A younger process that uses no GPU may be gone in a moment and is ignored."""
_CORES, _PART = 0.1, 0.01
"""Smallest changes worth a row: CPU use, both in cores and relative; memory, relative."""


@dataclass
class _Watched:
    """A process as last seen, and its use as last written."""

    row: ProcessRow
    identity: ProcessIdentity
    owned: bool | None
    cores: float | None = None
    written: tuple[float | None, int] | None = None


class ProcessWatch:
    """Makes the rows of ``gpu_process``, ``process`` and ``process_use``."""

    def __init__(
        self,
        nvml: NvmlSource | None,
        tree: WorkloadSource | None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``clock`` returns seconds, for the times at which looks are due."""
        self._clock = clock
        self._nvml = nvml
        self._tree = tree
        self._own = RunProcesses(tree) if tree is not None else None
        self._same_pids = sees_host_pids()
        self._holders = GpuHolders()
        self._watched: dict[int, _Watched] = {}
        self._known_holders: dict[int, GpuHolder] = {}
        self._lists_due = self._use_due = self._restate_due = 0.0
        self.used_by_tree: dict[str, int] = {}
        """By device that a process of the workload has used: the most bytes that one held."""
        self._looks = self._complete = 0
        self._served = False

    def rows(self, t: int) -> list[Row]:
        """Rows for what appeared, changed or left since the last call; ``t``: session time, ns."""
        now = self._clock()
        if now < self._lists_due:
            return []
        self._lists_due = now + LISTS_SECONDS
        listed = self._nvml.processes() if self._nvml is not None else {}
        self._looks += 1
        self._complete += all(of_gpu is not None for of_gpu in listed.values())
        on_gpus = held(listed)
        if now < self._use_due and self._holders.same(on_gpus):
            return []
        self._use_due = now + EVERY_SECONDS
        restate = now >= self._restate_due
        if restate:
            self._restate_due = now + RESTATED_SECONDS
        rows = self._look(t, on_gpus, restate=restate)
        if self._nvml is not None:
            holders = self._known_holders = {pid: self._holder(pid) for _, pid in on_gpus}
            shares = self._nvml.process_shares()
            rows += self._holders.rows(t, on_gpus, holders, shares, restate=restate)
            for (device, pid), usage in on_gpus.items():
                if holders[pid].owned:
                    most = max(usage.bytes or 0, self.used_by_tree.get(device, 0))
                    self.used_by_tree[device] = most
            self._served |= any(MPS_SERVER in (holder.name or "") for holder in holders.values())
        return rows

    @property
    def is_conclusive(self) -> bool | None:
        """Whether a process of the workload on a GPU would have been seen by now; ``None``: too
        early to tell."""
        if not self._same_pids or self._served:
            return False
        if self._nvml is not None and self._nvml.processes_doubted:
            return False
        if self._complete >= _FEW_LOOKS:
            return True
        return None if self._complete or self._looks < _MANY_LOOKS else False

    def _look(self, t: int, on_gpus: Mapping[Key, GpuUsage], *, restate: bool) -> list[Row]:
        """Rows on the identity and use of the processes."""
        tree = {row.pid: row for row in self._tree.rows()} if self._tree is not None else {}
        chosen = self._chosen(tree, on_gpus)
        gone = [pid for pid in self._watched if pid not in chosen]
        rows = [_process_row(t, self._watched.pop(pid), running=False) for pid in gone]
        for pid in chosen:
            seen = tree.get(pid) or _now(pid)
            known = self._watched.get(pid)
            if known is not None and (seen is None or seen.started != known.row.started):
                rows.append(_process_row(t, self._watched.pop(pid), running=False))
                known = None
            if seen is None:
                continue
            if known is None:
                known = self._watched[pid] = _Watched(seen, identify(pid), self._owns(pid))
                new = True
            else:
                new = self._follow(known, seen) or restate
            if new:
                rows.append(_process_row(t, known, running=True))
            if new or _moved(known):
                known.written = known.cores, known.row.resident
                cores = None if known.cores is None else round(known.cores, 3)
                rows.append(process_use(t, pid, cores, known.row.resident))
        return rows

    def _chosen(self, tree: Mapping[int, ProcessRow], on_gpus: Mapping[Key, GpuUsage]) -> list[int]:
        """PIDs to watch; among equals, those already watched come first."""
        size: dict[int, int] = {}
        for (_, pid), usage in on_gpus.items() if self._same_pids else ():
            size[pid] = size.get(pid, 0) + (usage.bytes or 0)
        on = sorted(size, key=lambda pid: (-size[pid], pid not in self._watched, pid))
        uptime = time.clock_gettime(time.CLOCK_BOOTTIME)
        others = [
            row
            for row in tree.values()
            if row.pid not in size and uptime - row.started / TICKS_PER_S >= _OLD_ENOUGH_SECONDS
        ]
        others.sort(key=lambda row: (row.pid not in self._watched, -row.resident, row.pid))
        return [*on, *(row.pid for row in others)][:MOST_PROCESSES]

    def _follow(self, known: _Watched, seen: ProcessRow) -> bool:
        """Update the use since the last look; returns whether its identity has changed."""
        if seen.at > known.row.at:
            known.cores = max(0.0, seen.cpu_s - known.row.cpu_s) / (seen.at - known.row.at)
        renamed, known.row = seen.name != known.row.name, seen
        if renamed:
            known.identity = identify(seen.pid)
        identity = with_user_name(known.identity)
        identified = identity is not known.identity
        known.identity = identity
        # A foreign process may turn out to be the run's once its parents are known.
        newly_owned = known.owned is False and self._owns(seen.pid) is True
        if newly_owned:
            known.owned = True
        return renamed or newly_owned or identified

    def _owns(self, pid: int) -> bool | None:
        return None if self._own is None else self._own.owns(pid)

    def _holder(self, pid: int) -> GpuHolder:
        if not self._same_pids:
            return GpuHolder(None, None, OTHER_PIDS)
        known = self._watched.get(pid)
        if known is not None:
            return GpuHolder(known.identity.name, known.owned)
        if pid in self._known_holders:  # it has ended; NVML's list is up to a second old
            return self._known_holders[pid]
        identity = identify(pid)
        return GpuHolder(identity.name, self._owns(pid), identity.reason)


def _now(pid: int) -> ProcessRow | None:
    """A process outside the workload's tree; ``None`` if it is gone or hidden."""
    at, stat = time.monotonic(), read_stat(pid)
    return None if stat is None or stat.state in "ZX" else process_row(pid, stat, at)


def _moved(known: _Watched) -> bool:
    if known.written is None:
        return True
    cores, resident = known.written
    if cores is None or known.cores is None:
        more = known.cores is not cores
    else:
        change = abs(known.cores - cores)
        more = change >= _CORES and change >= _CORES * max(cores, known.cores)
    return more or abs(known.row.resident - resident) > _PART * resident


def _process_row(t: int, known: _Watched, *, running: bool) -> Row:
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - known.row.started / TICKS_PER_S
    identity = known.identity
    return process(
        t,
        known.row.pid,
        t - int(age_s * 1e9),
        identity.name,
        identity.user,
        identity.place,
        known.owned,
        running,
        identity.reason,
    )
