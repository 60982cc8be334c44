"""The three large gauges: values, methods, ceilings and histories."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import replace

from gpuwatch.analysis.hardware.ceilings import BANDWIDTH, MEASURED, Ceiling
from gpuwatch.analysis.hardware.mfu import MFU, MfuPeak
from gpuwatch.analysis.hardware.pipes import METRICS as PIPES
from gpuwatch.analysis.hardware.pipes import TENSOR, pipes_of
from gpuwatch.analysis.measured_value import MeasuredValue
from gpuwatch.analysis.samples.step_lines import NO_STEPS_YET
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method
from gpuwatch.core.units import NS, nice
from gpuwatch.tui.feed.series import Series, StepHistory
from gpuwatch.tui.feed.snapshot import MISSING, DeviceNow, Gauge, Reading
from gpuwatch.tui.feed.steps import Steps
from gpuwatch.tui.widgets.graph import Window

_IMPORTED = "an imported profile has no samples and no steps"
_UNKNOWN_GPUS = "GPUs not known"
"""Note of a gauge whose share of the ceiling is unknown."""
_MAX_SCALE = 1e24
"""Highest end of a scale; values from foreign files may be larger."""
_CEILING_SHARE = 0.1
"""Share of its ceiling from which a history's scale ends there: a lower curve would be flat."""


@dataclass(frozen=True)
class Sources:
    """Input of the gauges."""

    device: DeviceNow | None
    series: Mapping[tuple[str, str], Series]
    steps: Steps
    no_steps: str
    """Why a run that is over reported no steps."""
    live: bool
    machine_only: bool
    imported: bool
    gpus_used: int | None
    """Number of the run's GPUs; ``None``: unknown."""
    t: int
    interval: float
    device_ceilings: Mapping[str, Ceiling]
    """The device's ceilings by name."""
    run_ceilings: Mapping[str, Ceiling]
    """The ceilings of all the run's devices together, for counted work."""
    peak_bandwidth: float | None
    """Peak bandwidth of the device's memory in By/s, never a measured one."""
    data_type: str | None
    """Data type of the run's matrix products."""
    mfu_peaks: tuple[MfuPeak, ...]
    """What each kind of MFU of the run is over."""


Mean = Callable[[int, int], "float | None"]
"""Mean between two session times in nanoseconds; ``None``: unknown."""

Scales = MutableMapping[tuple[str, str | None], float]
"""End of the scale by gauge and device id."""


def gauges_of(sources: Sources, window: Window, scales: Scales) -> tuple[Gauge, ...]:
    """Utilization, memory bandwidth and FLOP/s over ``window``.

    ``scales`` keeps the end of each history's scale, which never shrinks.
    """
    return (
        _utilization(sources, window),
        with_scale(_bandwidth(sources, window), sources, scales),
        with_scale(_flops(sources, window), sources, scales),
    )


def _utilization(sources: Sources, window: Window) -> Gauge:
    device = sources.device
    kind = device.row.kind if device else "gpu"
    metric = "hw.cpu.utilization" if kind == "cpu" else "hw.gpu.utilization"
    title = "CPU utilization" if kind == "cpu" else "GPU utilization"
    reading = device.get(metric) if device else MISSING
    if reading is MISSING and sources.imported:
        reading = MISSING._replace(reason=_IMPORTED)
    history = history_of(sources, metric, window)
    gauge = Gauge("utilization", title, "1", reading, 1.0, history, 1.0, mean=False)
    return summarized(gauge, sources, window, _device_mean(sources, metric))


def _bandwidth(sources: Sources, window: Window) -> Gauge:
    device = sources.device
    metric = "hw.gpu.memory.bandwidth"
    reading = device.get(metric) if device else MISSING
    # A measured history stays measured: a counted rate would continue it as if it were the same.
    if _is_available(sources, metric):
        history = history_of(sources, metric, window)
        gauge = Gauge(
            "bandwidth", "Memory bandwidth", "B/s", reading, None, history, 1.0, mean=False
        )
        finished = summarized(gauge, sources, window, _device_mean(sources, metric))
        return _with_ceiling(finished, sources.device_ceilings.get(BANDWIDTH))
    unavailable = reading.reason if device and device.row.kind == "gpu" else None
    if sources.machine_only:
        reason = unavailable or "no counter of memory traffic is recorded on this machine"
        return _counted_gauge("bandwidth", "Memory bandwidth", "B/s", None, sources, window, reason)
    reason = _no_count_reason(sources, "bytes")
    if unavailable and unavailable != MISSING.reason:
        reason = f"{unavailable}; {reason}"
    gauge = _counted_gauge(
        "bandwidth", "Memory bandwidth", "B/s", sources.steps.bytes, sources, window, reason
    )
    if gauge.reading.method is Method.COUNTED:
        gauge = replace(gauge, title="Algorithmic bytes/s")
        return _with_ceiling(gauge, sources.run_ceilings.get(BANDWIDTH))
    return _bound_gauge(sources, window, reason) or gauge


