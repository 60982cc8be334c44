"""A container's control group, versions 1 and 2: its processes and their usage.

Source: the kernel's documentation, admin-guide/cgroup-v2 (cpu.stat, cgroup.events) and cgroup-v1
(cpuacct.stat, freezer.state).
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_MOUNTS = Path("/sys/fs/cgroup")


def holds(pid: int, container: str) -> bool | None:
    """Whether a host process is in that container; ``None`` if the process does not exist."""
    try:
        return container in Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8")
    except OSError:
        return None


class Group:
    """The control group of a living process, for as long as the group exists."""

    def __init__(self, pid: int) -> None:
        self._folder: Path | None = None
        self._freezer: Path | None = None
        try:
            lines = Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8").splitlines()
        except OSError:
            return
        for line in lines:
            _, names, path = line.split(":", 2)
            if names == "freezer":
                self._freezer = _MOUNTS / names / path.lstrip("/")
                continue
            if names and "cpuacct" not in names.split(","):
                continue
            for mount in (names, "cpuacct", "unified") if names else ("", "unified"):
                folder = _MOUNTS / mount / path.lstrip("/")
                file_name = "cpuacct.stat" if names else "cpu.stat"
                if self._folder is None and (folder / file_name).exists():
                    self._folder = folder

    def frozen(self) -> bool:
        """Whether the kernel has frozen all of its processes."""
        for folder, file in ((self._freezer, "freezer.state"), (self._folder, "cgroup.events")):
            if folder is not None:
                with contextlib.suppress(OSError):
                    text = (folder / file).read_text(encoding="ascii")
                    return "FROZEN" in text or "frozen 1" in text
        return False

    def processes(self) -> list[int]:
        """Host PIDs of its processes; empty once the group is gone."""
        if self._folder is None:
            return []
        try:
            text = (self._folder / "cgroup.procs").read_text(encoding="ascii")
        except OSError:
            return []
        return [int(number) for number in text.split()]

    def cpu_seconds(self) -> tuple[float, float] | None:
        """User and system seconds since the group was created; ``None`` if gone or not counted."""
        if self._folder is None:
            return None
        for file, user, system, unit in (
            ("cpuacct.stat", "user", "system", float(os.sysconf("SC_CLK_TCK"))),
            ("cpu.stat", "user_usec", "system_usec", 1e6),
        ):
            try:
                text = (self._folder / file).read_text(encoding="ascii")
            except OSError:
                continue
            fields = dict(line.split(None, 1) for line in text.splitlines())
            if user in fields and system in fields:
                return int(fields[user]) / unit, int(fields[system]) / unit
        return None
