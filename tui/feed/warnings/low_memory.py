"""Warnings of low memory: of a GPU, the host or the container."""

from __future__ import annotations

from collections.abc import Container, Sequence

from gpuwatch.core.units import binary, percent
from gpuwatch.tui.feed.hardware.device_facts import memory_total, number_of
from gpuwatch.tui.feed.snapshot import Alert, DeviceNow

_MIN_FREE_SHARE = 0.05
"""Share of a memory below which it is low."""
_MIN_FREE_GPU_BYTES = 512 * 1024**2
"""Bytes of GPU memory below which it is low."""


def low_memory(
    devices: Sequence[DeviceNow], gpus: Container[str] | None, limit: float | None
) -> list[Alert]:
    """A warning for each memory that is nearly full now.

    ``gpus``: ids of the run's GPUs; ``None``: all. ``limit``: of the container's memory, in bytes.
    """
    alerts = []
    for device in devices:
        kind = device.row.kind
        if kind == "gpu" and (gpus is None or device.row.id in gpus):
            free = _free(device, "hw.gpu.memory.usage", memory_total(device))
            total = memory_total(device) or 0.0
            if free is not None and free < max(_MIN_FREE_SHARE * total, _MIN_FREE_GPU_BYTES):
                text = f"GPU {number_of(device)}: {binary(free)} of {binary(total)} memory is free"
                alerts.append(Alert("memory", device.row.id, text))
        elif kind == "cpu":
            free = _free(device, "hw.memory.usage", memory_total(device))
            total = memory_total(device) or 0.0
            if free is not None and free < _MIN_FREE_SHARE * total:
                text = f"host: {binary(free)} of {binary(total)} memory is available"
                alerts.insert(0, Alert("memory", device.row.id, text))
        elif kind == "workload":
            free = _free(device, "container.memory.usage", limit)
            if free is not None and limit is not None and free < _MIN_FREE_SHARE * limit:
                share = percent((limit - free) / limit)
                text = f"the container uses {share} of its memory limit, {binary(limit)}"
                alerts.append(Alert("memory", device.row.id, text))
    return alerts


def _free(device: DeviceNow, metric: str, total: float | None) -> float | None:
    used = device.value(metric)
    return None if used is None or not total else max(0.0, total - used)