def _is_available(sources: Sources, metric: str) -> bool:
    """Whether the device provides a metric, or provided it earlier."""
    if sources.device is None:
        return False
    series = sources.series.get((sources.device.row.id, metric))
    available = sources.device.get(metric).method is not Method.UNAVAILABLE
    return available or (series is not None and series.seen)


_MEMORY_UTILIZATION = "hw.gpu.memory.busy"


def bandwidth_of(sources: Sources) -> Reading:
    """Current memory bandwidth of the device: its counter, else an upper bound."""
    metric = "hw.gpu.memory.bandwidth"
    reading = sources.device.get(metric) if sources.device else MISSING
    if sources.machine_only or _is_available(sources, metric):
        return reading
    return _bandwidth_bound(sources, reading.reason) or reading


def _bandwidth_bound(sources: Sources, reason: str | None) -> Reading | None:
    """Upper bound of the bandwidth: the share of time with a memory access times the peak."""
    if sources.device is None or sources.peak_bandwidth is None:
        return None
    if not _is_available(sources, _MEMORY_UTILIZATION):
        return None
    share = sources.device.get(_MEMORY_UTILIZATION)
    source = f"{share.source} x peak bandwidth"
    if share.method is Method.UNAVAILABLE:
        return Reading(None, Method.UNAVAILABLE, share.reason, source, Method.BOUND)
    value = None if share.value is None else share.value * sources.peak_bandwidth
    return Reading(value, Method.BOUND, reason, source)


def _bound_gauge(sources: Sources, window: Window, reason: str) -> Gauge | None:
    """The gauge of the bandwidth's upper bound; ``None``: there is none."""
    reading, peak = _bandwidth_bound(sources, reason), sources.peak_bandwidth
    if reading is None or peak is None:
        return None
    history = tuple(
        None if share is None else share * peak
        for share in history_of(sources, _MEMORY_UTILIZATION, window)
    )
    title = "Memory bandwidth"
    gauge = Gauge("bandwidth", title, "B/s", reading, None, history, 1.0, mean=False)
    return summarized(gauge, sources, window, _device_mean(sources, _MEMORY_UTILIZATION, peak))


def algorithmic_bytes(sources: Sources) -> Reading:
    """Current algorithmic bytes per second of the whole run."""
    history = sources.steps.bytes
    if sources.machine_only or not history.seen:
        return Reading(None, Method.UNAVAILABLE, _no_count_reason(sources, "bytes"))
    return steps_now(sources, history)


def _flops(sources: Sources, window: Window) -> Gauge:
    if sources.machine_only:
        reason = "no workload: FLOP are counted from its steps"
        gauge = _counted_gauge("flops", "Estimated FLOP/s", "FLOP/s", None, sources, window, reason)
        return _flop_bound(sources, window, reason) or gauge
    reason = _no_count_reason(sources, "FLOP")
    gauge = _counted_gauge(
        "flops", "Estimated FLOP/s", "FLOP/s", sources.steps.flop, sources, window, reason
    )
    counted = gauge.reading.method is Method.COUNTED
    if not counted and (at_most := _flop_bound(sources, window, reason)) is not None:
        return at_most
    gauge = replace(gauge, mfus=tuple(_mfu(peak, gauge.reading) for peak in sources.mfu_peaks))
    ceiling = sources.run_ceilings.get(sources.data_type or "")
    sheet = next((peak.ceiling for peak in sources.mfu_peaks if peak.name == MFU), None)
    # Without a measured product the share is the MFU of lists and tables.
    mfu = ceiling is None or ceiling.kind != MEASURED
    return _with_ceiling(gauge, sheet if sheet is not None and mfu else ceiling)


def _flop_bound(sources: Sources, window: Window, reason: str) -> Gauge | None:
    """The gauge of what the device's pipes executed at most; ``None``: it is not measured."""
    device = sources.device
    if device is None or not _is_available(sources, TENSOR):
        return None
    pipes, tensor = pipes_of(device.row, sources.data_type), device.get(TENSOR)
    if isinstance(pipes, str):
        return None

    def rate(values: Iterable[float | None]) -> float | None:
        known = zip(PIPES, values, strict=True)
        most: float | None = pipes.rate({name: v for name, v in known if v is not None})
        return most

    reading = Reading(
        rate(device.get(name).value for name in PIPES), Method.BOUND, reason, pipes.text
    )
    if tensor.method is Method.UNAVAILABLE:
        reading = Reading(None, Method.UNAVAILABLE, tensor.reason, pipes.text, Method.BOUND)
    columns = zip(*(history_of(sources, name, window) for name in PIPES), strict=True)
    history, title = tuple(map(rate, columns)), "Executed FLOP/s"
    gauge = Gauge("flops", title, "FLOP/s", reading, None, history, 1.0, mean=False)
    means = [_device_mean(sources, name) for name in PIPES]
    return summarized(
        gauge, sources, window, lambda start, end: rate(mean(start, end) for mean in means)
    )


def _mfu(peak: MfuPeak, flop: Reading) -> tuple[str, Reading]:
    rate = MeasuredValue(flop.value, "FLOP/s", flop.method, flop.source, flop.reason)
    mfu = peak.mfu(rate)
    return peak.name, Reading(mfu.value, mfu.method, mfu.reason, mfu.source)


