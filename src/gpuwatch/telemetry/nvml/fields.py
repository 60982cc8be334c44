"""Which NVML calls provide which metric, in which unit, best first.

Every function here takes the :class:`Binding` and a device handle, and raises ``NVMLError``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import checked
from gpuwatch.telemetry.base import Value

Numbers = tuple[float | int, ...]
Watch = Callable[[Sequence[Value], float], list[tuple[str, str]]]
"""Maps a reading's values and their time (monotonic seconds) to events as (kind, text)."""
Fact = str | int | float | bool | None
FRESH_S = 3.0
"""Maximum age, in seconds, of a value that is read once a second; also the silence after which a
hanging call is reported."""


@dataclass(frozen=True)
class NvmlCall:
    """One call that returns the values of a reading, in the metrics' units."""

    source: str
    read: Callable[[Any, Any], Numbers]
    gives_way: bool = False
    """Whether the next call takes over after any failure, until the GPU is opened again."""


@dataclass(frozen=True)
class Reading:
    """Metrics that come from one call, with the alternative calls, best first."""

    metrics: tuple[str, ...]
    ways: tuple[NvmlCall, ...]
    of_a_part: bool = False
    """Whether a MIG device has a value of its own; otherwise the value is the whole GPU's."""
    slow: bool = False
    """Whether it is read between the samples, once a second, instead of at every sample."""
    every_s: float = 1.0
    """Seconds between two reads of a reading that is slow, or rarer than every sample."""
    watch: Callable[[], Watch] | None = None
    """Creates the per-GPU check that turns values into events."""


def number_of(value: Any, kind: int) -> float | int:
    """The number in an ``nvmlValue_t`` whose ``nvmlValueType_t`` is ``kind``; NaN for a kind that
    does not exist."""
    if not 0 <= kind < len(_MEMBERS):
        return math.nan
    number: float | int = getattr(value, _MEMBERS[kind])
    return number


def _utilization(nvml: Any, handle: Any) -> Numbers:
    rates = nvml.nvmlDeviceGetUtilizationRates(handle)
    return rates.gpu / 100, rates.memory / 100


def _memory_v2(nvml: Any, handle: Any) -> Numbers:
    return (int(nvml.nvmlDeviceGetMemoryInfo(handle, nvml.nvmlMemory_v2).used),)


def _memory_v1(nvml: Any, handle: Any) -> Numbers:
    return (int(nvml.nvmlDeviceGetMemoryInfo(handle).used),)


def field_way(source: str, number: int, per_unit: float) -> NvmlCall:
    """A call that reads one NVML field; ``per_unit`` of its units are one of the metric's."""

    def read(nvml: Any, handle: Any) -> Numbers:
        answer = nvml.nvmlDeviceGetFieldValues(handle, [number])[0]
        if answer.nvmlReturn:
            raise nvml.NVMLError(answer.nvmlReturn)
        return (number_of(answer.value, answer.valueType) / per_unit,)

    return NvmlCall(source, read)


def _call_way(
    call: str, *arguments: int, per_unit: int = 1, times: int = 1, told: str = ""
) -> NvmlCall:
    """A call that returns one number; ``per_unit`` of its units are one of the metric's, or one of
    them is ``times`` the metric's."""

    def read(nvml: Any, handle: Any) -> Numbers:
        value = getattr(nvml, call)(handle, *arguments)
        return (value * times if per_unit == 1 else value / per_unit,)

    return NvmlCall(f"NVML {call}{told}", read)


def _video(engine: str) -> NvmlCall:
    call = f"nvmlDeviceGet{engine}Utilization"
    return NvmlCall(f"NVML {call}", lambda nvml, handle: (getattr(nvml, call)(handle)[0] / 100,))


