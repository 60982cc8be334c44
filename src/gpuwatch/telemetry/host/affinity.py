"""Which processors and memory nodes a process may use, and which ones exist.

Lists are in the kernel's format, such as ``0-3,8``. Sources: proc(5), ``Cpus_allowed_list``,
``Mems_allowed_list`` and ``numa_maps``. Both allowed lists may name more than the machine has.
"""

from __future__ import annotations

import re
from pathlib import Path

from gpuwatch.core.processes import read_text

_HERE = Path("/")


def cpus(pid: int, root: Path = _HERE) -> str | None:
    """Allowed processors by affinity and control groups; ``None`` if unknown."""
    return _of(_listed(pid, "Cpus_allowed_list", root), every_cpu(root))


def memory_nodes(pid: int, root: Path = _HERE) -> str | None:
    """Allowed nodes by control groups and by a policy that binds all memory, such as ``numactl
    --membind``; ``None`` if unknown."""
    return _of(_bound(pid, root) or _listed(pid, "Mems_allowed_list", root), every_node(root))


def every_cpu(root: Path = _HERE) -> str | None:
    """Online processors; ``None`` if unknown."""
    return read_text(root / "sys/devices/system/cpu/online")


def every_node(root: Path = _HERE) -> str | None:
    """Nodes with memory; ``None`` if unknown."""
    return read_text(root / "sys/devices/system/node/has_memory")


def _of(allowed: str | None, present: str | None) -> str | None:
    if not allowed or not present:
        return allowed
    return _text(_numbers(allowed) & _numbers(present))


def _listed(pid: int, key: str, root: Path) -> str | None:
    status = read_text(root / f"proc/{pid}/status") or ""
    match = re.search(rf"^{key}:\s*(\S+)$", status, re.MULTILINE)
    return match[1] if match else None


def _bound(pid: int, root: Path) -> str | None:
    try:
        with (root / f"proc/{pid}/numa_maps").open(encoding="utf-8", errors="replace") as maps:
            policy = maps.readline().split()[1:2]
    except OSError:  # a kernel without NUMA, or another user's process
        return None
    match = re.fullmatch(r"bind(?:=[a-z|]+)?:([\d,-]+)", policy[0]) if policy else None
    return match[1] if match else None


def _numbers(text: str) -> set[int]:
    ends = [[int(end) for end in part.split("-")] for part in text.split(",")]
    return {number for bounds in ends for number in range(bounds[0], bounds[-1] + 1)}


def _text(numbers: set[int]) -> str:
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(f"{low}" if low == high else f"{low}-{high}" for low, high in parts)
