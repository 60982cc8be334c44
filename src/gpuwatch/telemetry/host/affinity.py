"""Which processors and memory nodes a process may use, of those that are there.

Texts in the kernel's list format, such as ``0-3,8``. Sources: proc(5), ``Cpus_allowed_list``,
``Mems_allowed_list`` and ``numa_maps``; both lists may name what the machine has no place for.
"""

from __future__ import annotations

import re
from pathlib import Path

from gpuwatch.telemetry.host.cpu import read_text

_HERE = Path("/")


def cpus(pid: int, root: Path = _HERE) -> str | None:
    """By the affinity and the control groups; ``None``: not known."""
    return _of(_listed(pid, "Cpus_allowed_list", root), every_cpu(root))


def memory_nodes(pid: int, root: Path = _HERE) -> str | None:
    """By the control groups, and by a policy that binds all of its memory, as ``numactl --membind``
    sets; ``None``: not known."""
    return _of(_bound(pid, root) or _listed(pid, "Mems_allowed_list", root), every_node(root))


def every_cpu(root: Path = _HERE) -> str | None:
    """Those that are online; ``None``: not known."""
    return read_text(root / "sys/devices/system/cpu/online")


def every_node(root: Path = _HERE) -> str | None:
    """The nodes with memory; ``None``: not known."""
    return read_text(root / "sys/devices/system/node/has_memory")


def _of(allowed: str | None, there: str | None) -> str | None:
    if not allowed or not there:
        return allowed
    return _text(_numbers(allowed) & _numbers(there))


def _listed(pid: int, key: str, root: Path) -> str | None:
    status = read_text(root / f"proc/{pid}/status") or ""
    found = re.search(rf"^{key}:\s*(\S+)$", status, re.MULTILINE)
    return found[1] if found else None


def _bound(pid: int, root: Path) -> str | None:
    try:
        with (root / f"proc/{pid}/numa_maps").open(encoding="utf-8", errors="replace") as maps:
            policy = maps.readline().split()[1:2]
    except OSError:  # a kernel without NUMA, or another user's process
        return None
    found = re.fullmatch(r"bind(?:=[a-z|]+)?:([\d,-]+)", policy[0]) if policy else None
    return found[1] if found else None


def _numbers(text: str) -> set[int]:
    ends = [[int(end) for end in part.split("-")] for part in text.split(",")]
    return {number for each in ends for number in range(each[0], each[-1] + 1)}


def _text(numbers: set[int]) -> str:
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(f"{low}" if low == high else f"{low}-{high}" for low, high in parts)