def _with_ceiling(gauge: Gauge, ceiling: Ceiling | None) -> Gauge:
    if ceiling is None:
        return gauge
    return replace(gauge, ceiling=ceiling.value, named_ceiling=ceiling)


def _counted_gauge(
    key: str,
    title: str,
    unit: str,
    history: StepHistory | None,
    sources: Sources,
    window: Window,
    reason: str,
) -> Gauge:
    """A gauge of counted work per second, or with ``reason`` if there is no count."""
    empty: tuple[float | None, ...] = (None,) * window.columns
    if history is None or not history.seen:
        reading = Reading(None, Method.UNAVAILABLE, reason)
        return Gauge(key, title, unit, reading, None, empty, 1.0, mean=False)
    steps = sources.steps
    columns = tuple(history.columns(window, steps.recent, steps.complete))
    reading = steps_now(sources, history)
    note = "whole run" if (sources.gpus_used or 0) > 1 else ""
    if sources.gpus_used is None:
        note = _UNKNOWN_GPUS
    gauge = Gauge(key, title, unit, reading, None, columns, 1.0, mean=False, note=note)
    return summarized(gauge, sources, window, rate_of(history, steps))


def steps_now(sources: Sources, history: StepHistory) -> Reading:
    """Work per second of the newest step lines; unknown if they are too old."""
    steps = sources.steps
    silence = steps.silence(sources.t) if sources.live else None
    value = None if silence else history.last(steps.recent)
    return Reading(value, Method.COUNTED, silence, "step lines")


def _no_count_reason(sources: Sources, what: str) -> str:
    if sources.imported:
        return _IMPORTED
    if not sources.steps.any:
        return no_steps_reason(sources)
    return sources.steps.doubt or f"the workload counts no {what}"


def no_steps_reason(sources: Sources) -> str:
    """Why values from step lines are missing."""
    return NO_STEPS_YET if sources.live else sources.no_steps


def _device_mean(sources: Sources, metric: str, factor: float = 1.0) -> Mean:
    """Mean of the device's ``metric`` times ``factor``."""
    series = sources.series.get((sources.device.row.id, metric)) if sources.device else None
    return mean_of(series, sources.interval, factor)


def history_of(sources: Sources, metric: str, window: Window) -> tuple[float | None, ...]:
    """History of the device's ``metric`` over ``window``, by column."""
    series = sources.series.get((sources.device.row.id, metric)) if sources.device else None
    if series is None:
        return (None,) * window.columns
    return tuple(series.columns(window, sources.interval))


def summarized(gauge: Gauge, sources: Sources, window: Window, mean: Mean) -> Gauge:
    """The gauge; for a finished run with the mean over ``window`` in place of the last value.

    Over the whole run it is the mean of the timed steps, as in ``gpuwatch show``.
    """
    reading = gauge.reading
    lost = reading.method is Method.UNAVAILABLE
    method = reading.earlier_method if lost else reading.method
    known = [value for value in gauge.history if value is not None]
    if sources.live or method is Method.UNAVAILABLE or (lost and not known):
        return gauge
    covered = len(known) / len(gauge.history) if lost else None
    value, period = sum(known) / len(known) if known else None, ""
    if window.start > 0 or window.end < sources.t:
        period = f"last {_length(window)}"
    elif not lost:
        start, end = sources.steps.timed
        timed = mean(start, end) if end > start else None
        value, period = (value, "whole run") if timed is None else (timed, "timed steps")
    reading = reading._replace(value=value, method=method)
    return replace(gauge, reading=reading, mean=True, period=period, covered=covered)


def mean_of(series: Series | None, interval: float, factor: float = 1.0) -> Mean:
    """Mean of a series times ``factor``."""

    def mean(start: int, end: int) -> float | None:
        value = None if series is None else series.mean(start, end, interval)
        return None if value is None else value * factor

    return mean


def rate_of(history: StepHistory, steps: Steps) -> Mean:
    """Mean of counted work per second."""

    def mean(start: int, end: int) -> float | None:
        return history.columns(Window(start, end, 1), steps.recent, steps.complete)[0]

    return mean


def _length(window: Window) -> str:
    seconds = (window.end - window.start) / NS
    return f"{seconds / 60:.0f} min" if seconds >= 60 else f"{seconds:.0f} s"


def with_scale(gauge: Gauge, sources: Sources, scales: Scales) -> Gauge:
    """The gauge with a scale up to the largest value that it has shown so far."""
    known = [value for value in (*gauge.history, gauge.reading.value) if value is not None]
    device = sources.device.row.id if sources.device else None
    key = (f"{gauge.key} {gauge.title}", device)
    most = min(_MAX_SCALE, max(known)) if known else 0.0
    top = nice(most) if most > 0 else 0.0
    if gauge.ceiling is not None and _CEILING_SHARE * gauge.ceiling <= most <= gauge.ceiling:
        top = gauge.ceiling
    scales[key] = max(scales.get(key, 0.0), top)
    return replace(gauge, scale=scales[key] or 1.0)
