"""Limits of CPU and memory by control groups, versions 1 and 2, and what a group has used, also by
processes that were never sampled.

Source: the kernel's documentation, admin-guide/cgroup-v2 and cgroup-v1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

from gpuwatch.core.lazy_dataclass import dataclass

Limit = float | Literal["unlimited"] | None
"""A limit, ``unlimited``, or ``None`` if unknown."""


@dataclass(frozen=True)
class Limits:
    version: str | None
    """``v1``, ``v2``, ``v1+v2`` (hybrid), or ``None`` if the process shows no cgroup."""
    cpus: Limit
    """CPU seconds per second: 1.5 is one and a half cores."""
    memory: Limit
    """Bytes."""


def limits(pid: int | Literal["self"] = "self", root: Path = Path("/")) -> Limits:
    """The tightest limits from the process's own group up to the root group. Never raises."""
    versions: set[str] = set()
    cpus: Limit = None
    memory: Limit = None
    for controllers, mount, path in _groups(pid, root):
        if controllers is None:
            if (mount / "cgroup.controllers").exists():
                versions.add("v2")
                cpus = _tighter(cpus, _tightest(mount, path, _cpu_v2))
                memory = _tighter(memory, _tightest(mount, path, _memory_v2))
            continue
        versions.add("v1")
        if "cpu" in controllers:
            cpus = _tighter(cpus, _tightest(mount, path, _cpu_v1))
        if "memory" in controllers:
            memory = _tighter(memory, _tightest(mount, path, _memory_v1))
    return Limits("+".join(sorted(versions)) or None, cpus, memory)


def _groups(pid: int | str, root: Path) -> Iterator[tuple[list[str] | None, Path, str]]:
    """For each group of a process the controllers (``None``: version 2), a folder where it may be
    mounted, and its path below that; none if the process shows no group."""
    try:
        lines = (root / f"proc/{pid}/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    mounts = root / "sys/fs/cgroup"
    for line in lines:
        _, names, path = line.split(":", 2)
        controllers = names.split(",") if names else None
        places = {names, *names.split(",")} if names else {".", "unified"}
        for place in sorted(places):
            yield controllers, mounts / place, path


def _tightest(mount: Path, path: str, read: Callable[[Path], Limit]) -> Limit:
    """Inside a container the path may lie outside the mount; then the mount itself counts."""
    folder = mount / path.lstrip("/")
    limit: Limit = None
    for group in (folder, *folder.parents):
        if group != mount and mount not in group.parents:
            break
        with suppress(OSError, ValueError):
            limit = _tighter(limit, read(group))
    return limit


def _tighter(one: Limit, other: Limit) -> Limit:
    numbers = [limit for limit in (one, other) if isinstance(limit, float)]
    if numbers:
        return min(numbers)
    return "unlimited" if "unlimited" in (one, other) else None


def _cpu_v2(group: Path) -> Limit:
    try:
        quota, period = (group / "cpu.max").read_text(encoding="ascii").split()
    except FileNotFoundError:
        return "unlimited"
    return "unlimited" if quota == "max" else int(quota) / int(period)


def _memory_v2(group: Path) -> Limit:
    try:
        text = (group / "memory.max").read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return "unlimited"
    return "unlimited" if text == "max" else float(text)


def _cpu_v1(group: Path) -> Limit:
    quota = int((group / "cpu.cfs_quota_us").read_text(encoding="ascii"))
    period = int((group / "cpu.cfs_period_us").read_text(encoding="ascii"))
    return "unlimited" if quota < 0 else quota / period


def _memory_v1(group: Path) -> Limit:
    size = int((group / "memory.limit_in_bytes").read_text(encoding="ascii"))
    return "unlimited" if size >= 1 << 60 else float(size)


class GroupUsage:
    """CPU time and memory of a process's control group, versions 1 and 2.

    Every value is ``None`` once the group is gone, or if the kernel does not account for it.
    """

    def __init__(self, pid: int, root: Path = Path("/")) -> None:
        self._cpu: Path | None = None
        self._memory: Path | None = None
        self._version = 2
        for controllers, mount, path in _groups(pid, root):
            group = mount / path.lstrip("/")
            if controllers is None:
                if self._cpu is None and (group / "cpu.stat").exists():
                    self._cpu = group
                if self._memory is None and (group / "memory.current").exists():
                    self._memory = group
                continue
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
