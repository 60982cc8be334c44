"""The graph whose metric can be picked: what there is to pick, and the one that was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method
from gpuwatch.tui.feed.gauges import (
    Scales,
    Sources,
    finish,
    mean_of,
    no_steps,
    rate_of,
    scaled,
    steps_now,
)
from gpuwatch.tui.feed.hardware.device_facts import attribute
from gpuwatch.tui.feed.hardware.rooflines import CORES
from gpuwatch.tui.feed.series import Series
from gpuwatch.tui.feed.snapshot import MISSING, DeviceNow, Gauge, Reading
from gpuwatch.tui.feed.steps import Steps
from gpuwatch.tui.widgets.graph import Window

KEY = "picked"
"""Of its gauge: the role of its colour."""
LOSS, STEP_TIME, THROUGHPUT = "loss", "step time", "samples/s"


@dataclass(frozen=True)
class _Metric:
    title: str
    unit: str
    top: str | float | None = None
    """The scale's end: a number, or the attribute of the device that is its limit."""


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
    "hw.gpu.memory.busy": _Metric("Memory busy", "1", 1.0),
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
    """Keys of every metric that the session has for the selected device, the host, the process and
    the steps; those of the first come first."""
    return tuple(_keys(devices, selected, steps))


def _keys(devices: Sequence[DeviceNow], selected: str | None, steps: Steps) -> Iterator[str]:
    for key in (*_GPU, *_HOST, *_PROCESS):
        device = _device(key, devices, selected)
        if device is not None and device.get(key).method is not Method.UNAVAILABLE:
            yield key
    if steps.any:
        known = {LOSS: steps.losses.seen, THROUGHPUT: steps.samples.seen}
        yield from (key for key in _STEPS if known.get(key, steps.times.seen))


def picked_of(
    key: str, devices: Sequence[DeviceNow], sources: Sources, shown: Window, scales: Scales
) -> Gauge:
    """The metric ``key`` over the stretch ``shown``, or the reason why there is none."""
    metric = _ALL.get(key, _Metric(key, ""))
    if key in _STEPS:
        return scaled(_of_steps(key, metric, sources, shown), sources, scales)
    device = _device(key, devices, sources.device.row.id if sources.device else None)
    if device is None:
        empty: tuple[float | None, ...] = (None,) * shown.columns
        return Gauge(KEY, metric.title, metric.unit, MISSING, None, empty, 1.0, mean=False)
    name = CORES if key == "process.cpu.time" else key
    series = sources.series.get((device.row.id, name))
    gauge = _gauge(metric, device.get(key), series, sources, shown)
    top = metric.top if not isinstance(metric.top, str) else attribute(device, metric.top)
    if top is not None:
        # A temperature or a clock is no share of anything; memory, power and activity are.
        whole = top if metric.unit in ("By", "W", "1") else None
        return replace(gauge, ceiling=whole, scale=top)
    return scaled(gauge, sources, scales)


def _device(key: str, devices: Sequence[DeviceNow], selected: str | None) -> DeviceNow | None:
    kind = "cpu" if key in _HOST else "workload" if key in _PROCESS else "gpu"
    found = [device for device in devices if device.row.kind == kind]
    if kind == "gpu":
        return next((device for device in found if device.row.id == selected), None)
    return found[0] if found else None


def _gauge(
    metric: _Metric, reading: Reading, series: Series | None, sources: Sources, shown: Window
) -> Gauge:
    history = (
        (None,) * shown.columns
        if series is None
        else tuple(series.columns(shown, sources.interval))
    )
    gauge = Gauge(KEY, metric.title, metric.unit, reading, None, history, 1.0, mean=False)
    return finish(gauge, sources, shown, mean_of(series, sources.interval))


def _of_steps(key: str, metric: _Metric, sources: Sources, shown: Window) -> Gauge:
    steps = sources.steps
    if key == THROUGHPUT:
        rates = steps.samples.columns(shown, steps.recent, steps.complete)
        reading = steps_now(sources, steps.samples)
        gauge = Gauge(KEY, metric.title, metric.unit, reading, None, tuple(rates), 1.0, mean=False)
        return finish(gauge, sources, shown, rate_of(steps.samples, steps))
    series, last = {
        LOSS: (steps.losses, steps.newest_loss),
        STEP_TIME: (steps.times, steps.newest_seconds),
    }[key]
    method, reason = Method.MEASURED, None
    if last is None:
        none = f"the step lines give no {key}" if steps.any else no_steps(sources)
        method, reason = Method.UNAVAILABLE, none
    reading = Reading(last, method, reason, "step lines")
    return _gauge(metric, reading, series, replace(sources, interval=steps.pause), shown)
