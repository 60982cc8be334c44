"""The three large gauges: what each shows, how it was obtained, what it may be compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import replace

from gpuwatch.analysis.hardware.ceilings import BANDWIDTH, Ceiling
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method
from gpuwatch.core.units import NS, nice
from gpuwatch.tui.feed.series import Series, StepHistory
from gpuwatch.tui.feed.snapshot import MISSING, DeviceNow, Gauge, Reading
from gpuwatch.tui.feed.steps import Steps
from gpuwatch.tui.widgets.graph import Window

_IMPORTED = "an imported profile has no samples and no steps"
_UNKNOWN_GPUS = "GPUs not known"
"""Why there is no share of a ceiling, in a few words."""
_LARGEST = 1e24
"""No scale goes beyond; a value from a file of someone else's may."""
_NEAR = 0.1
"""From this share of its ceiling on, a history's scale ends at the ceiling: below, it would be a
line at the bottom."""


@dataclass(frozen=True)
class Sources:
    """What gauges are made from."""

    device: DeviceNow | None
    series: Mapping[tuple[str, str], Series]
    steps: Steps
    live: bool
    machine_only: bool
    imported: bool
    gpus_used: int | None
    """``None``: it is not known (yet) which of them the run uses."""
    t: int
    interval: float
    of_device: Mapping[str, Ceiling]
    """The device's ceilings by name."""
    of_run: Mapping[str, Ceiling]
    """The same of all that the run uses: counted work covers the whole run."""
    peak_bandwidth: float | None
    """What the device's memory cannot exceed in By/s: a peak, never a measured ceiling."""
    data_type: str | None
    """Of the run's matrix products."""


Mean = Callable[[int, int], "float | None"]
"""The mean between two session times in nanoseconds; ``None``: not known."""

Scales = MutableMapping[tuple[str, str | None], float]


def gauges_of(sources: Sources, shown: Window, scales: Scales) -> tuple[Gauge, ...]:
    """Utilization, memory bandwidth and FLOP/s over the stretch ``shown``.

    ``scales`` keeps the top of each history's scale: it grows and never shrinks.
    """
    return (
        _utilization(sources, shown),
        scaled(_bandwidth(sources, shown), sources, scales),
        scaled(_flops(sources, shown), sources, scales),
    )


def _utilization(sources: Sources, shown: Window) -> Gauge:
    device = sources.device
    kind = device.row.kind if device else "gpu"
    metric = "hw.cpu.utilization" if kind == "cpu" else "hw.gpu.utilization"
    title = "CPU utilization" if kind == "cpu" else "GPU utilization"
    reading = device.get(metric) if device else MISSING
    if reading is MISSING and sources.imported:
        reading = MISSING._replace(reason=_IMPORTED)
    history = history_of(sources, metric, shown)
    gauge = Gauge("utilization", title, "1", reading, 1.0, history, 1.0, mean=False)
    return finish(gauge, sources, shown, _sampled(sources, metric))


def _bandwidth(sources: Sources, shown: Window) -> Gauge:
    device = sources.device
    metric = "hw.gpu.memory.bandwidth"
    reading = device.get(metric) if device else MISSING
    # What was measured before stays: a counted rate would carry its line on as if it were the same.
    if _known(sources, metric):
        history = history_of(sources, metric, shown)
        gauge = Gauge(
            "bandwidth", "Memory bandwidth", "B/s", reading, None, history, 1.0, mean=False
        )
        finished = finish(gauge, sources, shown, _sampled(sources, metric))
        return _against(finished, sources.of_device.get(BANDWIDTH))
    why = reading.reason if device and device.row.kind == "gpu" else None
    if sources.machine_only:
        reason = why or "no counter of memory traffic is recorded on this machine"
        return _counted("bandwidth", "Memory bandwidth", "B/s", None, sources, shown, reason)
    reason = _no_work(sources, "bytes")
    if why and why != MISSING.reason:
        reason = f"{why}; {reason}"
    gauge = _counted(
        "bandwidth", "Memory bandwidth", "B/s", sources.steps.bytes, sources, shown, reason
    )
    if gauge.reading.method is Method.COUNTED:
        gauge = replace(gauge, title="Algorithmic bytes/s")
        return _against(gauge, sources.of_run.get(BANDWIDTH))
    return _bound(sources, shown, reason) or gauge


