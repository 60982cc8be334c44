"""Memory that runs out: of a GPU, of the host, of the container."""

from __future__ import annotations

from collections.abc import Container, Sequence

from gpuwatch.core.units import binary, percent
from gpuwatch.tui.feed.hardware.device_facts import memory_total, number_of
from gpuwatch.tui.feed.snapshot import Alert, DeviceNow

_PART = 0.05
"""Less than this part free is little."""
_GPU_BYTES = 512 * 1024**2
"""So is less than this much of a GPU's memory."""


def low_memory(
    devices: Sequence[DeviceNow], gpus: Container[str] | None, limit: float | None
) -> list[Alert]:
    """A sentence for each memory of which little is left now.

    ``gpus``: those of the run; ``None``: all. ``limit``: the container's, in bytes.
    """
    told = []
    for device in devices:
        kind = device.row.kind
        if kind == "gpu" and (gpus is None or device.row.id in gpus):
            left = _left(device, "hw.gpu.memory.usage", memory_total(device))
            total = memory_total(device) or 0.0
            if left is not None and left < max(_PART * total, _GPU_BYTES):
                text = f"GPU {number_of(device)}: {binary(left)} of {binary(total)} memory is free"
                told.append(Alert("memory", device.row.id, text))
        elif kind == "cpu":
            left = _left(device, "hw.memory.usage", memory_total(device))
            total = memory_total(device) or 0.0
            if left is not None and left < _PART * total:
                text = f"host: {binary(left)} of {binary(total)} memory is available"
                told.insert(0, Alert("memory", device.row.id, text))
        elif kind == "workload":
            left = _left(device, "container.memory.usage", limit)
            if left is not None and limit is not None and left < _PART * limit:
                part = percent((limit - left) / limit)
                text = f"the container holds {part} of its memory limit, {binary(limit)}"
                told.append(Alert("memory", device.row.id, text))
    return told


def _left(device: DeviceNow, metric: str, total: float | None) -> float | None:
    used = device.value(metric)
    return None if used is None or not total else max(0.0, total - used)
