"""The metrics gpuwatch knows: name, unit, kind, meaning.

Names follow OpenTelemetry's ``hw.*`` and ``process.*`` conventions where one exists. Units are SI
base units in UCUM notation: ``1`` is a fraction from 0 to 1, ``By`` bytes, ``s`` seconds, ``W``
watts, ``J`` joules, ``Cel`` degrees Celsius, ``Hz`` hertz, ``FLOP/s``, ``By/s``, ``{sample}/s``,
``{error}`` errors, ``{lane}`` lanes, ``{generation}`` and ``{state}`` the number of one.
"""

from __future__ import annotations

import math
from enum import Enum

from gpuwatch.core.lazy_dataclass import dataclass


class Method(str, Enum):
    """How a number was obtained. Shown as a badge beside every number."""

    MEASURED = "measured"
    """Read from a hardware counter or sensor, or from the kernel's accounting."""
    COUNTED = "counted"
    """Work counted once per step, times the measured step rate."""
    BOUND = "bound"
    """Only a bound follows from the readings."""
    UNAVAILABLE = "unavailable"
    """No honest number; comes with a reason."""


class Kind(str, Enum):
    """What successive values of a metric mean."""

    GAUGE = "gauge"
    """Each value stands for itself."""
    COUNTER = "counter"
    """A running total: only differences mean anything."""


@dataclass(frozen=True)
class Metric:
    name: str
    unit: str
    kind: Kind
    meaning: str
    least: float
    most: float
    """What is below or above cannot be, whatever device gives it."""


_FULL = 1.01
"""Most of a share of time. Counters are not read at one instant, so what is full can read slightly
over 1; :func:`checked` clips that to 1."""
_MOST = {"1": _FULL, "By": 2.0**50, "By/s": 1e13, "Hz": 1e11, "W": 1e4, "J": 1e13, "{error}": 1e9}
"""By unit, far above any device of today, and below what drivers give for "unknown": the largest
numbers of 32 and 64 bits, in their units."""


def _gauge(
    name: str, unit: str, meaning: str, *, least: float = 0.0, most: float | None = None
) -> Metric:
    most = _MOST.get(unit, math.inf) if most is None else most
    return Metric(name, unit, Kind.GAUGE, meaning, least, most)


def _counter(name: str, unit: str, meaning: str) -> Metric:
    return Metric(name, unit, Kind.COUNTER, meaning, 0.0, _MOST.get(unit, math.inf))


_ALL = (
    _gauge("hw.gpu.utilization", "1", "share of time in which at least one kernel ran"),
    _gauge("hw.gpu.memory.usage", "By", "device memory in use, without the driver's reserve"),
    _gauge("hw.gpu.memory.busy", "1", "share of time in which device memory was read or written"),
    _gauge("hw.gpu.memory.bandwidth", "By/s", "bytes moved to and from device memory"),
    _gauge("hw.gpu.dram.activity", "1", "share of the peak DRAM bandwidth that was used"),
    _gauge("hw.gpu.sm.activity", "1", "share of time a multiprocessor had work, mean over all"),
    _gauge("hw.gpu.sm.occupancy", "1", "share of the warps that fit on the GPU that were resident"),
    _gauge("hw.gpu.tensor.activity", "1", "share of cycles in which the tensor pipes were active"),
    _gauge("hw.gpu.fp64.activity", "1", "share of cycles in which the FP64 pipes were active"),
    _gauge("hw.gpu.fp32.activity", "1", "share of cycles in which the FP32 pipes were active"),
    _gauge("hw.gpu.fp16.activity", "1", "share of cycles in which the FP16 pipes were active"),
    _gauge("hw.gpu.power", "W", "board power draw", least=0.001),
    _gauge(
        "hw.gpu.power.average", "W", "board power draw, the driver's own running mean", least=0.001
    ),
    _counter("hw.gpu.energy", "J", "board energy since the driver was loaded"),
    _gauge("hw.gpu.temperature", "Cel", "GPU core temperature", least=-60.0, most=200.0),
    _gauge(
        "hw.gpu.fan.speed_ratio",
        "1",
        "requested speed of the fans, relative to their maximum",
        most=2.0,
    ),
    _gauge("hw.gpu.clock.sm", "Hz", "clock of the streaming multiprocessors"),
    _gauge("hw.gpu.clock.memory", "Hz", "clock of the device memory"),
    _gauge(
        "hw.gpu.performance.state",
        "{state}",
        "performance state, from 0, the fastest, to 15",
        most=15.0,
    ),
    _gauge("hw.gpu.throttle.power", "1", "1 while the clocks are held down by a power limit"),
    _gauge("hw.gpu.throttle.thermal", "1", "1 while the clocks are held down by temperature"),
    _counter("hw.gpu.ecc.corrected", "{error}", "memory errors corrected since driver load"),
    _counter("hw.gpu.ecc.uncorrected", "{error}", "memory errors not corrected since driver load"),
    _gauge("hw.gpu.pcie.transmit", "By/s", "bytes sent by the GPU over PCIe", most=1e12),
    _gauge("hw.gpu.pcie.receive", "By/s", "bytes received by the GPU over PCIe", most=1e12),
    _gauge(
        "hw.gpu.pcie.generation",
        "{generation}",
        "PCIe generation that the link runs at now",
        least=1.0,
        most=15.0,
    ),
    _gauge(
        "hw.gpu.pcie.width",
        "{lane}",
        "PCIe lanes that the link runs with now",
        least=1.0,
        most=32.0,
    ),
    _gauge("hw.gpu.nvlink.transmit", "By/s", "bytes sent by the GPU over all its NVLinks"),
    _gauge("hw.gpu.nvlink.receive", "By/s", "bytes received by the GPU over all its NVLinks"),
    _gauge("hw.gpu.encoder.utilization", "1", "share of time in which video was encoded"),
    _gauge("hw.gpu.decoder.utilization", "1", "share of time in which video was decoded"),
    _gauge("hw.cpu.utilization", "1", "share of all cores' time that was not idle"),
    _gauge("hw.cpu.frequency", "Hz", "mean current frequency of the cores"),
    _gauge("hw.cpu.power", "W", "power of the CPU packages"),
    _gauge("hw.memory.usage", "By", "host memory in use (total less available)"),
    _gauge("system.paging.usage", "By", "swap in use"),
    _gauge("system.cpu.load_average.1m", "{thread}", "tasks that run or wait, mean of a minute"),
    _counter("process.cpu.time", "s", "CPU time of the workload's process tree, user and system"),
    _gauge("process.memory.usage", "By", "resident memory of the workload's process tree"),
    _counter("process.io.read", "By", "bytes the workload's process tree read from storage"),
    _counter("process.io.write", "By", "bytes the workload's process tree wrote to storage"),
    _counter("container.cpu.time", "s", "CPU time of the container's control group"),
    _gauge(
        "container.memory.usage",
        "By",
        "memory of the container's control group, without file pages the kernel may drop",
    ),
    _gauge("process.gpu.memory.usage", "By", "device memory held by the workload's process tree"),
    _gauge(
        "process.gpu.utilization", "1", "share of time in which the workload's kernels ran, by GPU"
    ),
    _gauge("gpuwatch.flop.rate", "FLOP/s", "model FLOP per step times the step rate"),
    _gauge("gpuwatch.bytes.rate", "By/s", "algorithmic bytes per step times the step rate"),
    _gauge("gpuwatch.throughput", "{sample}/s", "samples per second over the steps"),
)