def _known(sources: Sources, metric: str) -> bool:
    """The device gives a metric, or gave it before."""
    if sources.device is None:
        return False
    series = sources.series.get((sources.device.row.id, metric))
    given = sources.device.get(metric).method is not Method.UNAVAILABLE
    return given or (series is not None and series.seen)


_BUSY = "hw.gpu.memory.busy"


def bandwidth_of(sources: Sources) -> Reading:
    """Of the device as it stands now: its own counter, else at most so much."""
    metric = "hw.gpu.memory.bandwidth"
    reading = sources.device.get(metric) if sources.device else MISSING
    if sources.machine_only or _known(sources, metric):
        return reading
    return _at_most(sources, reading.reason) or reading


def _at_most(sources: Sources, reason: str | None) -> Reading | None:
    """At most this bandwidth: in the time without an access to memory there was none.

    The share of time with an access, times the peak. How much an access moved is not known.
    """
    if sources.device is None or sources.peak_bandwidth is None or not _known(sources, _BUSY):
        return None
    busy = sources.device.get(_BUSY)
    source = f"{busy.source} x peak bandwidth"
    if busy.method is Method.UNAVAILABLE:
        return Reading(None, Method.UNAVAILABLE, busy.reason, source, Method.BOUND)
    value = None if busy.value is None else busy.value * sources.peak_bandwidth
    return Reading(value, Method.BOUND, reason, source)


def _bound(sources: Sources, shown: Window, reason: str) -> Gauge | None:
    """The bandwidth as a bound, where nothing measures or counts it."""
    reading, peak = _at_most(sources, reason), sources.peak_bandwidth
    if reading is None or peak is None:
        return None
    history = tuple(
        None if share is None else share * peak for share in history_of(sources, _BUSY, shown)
    )
    title = "Memory bandwidth"
    gauge = Gauge("bandwidth", title, "B/s", reading, None, history, 1.0, mean=False)
    return finish(gauge, sources, shown, _sampled(sources, _BUSY, peak))


def algorithmic_bytes(sources: Sources) -> Reading:
    """Algorithmic bytes per second as they stand now, counted over the whole run."""
    history = sources.steps.bytes
    if sources.machine_only or not history.seen:
        return Reading(None, Method.UNAVAILABLE, _no_work(sources, "bytes"))
    return steps_now(sources, history)


def _flops(sources: Sources, shown: Window) -> Gauge:
    if sources.machine_only:
        reason = "no workload: FLOP are counted from its steps"
        return _counted("flops", "Estimated FLOP/s", "FLOP/s", None, sources, shown, reason)
    reason = _no_work(sources, "FLOP")
    gauge = _counted(
        "flops", "Estimated FLOP/s", "FLOP/s", sources.steps.flop, sources, shown, reason
    )
    return _against(gauge, sources.of_run.get(sources.data_type or ""))


def _against(gauge: Gauge, ceiling: Ceiling | None) -> Gauge:
    if ceiling is None:
        return gauge
    return replace(gauge, ceiling=ceiling.value, against=ceiling)


def _counted(
    key: str,
    title: str,
    unit: str,
    history: StepHistory | None,
    sources: Sources,
    shown: Window,
    reason: str,
) -> Gauge:
    """A gauge of work counted per step, or the reason why there is none."""
    empty: tuple[float | None, ...] = (None,) * shown.columns
    if history is None or not history.seen:
        reading = Reading(None, Method.UNAVAILABLE, reason)
        return Gauge(key, title, unit, reading, None, empty, 1.0, mean=False)
    steps = sources.steps
    columns = tuple(history.columns(shown, steps.recent, steps.complete))
    reading = steps_now(sources, history)
    note = "whole run" if (sources.gpus_used or 0) > 1 else ""
    if sources.gpus_used is None:
        note = _UNKNOWN_GPUS
    gauge = Gauge(key, title, unit, reading, None, columns, 1.0, mean=False, note=note)
    return finish(gauge, sources, shown, rate_of(history, steps))


