"""Processes outside the workload's tree, such as others on a GPU, read one by one."""

from __future__ import annotations

import time
from collections.abc import Container
from pathlib import Path

from gpuwatch.telemetry.process.proc_files import PAGE_BYTES, TICKS_PER_S, ProcFiles
from gpuwatch.telemetry.process.tree import ProcessRow


class OtherProcesses:
    """Keeps a file open per process, so that a reused PID is recognised as another process."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._files: dict[int, ProcFiles] = {}

    def read(self, pid: int) -> ProcessRow | None:
        """The process's numbers now; ``None`` if it is gone or hidden."""
        files = self._files.get(pid)
        if files is not None:
            try:
                return _row(pid, files)
            except (OSError, ValueError):
                self._drop(pid)
        try:
            files = self._files[pid] = ProcFiles(self._proc, pid)
            return _row(pid, files)
        except (OSError, ValueError):
            self._drop(pid)
            return None

    def keep(self, pids: Container[int]) -> None:
        """Forget all processes except these."""
        for pid in [pid for pid in self._files if pid not in pids]:
            self._drop(pid)

    def _drop(self, pid: int) -> None:
        files = self._files.pop(pid, None)
        if files is not None:
            files.close()


def _row(pid: int, files: ProcFiles) -> ProcessRow | None:
    at, stat = time.monotonic(), files.stat()
    if stat.state in "ZX":
        return None
    cpu_s, resident = stat.own / TICKS_PER_S, stat.resident * PAGE_BYTES
    return ProcessRow(pid, stat.parent, stat.name, cpu_s, resident, stat.started, at)
