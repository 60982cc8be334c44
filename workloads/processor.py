"""Properties of a CPU: torch's threads, arithmetic, caches, free memory."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import torch

_FLAGS = ("amx_bf16", "avx512_bf16", "bf16")
"""The kernel's names for a processor's bfloat16 arithmetic (x86 and ARM)."""

CONTROL_GROUPS = Path("/sys/fs/cgroup")


def threads() -> str:
    count = torch.get_num_threads()
    return f"{count} thread" if count == 1 else f"{count} threads"


def arithmetic(name: str) -> str:
    """The arithmetic that a CPU uses for such products, according to torch and the kernel."""
    capability = torch.backends.cpu.get_cpu_capability()
    if name != "bfloat16":
        return capability
    flags = cpuinfo("flags", "Features")
    if flags is None:
        return f"{capability}; whether the processor has bfloat16 arithmetic is not known"
    supported = [flag for flag in _FLAGS if flag in flags.split()]
    if supported:
        return f"{capability}, {' '.join(supported)}"
    return f"{capability}; the processor has no bfloat16 arithmetic: in float32 underneath"


def cpuinfo(*keys: str) -> str | None:
    """What the kernel says of the first processor under one of these keys."""
    with contextlib.suppress(OSError), Path("/proc/cpuinfo").open(encoding="utf-8") as file:
        for line in file:
            key, _, value = line.partition(":")
            if key.strip() in keys:
                return value.strip()
    return None


def largest_cache() -> int:
    """Bytes of the CPU's last-level cache; 0 if unknown."""
    with contextlib.suppress(OSError, ValueError):
        return max(0, os.sysconf("SC_LEVEL3_CACHE_SIZE"))
    return 0


def free_memory(groups: Path = Path("/proc/self/cgroup"), root: Path = CONTROL_GROUPS) -> int:
    """Bytes available without swapping, and no more than this process's control groups may use
    (``memory.max``; in version 1 ``memory.limit_in_bytes``)."""
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")]
    with contextlib.suppress(OSError):
        for line in Path("/proc/meminfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("MemAvailable:"):
                sizes = [int(line.split()[1]) * 1024]
    with contextlib.suppress(OSError):
        for line in groups.read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers in ("", "memory"):
                top = root / controllers
                name = "memory.limit_in_bytes" if controllers else "memory.max"
                own = top / path.lstrip("/")
                for folder in (own, *own.parents[: len(own.parts) - len(top.parts)]):
                    with contextlib.suppress(OSError, ValueError):
                        sizes.append(int((folder / name).read_text()))
    return min(sizes)