CATALOGUE: dict[str, Metric] = {metric.name: metric for metric in _ALL}
"""Every metric by name, in display order."""

IMPOSSIBLE = "which is impossible"
"""How the reason for a value that cannot be ends."""


def checked(name: str, value: float) -> tuple[float | None, str | None]:
    """A device's value of a metric, in the metric's unit; or ``None``, and the reason with the
    value that was given."""
    metric = CATALOGUE[name]
    # A difference divided by a clock that ran backwards is -0.0.
    below = value < metric.least or (metric.least == 0 and math.copysign(1.0, value) < 0)
    if below or not value <= metric.most:  # "not": not a number is neither
        number, unit = (value * 100, "%") if metric.unit == "1" else (value, metric.unit)
        return None, f"the driver gave {number:,.10g} {unit.strip('{}')}, {IMPOSSIBLE}"
    return (min(value, 1.0) if metric.most == _FULL else value), None


_WORDS = {
    word: word.upper() for word in ("cpu", "dram", "ecc", "fp16", "fp32", "fp64", "gpu", "sm")
}
_WORDS |= {"io": "I/O", "nvlink": "NVLink", "pcie": "PCIe", "speed_ratio": "speed"}
_LABELS = {
    "hw.gpu.clock.sm": "SM clock",
    "hw.gpu.clock.memory": "memory clock",
    "hw.gpu.throttle.power": "clocks held down by power",
    "hw.gpu.throttle.thermal": "clocks held down by temperature",
    "hw.cpu.frequency": "CPU clock",
    "hw.memory.usage": "host memory usage",
    "system.paging.usage": "swap usage",
    "system.cpu.load_average.1m": "load average",
    "gpuwatch.bytes.rate": "algorithmic bytes/s",
    "gpuwatch.flop.rate": "model FLOP/s",
    "gpuwatch.throughput": "throughput",
}


def label(name: str) -> str:
    """A metric's name for people: ``GPU memory usage`` for ``hw.gpu.memory.usage``."""
    words = name.removeprefix("hw.").split(".")
    return _LABELS.get(name) or " ".join(_WORDS.get(word, word) for word in words)


_RATES = {"J": "power by {}", "s": "{}, cores"}
"""Names of the rates of counters, by unit: a joule a second is a watt."""


def reading_of(name: str) -> tuple[str, str]:
    """Name for people and unit of a metric's reading: of a counter it is the rate."""
    metric, text = CATALOGUE.get(name), label(name)
    if metric is None or metric.kind is not Kind.COUNTER:
        return text, metric.unit if metric else ""
    return _RATES.get(metric.unit, "{}/s").format(text), f"{metric.unit}/s"


DERIVED = ("gpuwatch.flop.rate", "gpuwatch.bytes.rate", "gpuwatch.throughput")
"""Metrics that readers compute from recorded steps; never sampled."""
