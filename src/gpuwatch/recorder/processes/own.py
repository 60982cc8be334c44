"""Decides which processes belong to the run; never reports the run's own process as foreign."""

from __future__ import annotations

from pathlib import Path

from gpuwatch.telemetry.process.identity import place_of
from gpuwatch.telemetry.process.proc_files import Stat, read_stat
from gpuwatch.telemetry.process.workload import WorkloadSource

_DEEPEST = 64
"""Most ancestors to check."""


class RunProcesses:
    """Knows the run's processes by their ancestors, their session and their container.

    The tree alone is not enough: NVML may list a process before the tree has found it, and an
    orphan moves below the shim, or below another process in its container.
    """

    def __init__(self, tree: WorkloadSource, proc: Path = Path("/proc")) -> None:
        self._tree = tree
        self._proc = proc
        self._roots: tuple[int, ...] = ()
        self._above: frozenset[int] = frozenset()
        self._places: frozenset[str] = frozenset()
        self._known: set[tuple[int, int]] = set()

    def owns(self, pid: int) -> bool | None:
        """Whether a process belongs to the run; if so, it does until it ends.

        ``None``: it has ended, or ``/proc`` does not show it.
        """
        stat = read_stat(pid, self._proc)
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
            above = read_stat(pid, self._proc)
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
        stats = [read_stat(pid, self._proc) for pid in roots]
        parents = {stat.parent for stat in stats if stat is not None}
        self._above = frozenset(pid for pid in parents if self._is_shim(pid))

    def _is_shim(self, pid: int) -> bool:
        try:
            words = (self._proc / str(pid) / "cmdline").read_bytes().split(b"\0")
        except OSError:
            return False
        return any(word.endswith(b"/shim.py") for word in words[:8])

    def _place(self, pid: int | str) -> str | None:
        try:
            text = (self._proc / str(pid) / "cgroup").read_text("utf-8", "replace")
        except OSError:
            return None
        return place_of(text)