_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""Members of ``nvmlValue_t`` in the order of ``nvmlValueType_t``."""
_SM, _MEMORY = 1, 2
"""``nvmlClockType_t``."""

STEADY_S = 2.0
"""Read interval, in seconds, of slowly changing values (temperature and fans; the performance
state, and the memory clock and the PCIe link, which follow it), of the video engines, and of PCIe
traffic, whose calls block for 20 ms each."""


def _steady(metric: str, *ways: NvmlCall) -> Reading:
    return Reading((metric,), ways, slow=True, every_s=STEADY_S)


ENERGY_S = 1.25
"""The energy counter is read with a sample, which thereby is the moment of the value, and not with
every one: a call takes 3 ms. With the default interval it is every second sample."""

READINGS = (
    Reading(
        ("hw.gpu.utilization", "hw.gpu.memory.busy"),
        (NvmlCall("NVML nvmlDeviceGetUtilizationRates", _utilization),),
    ),
    Reading(
        ("hw.gpu.memory.usage",),
        (
            NvmlCall("NVML nvmlDeviceGetMemoryInfo_v2", _memory_v2),
            NvmlCall(
                "NVML nvmlDeviceGetMemoryInfo (v1: the driver's reserve included)", _memory_v1
            ),
        ),
        of_a_part=True,
    ),
    Reading(
        ("hw.gpu.power",),
        (
            field_way("NVML field 186 (instant power)", 186, 1000),
            _call_way(
                "nvmlDeviceGetPowerUsage",
                per_unit=1000,
                told=" (1 s average on Ampere and later except GA100)",
            ),
            field_way("NVML field 185 (average power)", 185, 1000),
        ),
    ),
    Reading(
        ("hw.gpu.clock.sm",),
        (_call_way("nvmlDeviceGetClockInfo", _SM, times=1_000_000, told=" SM"),),
    ),
    _steady(
        "hw.gpu.clock.memory",
        _call_way("nvmlDeviceGetClockInfo", _MEMORY, times=1_000_000, told=" MEM"),
    ),
    _steady(
        "hw.gpu.temperature",
        _call_way("nvmlDeviceGetTemperature", 0),
        _call_way("nvmlDeviceGetTemperatureV", 0),
    ),
    Reading(
        ("hw.gpu.energy",),
        (
            field_way("NVML field 83 (total energy)", 83, 1000),
            _call_way("nvmlDeviceGetTotalEnergyConsumption", per_unit=1000),
        ),
        every_s=ENERGY_S,
    ),
    _steady(
        "hw.gpu.pcie.transmit",
        _call_way("nvmlDeviceGetPcieThroughput", 0, times=1000, told=" TX (20 ms window)"),
    ),
    _steady(
        "hw.gpu.pcie.receive",
        _call_way("nvmlDeviceGetPcieThroughput", 1, times=1000, told=" RX (20 ms window)"),
    ),
    _steady(
        "hw.gpu.fan.speed_ratio",
        _call_way("nvmlDeviceGetFanSpeed", per_unit=100, told=" (the speed asked for)"),
    ),
    _steady("hw.gpu.performance.state", _call_way("nvmlDeviceGetPerformanceState")),
    _steady("hw.gpu.pcie.generation", _call_way("nvmlDeviceGetCurrPcieLinkGeneration")),
    _steady("hw.gpu.pcie.width", _call_way("nvmlDeviceGetCurrPcieLinkWidth")),
    _steady("hw.gpu.encoder.utilization", _video("Encoder")),
    _steady("hw.gpu.decoder.utilization", _video("Decoder")),
)


ENERGY_RARELY_S = 10.0
"""Seconds between two reads of the energy counter, whose call takes milliseconds of processor time,
where that is to be spared."""


def changed(readings: Iterable[Reading], metric: str, **fields: Any) -> tuple[Reading, ...]:
    """``readings``, with other ``fields`` of the one of ``metric``."""
    return tuple(replace(r, **fields) if r.metrics == (metric,) else r for r in readings)


def _cuda_version(nvml: Any, handle: Any) -> Fact:
    version = nvml.nvmlSystemGetCudaDriverVersion()
    possible = 1000 <= version < 100_000
    return f"{version // 1000}.{version % 1000 // 10}" if possible else None


def _is_on(mode: int) -> Fact:
    """``nvmlEnableState_t``."""
    return {0: False, 1: True}.get(mode)


def _max_clock(kind: int) -> Callable[[Any, Any], Fact]:
    return lambda nvml, handle: int(nvml.nvmlDeviceGetMaxClockInfo(handle, kind)) * 1_000_000


_SLOWDOWN, _GPU_MAX = 1, 3
"""Of ``nvmlTemperatureThresholds_t``."""


def _threshold(which: int) -> Callable[[Any, Any], Fact]:
    return lambda nvml, handle: int(nvml.nvmlDeviceGetTemperatureThreshold(handle, which))


_XID = 8
"""``nvmlEventTypeXidCriticalError``."""


def _capability(nvml: Any, handle: Any) -> Fact:
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    return f"{major}.{minor}" if 1 <= major < 100 and 0 <= minor < 100 else None


def _compute_mode(nvml: Any, handle: Any) -> Fact:
    """``nvmlComputeMode_t``: who may have a context on the GPU."""
    modes = {0: "default", 1: "exclusive thread", 2: "prohibited", 3: "exclusive process"}
    return modes.get(nvml.nvmlDeviceGetComputeMode(handle))


_OF_DRIVER: dict[str, Callable[[Any, Any], Fact]] = {
    "driver.version": lambda nvml, handle: str(nvml.nvmlSystemGetDriverVersion()),
    "cuda.driver.version": _cuda_version,
}
FACTS: dict[str, Callable[[Any, Any], Fact]] = {
    **_OF_DRIVER,
    "compute.capability": _capability,
    "core.count": lambda nvml, handle: int(nvml.nvmlDeviceGetNumGpuCores(handle)),
    "memory.total": lambda nvml, handle: int(nvml.nvmlDeviceGetMemoryInfo(handle).total),
    "memory.bus.width": lambda nvml, handle: int(nvml.nvmlDeviceGetMemoryBusWidth(handle)),
    "clock.sm.max": _max_clock(_SM),
    "clock.memory.max": _max_clock(_MEMORY),
    "power.limit": lambda nvml, handle: nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000,
    "temperature.slowdown": _threshold(_SLOWDOWN),
    "temperature.operating.max": _threshold(_GPU_MAX),
    "pci.bus.id": lambda nvml, handle: str(nvml.nvmlDeviceGetPciInfo(handle).busId),
    "mig.enabled": lambda nvml, handle: _is_on(nvml.nvmlDeviceGetMigMode(handle)[0]),
    "ecc.enabled": lambda nvml, handle: _is_on(nvml.nvmlDeviceGetEccMode(handle)[0]),
    "compute.mode": _compute_mode,
    "persistence.enabled": lambda nvml, handle: _is_on(nvml.nvmlDeviceGetPersistenceMode(handle)),
    "xid.told": lambda nvml, handle: bool(nvml.nvmlDeviceGetSupportedEventTypes(handle) & _XID),
}
"""Facts that stay constant during a run, in bytes, watts, hertz, degrees; the bus width in bits."""


_OF_THE_WHOLE = (
    *("core.count", "memory.bus.width", "power.limit"),
    *("temperature.slowdown", "temperature.operating.max"),
)
"""Facts of which a MIG device has a share that NVML does not report."""
_LIKE = {
    "memory.total": "hw.gpu.memory.usage",
    "clock.sm.max": "hw.gpu.clock.sm",
    "clock.memory.max": "hw.gpu.clock.memory",
    "power.limit": "hw.gpu.power",
    "temperature.slowdown": "hw.gpu.temperature",
    "temperature.operating.max": "hw.gpu.temperature",
}
"""The metrics whose limits hold for a fact, which is not 0 either."""
_MOST = {"core.count": 1_000_000, "memory.bus.width": 100_000}


def facts(nvml: Any, handle: Any, mig: bool = False) -> dict[str, Fact]:
    """Every fact of one GPU or MIG device; ``None`` where NVML has no value that can be."""
    wanted = [name for name in FACTS if not (mig and name in _OF_THE_WHOLE)]
    return dict.fromkeys(FACTS) | _facts({name: FACTS[name] for name in wanted}, nvml, handle)


def facts_of_driver(nvml: Any) -> dict[str, Fact]:
    """The facts that no GPU has to answer for."""
    return _facts(_OF_DRIVER, nvml, None)


def _facts(
    wanted: Mapping[str, Callable[[Any, Any], Fact]], nvml: Any, handle: Any
) -> dict[str, Fact]:
    values: dict[str, Fact] = {}
    for name, read in wanted.items():
        try:
            value = read(nvml, handle)
        except nvml.NVMLError:
            value = None
        if name in _LIKE and isinstance(value, (int, float)):
            value = checked(_LIKE[name], value)[0] or None
        elif name in _MOST and not 0 < int(value or 0) <= _MOST[name]:
            value = None
        values[name] = value
    return values


@dataclass(frozen=True)
class GpuProcess:
    """A process that holds a context on a GPU."""

    pid: int
    """PID on the host, also for a process in a container."""
    used: int | None
    """Device memory in bytes; ``None`` if the driver does not report it."""
    kind: str
    """``compute`` or ``graphics``."""
