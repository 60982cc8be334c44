"""GPUs that share the host's memory (Jetson, GB10): their memory is the host's, and no PCIe link
leads to them, whatever NVML says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpuwatch.core.metrics import CATALOGUE
from gpuwatch.core.peak_tables import UNIFIED
from gpuwatch.core.processes import read_text
from gpuwatch.telemetry.nvml.errors import NOT_FOUND
from gpuwatch.telemetry.nvml.fields import Fact, Numbers, NvmlCall

MEMINFO = Path("/proc/meminfo")
NO_LINK = "this GPU shares the host's memory: no PCIe link leads to it"
LINK = tuple(name for name in CATALOGUE if name.startswith("hw.gpu.pcie."))
"""Metrics of a PCIe link."""


def is_unified(attributes: Mapping[str, Any]) -> bool:
    """Whether a GPU with these attributes shares the host's memory."""
    return str(attributes.get("compute.capability")) in UNIFIED


def with_host_total(facts: Mapping[str, Fact]) -> dict[str, Fact]:
    """``facts`` of a GPU, whose memory is that of the host where it shares that."""
    total = _meminfo().get("MemTotal")
    return {**facts, "memory.total": total} if is_unified(facts) else dict(facts)


def _used(nvml: Any, handle: Any) -> Numbers:
    memory = _meminfo()
    if not {"MemTotal", "MemAvailable"} <= memory.keys():
        raise nvml.NVMLError(NOT_FOUND)
    return (memory["MemTotal"] - memory["MemAvailable"],)


def _meminfo() -> dict[str, int]:
    """The fields of ``/proc/meminfo`` in bytes; empty if it cannot be read."""
    lines = (read_text(MEMINFO) or "").splitlines()
    pairs = (line.split()[:2] for line in lines if line.endswith(" kB"))
    return {name.rstrip(":"): int(kib) * 1024 for name, kib in pairs}


HOST_MEMORY = NvmlCall(
    "/proc/meminfo MemTotal - MemAvailable (this GPU shares the host's memory)", _used
)
