"""The graph of a picked metric."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method
from gpuwatch.tui.feed.gauges import (
    Scales,
    Sources,
    mean_of,
    no_steps_reason,
    rate_of,
    steps_now,
    summarized,
    with_scale,
)
from gpuwatch.tui.feed.hardware.device_facts import attribute
from gpuwatch.tui.feed.hardware.rooflines import CORES
from gpuwatch.tui.feed.series import Series
from gpuwatch.tui.feed.snapshot import MISSING, DeviceNow, Gauge, Reading
from gpuwatch.tui.feed.steps import Steps
from gpuwatch.tui.widgets.graph import Window

KEY = "picked"
"""Key of its gauge, and the role of its colour."""
LOSS, STEP_TIME, THROUGHPUT = "loss", "step time", "samples/s"


@dataclass(frozen=True)
class _Metric:
    title: str
    unit: str
    top: str | float | None = None
    """End of the scale: a number, or the device attribute that holds it."""


_GPU = {
    "hw.gpu.memory.usage": _Metric("GPU memory", "By", "memory.total"),
    "hw.gpu.power": _Metric("Power", "W", "power.limit"),
    "hw.gpu.temperature": _Metric("Temperature", "°C", 100.0),
    "hw.gpu.clock.sm": _Metric("SM clock", "Hz", "clock.sm.max"),
    "hw.gpu.clock.memory": _Metric("Memory clock", "Hz", "clock.memory.max"),
    "hw.gpu.pcie.receive": _Metric("PCIe to the GPU", "B/s"),
    "hw.gpu.pcie.transmit": _Metric("PCIe from the GPU", "B/s"),
    "hw.gpu.sm.activity": _Metric("SM activity", "1", 1.0),
    "hw.gpu.sm.occupancy": _Metric("Occupancy", "1", 1.0),
    "hw.gpu.tensor.activity": _Metric("Tensor activity", "1", 1.0),
    "hw.gpu.fp64.activity": _Metric("FP64 activity", "1", 1.0),
    "hw.gpu.fp32.activity": _Metric("FP32 activity", "1", 1.0),
    "hw.gpu.fp16.activity": _Metric("FP16 activity", "1", 1.0),
    "hw.gpu.dram.activity": _Metric("DRAM activity", "1", 1.0),
    "hw.gpu.memory.busy": _Metric("Memory utilization", "1", 1.0),
    "hw.gpu.nvlink.receive": _Metric("NVLink to the GPU", "B/s"),
    "hw.gpu.nvlink.transmit": _Metric("NVLink from the GPU", "B/s"),
}
_HOST = {
    "hw.cpu.utilization": _Metric("Host CPU", "1", 1.0),
    "hw.memory.usage": _Metric("Host memory", "By", "memory.total"),
    "hw.cpu.frequency": _Metric("CPU clock", "Hz"),
    "hw.cpu.power": _Metric("CPU power", "W"),
}
_PROCESS = {
    "process.cpu.time": _Metric("Process CPU", "cores"),
    "process.memory.usage": _Metric("Process memory", "By"),
}
_STEPS = {
    LOSS: _Metric("Loss", ""),
    THROUGHPUT: _Metric("Samples/s", "/s"),
    STEP_TIME: _Metric("Step time", "s"),
}
_ALL = {**_GPU, **_HOST, **_PROCESS, **_STEPS}


def metrics_of(devices: Sequence[DeviceNow], selected: str | None, steps: Steps) -> tuple[str, ...]:
    """Keys of the available metrics of the selected device, the host, the process and the steps,
    in that order."""
    return tuple(_keys(devices, selected, steps))


def _keys(devices: Sequence[DeviceNow], selected: str | None, steps: Steps) -> Iterator[str]:
    for key in (*_GPU, *_HOST, *_PROCESS):
        device = _device(key, devices, selected)
        if device is not None and device.get(key).method is not Method.UNAVAILABLE:
            yield key
    if steps.any:
        available = {LOSS: steps.losses.seen, THROUGHPUT: steps.samples.seen}
        yield from (key for key in _STEPS if available.get(key, steps.times.seen))


def picked_of(
    key: str, devices: Sequence[DeviceNow], sources: Sources, window: Window, scales: Scales
) -> Gauge:
    """The metric ``key`` over ``window``, or the reason why it is unavailable."""
    metric = _ALL.get(key, _Metric(key, ""))
    if key in _STEPS:
        return with_scale(_step_gauge(key, metric, sources, window), sources, scales)
    device = _device(key, devices, sources.device.row.id if sources.device else None)
    if device is None:
        empty: tuple[float | None, ...] = (None,) * window.columns
        return Gauge(KEY, metric.title, metric.unit, MISSING, None, empty, 1.0, mean=False)
    name = CORES if key == "process.cpu.time" else key
    series = sources.series.get((device.row.id, name))
    gauge = _gauge(metric, device.get(key), series, sources, window)
    top = metric.top if not isinstance(metric.top, str) else attribute(device, metric.top)
    if top is not None:
        # Memory, power and activity are shares of their limits; temperatures and clocks are not.
        ceiling = top if metric.unit in ("By", "W", "1") else None
        return replace(gauge, ceiling=ceiling, scale=top)
    return with_scale(gauge, sources, scales)


def _device(key: str, devices: Sequence[DeviceNow], selected: str | None) -> DeviceNow | None:
    kind = "cpu" if key in _HOST else "workload" if key in _PROCESS else "gpu"
    candidates = [device for device in devices if device.row.kind == kind]
    if kind == "gpu":
        return next((device for device in candidates if device.row.id == selected), None)
    return candidates[0] if candidates else None


def _gauge(
    metric: _Metric, reading: Reading, series: Series | None, sources: Sources, window: Window
) -> Gauge:
    history = (
        (None,) * window.columns
        if series is None
        else tuple(series.columns(window, sources.interval))
    )
    gauge = Gauge(KEY, metric.title, metric.unit, reading, None, history, 1.0, mean=False)
    return summarized(gauge, sources, window, mean_of(series, sources.interval))


def _step_gauge(key: str, metric: _Metric, sources: Sources, window: Window) -> Gauge:
    steps = sources.steps
    if key == THROUGHPUT:
        rates = steps.samples.columns(window, steps.recent, steps.complete)
        reading = steps_now(sources, steps.samples)
        gauge = Gauge(KEY, metric.title, metric.unit, reading, None, tuple(rates), 1.0, mean=False)
        return summarized(gauge, sources, window, rate_of(steps.samples, steps))
    series, last = {
        LOSS: (steps.losses, steps.newest_loss),
        STEP_TIME: (steps.times, steps.newest_seconds),
    }[key]
    method, reason = Method.MEASURED, None
    if last is None:
        missing = f"the step lines contain no {key}" if steps.any else no_steps_reason(sources)
        method, reason = Method.UNAVAILABLE, missing
    reading = Reading(last, method, reason, "step lines")
    return _gauge(metric, reading, series, replace(sources, interval=steps.pause), window)
