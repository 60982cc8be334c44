"""Constant attributes of a device: number, name, memory and others."""

from __future__ import annotations

from collections.abc import Callable

from gpuwatch.core import models
from gpuwatch.core.text import clean
from gpuwatch.core.units import number, percent, si
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


def power_text(gpu: DeviceNow) -> str:
    """``531/700 W``: board power, and its limit where that is known."""
    limit, power = attribute(gpu, "power.limit"), gpu.value("hw.gpu.power")
    return number(power, "W") if limit is None or power is None else f"{power:.0f}/{limit:.0f} W"


_MORE: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("SM clock", "hw.gpu.clock.sm", lambda hertz: si(hertz, "Hz")),
    ("memory clock", "hw.gpu.clock.memory", lambda hertz: si(hertz, "Hz")),
    ("fan", "hw.gpu.fan.speed_ratio", percent),
    ("PCIe ↑", "hw.gpu.pcie.transmit", lambda rate: si(rate, "B/s")),
    ("PCIe ↓", "hw.gpu.pcie.receive", lambda rate: si(rate, "B/s")),
    ("PCIe gen", "hw.gpu.pcie.generation", lambda generation: f"{generation:.0f}"),
    ("lanes", "hw.gpu.pcie.width", lambda lanes: f"{lanes:.0f}"),
    ("encoder", "hw.gpu.encoder.utilization", percent),
    ("decoder", "hw.gpu.decoder.utilization", percent),
    ("state", "hw.gpu.performance.state", lambda state: f"P{state:.0f}"),
)
"""Name, metric and form of what stands behind the main values where there is room."""


def more_values(gpu: DeviceNow) -> list[tuple[str, str]]:
    """Names and values of what else the GPU tells; what it does not is left out."""
    return [
        (name, form(value))
        for name, metric, form in _MORE
        if (value := gpu.value(metric)) is not None
    ]