def steps_now(sources: Sources, history: StepHistory) -> Reading:
    """Work per second of the newest step lines; unknown where none came for long."""
    steps = sources.steps
    silence = steps.silence(sources.t) if sources.live else None
    value = None if silence else history.last(steps.recent)
    return Reading(value, Method.COUNTED, silence, "step lines")


def _no_work(sources: Sources, what: str) -> str:
    if sources.imported:
        return _IMPORTED
    return f"the workload does not count its {what}" if sources.steps.any else no_steps(sources)


def no_steps(sources: Sources) -> str:
    """Why there is nothing that step lines tell."""
    return "no step line yet" if sources.live else "the run printed no step lines"


def _sampled(sources: Sources, metric: str, factor: float = 1.0) -> Mean:
    """The mean of the device's ``metric``."""
    series = sources.series.get((sources.device.row.id, metric)) if sources.device else None
    return mean_of(series, sources.interval, factor)


def history_of(sources: Sources, metric: str, shown: Window) -> tuple[float | None, ...]:
    """Of the device's ``metric`` over ``shown``."""
    series = sources.series.get((sources.device.row.id, metric)) if sources.device else None
    if series is None:
        return (None,) * shown.columns
    return tuple(series.columns(shown, sources.interval))


def finish(gauge: Gauge, sources: Sources, shown: Window, mean: Mean) -> Gauge:
    """Of a run that is over the mean over the stretch says more than its last moment, also where
    the value went away before its end. Over all of the run it is that of the timed steps, as
    ``gpuwatch show`` gives it."""
    reading = gauge.reading
    gone = reading.method is Method.UNAVAILABLE
    method = reading.before if gone else reading.method
    known = [value for value in gauge.history if value is not None]
    if sources.live or method is Method.UNAVAILABLE or (gone and not known):
        return gauge
    covered = len(known) / len(gauge.history) if gone else None
    value, over = sum(known) / len(known) if known else None, ""
    if shown.start > 0 or shown.end < sources.t:
        over = f"last {_length(shown)}"
    elif not gone:
        start, end = sources.steps.timed
        found = mean(start, end) if end > start else None
        value, over = (value, "whole run") if found is None else (found, "timed steps")
    reading = reading._replace(value=value, method=method)
    return replace(gauge, reading=reading, mean=True, over=over, covered=covered)


def mean_of(series: Series | None, interval: float, factor: float = 1.0) -> Mean:
    """The mean of samples, times ``factor``."""

    def over(start: int, end: int) -> float | None:
        found = None if series is None else series.mean(start, end, interval)
        return None if found is None else found * factor

    return over


def rate_of(history: StepHistory, steps: Steps) -> Mean:
    """The mean of counted work per second."""

    def over(start: int, end: int) -> float | None:
        return history.columns(Window(start, end, 1), steps.recent, steps.complete)[0]

    return over


def _length(shown: Window) -> str:
    seconds = (shown.end - shown.start) / NS
    return f"{seconds / 60:.0f} min" if seconds >= 60 else f"{seconds:.0f} s"


def scaled(gauge: Gauge, sources: Sources, scales: Scales) -> Gauge:
    """With a scale that holds what the gauge ever showed."""
    known = [value for value in (*gauge.history, gauge.reading.value) if value is not None]
    device = sources.device.row.id if sources.device else None
    key = (f"{gauge.key} {gauge.title}", device)
    most = min(_LARGEST, max(known)) if known else 0.0
    top = nice(most) if most > 0 else 0.0
    if gauge.ceiling is not None and _NEAR * gauge.ceiling <= most <= gauge.ceiling:
        top = gauge.ceiling
    scales[key] = max(scales.get(key, 0.0), top)
    return replace(gauge, scale=scales[key] or 1.0)
