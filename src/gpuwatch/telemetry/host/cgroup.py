"""CPU and memory limits from control groups, versions 1 and 2.

Source: the kernel's documentation, admin-guide/cgroup-v2 and cgroup-v1.
"""

from __future__ import annotations

from collections.abc import Callable
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
    try:
        lines = (root / f"proc/{pid}/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return Limits(None, None, None)
    mounts = root / "sys/fs/cgroup"
    versions: set[str] = set()
    cpus: Limit = None
    memory: Limit = None
    for line in lines:
        _, names, path = line.split(":", 2)
        controllers = names.split(",")
        if not names:
            for mount in (mounts, mounts / "unified"):
                if (mount / "cgroup.controllers").exists():
                    versions.add("v2")
                    cpus = _tighter(cpus, _tightest(mount, path, _cpu_v2))
                    memory = _tighter(memory, _tightest(mount, path, _memory_v2))
            continue
        versions.add("v1")
        for mount in {mounts / names, *(mounts / name for name in controllers)}:
            if "cpu" in controllers:
                cpus = _tighter(cpus, _tightest(mount, path, _cpu_v1))
            if "memory" in controllers:
                memory = _tighter(memory, _tightest(mount, path, _memory_v1))
    return Limits("+".join(sorted(versions)) or None, cpus, memory)


def _tightest(mount: Path, path: str, read: Callable[[Path], Limit]) -> Limit:
    """Inside a container the path may lie outside the mount; then the mount itself counts."""
    folder = mount / path.lstrip("/")
    limit: Limit = None
    for group in (folder, *folder.parents):
        if group != mount and mount not in group.parents:
            break
        try:
            limit = _tighter(limit, read(group))
        except (OSError, ValueError):
            continue
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
