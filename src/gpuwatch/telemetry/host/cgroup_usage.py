"""Usage of a control group so far, including processes that were never sampled.

Source: the kernel's documentation, admin-guide/cgroup-v2 (cpu.stat, memory.current) and cgroup-v1
(cpuacct.usage, memory.usage_in_bytes).
"""

from __future__ import annotations

from pathlib import Path


class GroupUsage:
    """CPU time and memory of a process's control group, versions 1 and 2.

    Every value is ``None`` once the group is gone, or if the kernel does not account for it.
    """

    def __init__(self, pid: int, root: Path = Path("/")) -> None:
        self._cpu: Path | None = None
        self._memory: Path | None = None
        self._version = 2
        mounts = root / "sys/fs/cgroup"
        try:
            lines = (root / f"proc/{pid}/cgroup").read_text(encoding="utf-8").splitlines()
        except OSError:
            return
        for line in lines:
            _, names, path = line.split(":", 2)
            controllers = names.split(",")
            if not names:
                self._unified(mounts, path)
                continue
            for mount in (mounts / names, *(mounts / name for name in controllers)):
                group = mount / path.lstrip("/")
                if "cpuacct" in controllers and (group / "cpuacct.usage").exists():
                    self._cpu, self._version = group, 1
                if "memory" in controllers and (group / "memory.usage_in_bytes").exists():
                    self._memory, self._version = group, 1

    @property
    def sources(self) -> tuple[str, str]:
        """The files behind CPU time and memory, for display."""
        if self._version == 1:
            return (
                "cgroup v1 cpuacct.usage",
                "cgroup v1 memory.usage_in_bytes less total_inactive_file",
            )
        return "cgroup v2 cpu.stat usage_usec", "cgroup v2 memory.current less inactive_file"

    def cpu_s(self) -> float | None:
        """Seconds of CPU time, user and system, since the group was created."""
        if self._cpu is None:
            return None
        if self._version == 1:
            used = _number(self._cpu / "cpuacct.usage")
            return None if used is None else used / 1e9
        micros = _fields(self._cpu / "cpu.stat").get("usage_usec")
        return None if micros is None else micros / 1e6

    def memory(self) -> int | None:
        """Bytes in use, without file pages that the kernel can drop at once."""
        if self._memory is None:
            return None
        fields = _fields(self._memory / "memory.stat")
        if self._version == 1:
            used = _number(self._memory / "memory.usage_in_bytes")
            droppable = fields.get("total_inactive_file")
        else:
            used = _number(self._memory / "memory.current")
            droppable = fields.get("inactive_file")
        if used is None or droppable is None:
            return None
        return max(0, used - droppable)

    def _unified(self, mounts: Path, path: str) -> None:
        for mount in (mounts, mounts / "unified"):
            group = mount / path.lstrip("/")
            if self._cpu is None and (group / "cpu.stat").exists():
                self._cpu = group
            if self._memory is None and (group / "memory.current").exists():
                self._memory = group


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _fields(path: Path) -> dict[str, int]:
    try:
        pairs = (line.split() for line in path.read_text(encoding="ascii").splitlines())
        return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2}
    except (OSError, ValueError):
        return {}
