"""Constant attributes of a device: number, name, memory and others."""

from __future__ import annotations

from gpuwatch.core import models
from gpuwatch.core.text import clean
from gpuwatch.tui.feed.snapshot import DeviceNow

_TOTAL, _CORES = "memory.total", "core.logical.count"


def number_of(device: DeviceNow) -> str:
    """``0`` of ``gpu0``."""
    return device.row.id.removeprefix("gpu")


def name_of(device: DeviceNow | None) -> str:
    """``GPU 0  NVIDIA H100``, ``CPU  AMD EPYC, 16 cores``."""
    if device is None:
        return "no device recorded"
    name = clean(device.row.name)
    if device.row.kind == "cpu":
        cores = attribute(device, _CORES)
        return f"CPU  {name}" + (f", {cores:.0f} cores" if cores else "")
    return f"GPU {number_of(device)}  {name}"


def memory_total(device: DeviceNow) -> float | None:
    """Size of the device's memory in bytes."""
    return attribute(device, _TOTAL)


def attribute(device: DeviceNow, name: str) -> float | None:
    """A constant positive number in its base unit; ``None``: not recorded."""
    value = models.number(device.row.attributes.get(name))
    return float(value) if value is not None and value > 0 else None
