"""The metrics gpuwatch knows: name, unit, kind, limits.

Names follow OpenTelemetry's ``hw.*`` and ``process.*`` conventions where one exists. Units are SI
base units in UCUM notation: ``1`` is a fraction from 0 to 1 (of utilization and activity: of the
time), ``By`` bytes, ``s`` seconds, ``W`` watts, ``J`` joules, ``Cel`` degrees Celsius, ``Hz``
hertz, ``FLOP/s``, ``By/s``, ``{sample}/s``, ``{error}`` errors, ``{lane}`` lanes,
``{generation}`` and ``{state}`` the number of one.
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
    least: float
    most: float
    """What is below or above cannot be, whatever device gives it."""


_FULL = 1.01
"""Most of a share of time. Counters are not read at one instant, so what is full can read slightly
over 1; :func:`checked` clips that to 1."""
_MOST = {"1": _FULL, "By": 2.0**50, "By/s": 1e13, "Hz": 1e11, "W": 1e4, "J": 1e13, "{error}": 1e9}
"""By unit, far above any device of today, and below what drivers give for "unknown": the largest
numbers of 32 and 64 bits, in their units."""


def _gauge(name: str, unit: str, *, least: float = 0.0, most: float | None = None) -> Metric:
    most = _MOST.get(unit, math.inf) if most is None else most
    return Metric(name, unit, Kind.GAUGE, least, most)


def _counter(name: str, unit: str) -> Metric:
    return Metric(name, unit, Kind.COUNTER, 0.0, _MOST.get(unit, math.inf))


_ALL = (
    _gauge("hw.gpu.utilization", "1"),
    _gauge("hw.gpu.memory.usage", "By"),  # without the driver's reserve
    _gauge("hw.gpu.memory.busy", "1"),
    _gauge("hw.gpu.memory.bandwidth", "By/s"),
    _gauge("hw.gpu.dram.activity", "1"),  # share of the peak bandwidth
    _gauge("hw.gpu.sm.activity", "1"),  # mean over all
    _gauge("hw.gpu.sm.occupancy", "1"),  # share of the warps that fit on the GPU
    _gauge("hw.gpu.tensor.activity", "1"),
    _gauge("hw.gpu.fp64.activity", "1"),
    _gauge("hw.gpu.fp32.activity", "1"),
    _gauge("hw.gpu.fp16.activity", "1"),
    _gauge("hw.gpu.power", "W", least=0.001),  # of the board
    _gauge("hw.gpu.power.average", "W", least=0.001),  # the driver's own running mean
    _counter("hw.gpu.energy", "J"),  # since the driver was loaded
    _gauge("hw.gpu.temperature", "Cel", least=-60.0, most=200.0),
    _gauge("hw.gpu.fan.speed_ratio", "1", most=2.0),  # requested, of the maximum
    _gauge("hw.gpu.clock.sm", "Hz"),
    _gauge("hw.gpu.clock.memory", "Hz"),
    _gauge("hw.gpu.performance.state", "{state}", most=15.0),  # from 0, the fastest
    _gauge("hw.gpu.throttle.power", "1"),  # 1 while the clocks are held down
    _gauge("hw.gpu.throttle.thermal", "1"),  # the same
    _counter("hw.gpu.ecc.corrected", "{error}"),  # since the driver was loaded
    _counter("hw.gpu.ecc.uncorrected", "{error}"),  # the same
    _gauge("hw.gpu.pcie.transmit", "By/s", most=1e12),
    _gauge("hw.gpu.pcie.receive", "By/s", most=1e12),
    _gauge("hw.gpu.pcie.generation", "{generation}", least=1.0, most=15.0),
    _gauge("hw.gpu.pcie.width", "{lane}", least=1.0, most=32.0),
    _gauge("hw.gpu.nvlink.transmit", "By/s"),  # over all links
    _gauge("hw.gpu.nvlink.receive", "By/s"),  # the same
    _gauge("hw.gpu.encoder.utilization", "1"),
    _gauge("hw.gpu.decoder.utilization", "1"),
    _gauge("hw.cpu.utilization", "1"),  # all that is not idle
    _gauge("hw.cpu.frequency", "Hz"),  # mean over the cores
    _gauge("hw.cpu.power", "W"),  # of the packages
    _gauge("hw.memory.usage", "By"),  # total less available
    _gauge("system.paging.usage", "By"),  # swap
    _gauge("system.cpu.load_average.1m", "{thread}"),
    _counter("process.cpu.time", "s"),  # user and system, of the whole tree, as all of process.*
    _counter("process.cpu.wait", "s"),  # threads that were ready and had no core, summed
    _gauge("process.memory.usage", "By"),
    _counter("process.io.read", "By"),  # from storage
    _counter("process.io.write", "By"),  # to storage
    _counter("container.cpu.time", "s"),
    _gauge("container.memory.usage", "By"),  # without file pages that the kernel may drop
    _gauge("process.gpu.memory.usage", "By"),
    _gauge("process.gpu.utilization", "1"),
    _gauge("gpuwatch.flop.rate", "FLOP/s"),
    _gauge("gpuwatch.bytes.rate", "By/s"),
    _gauge("gpuwatch.throughput", "{sample}/s"),
)

CATALOGUE: dict[str, Metric] = {metric.name: metric for metric in _ALL}
"""Every metric by name, in display order."""

THROTTLES = ("hw.gpu.throttle.power", "hw.gpu.throttle.thermal")
"""Metrics of clocks that are held down."""
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
