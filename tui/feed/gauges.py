"""The large gauges, the graph of a picked metric, and the panels of all GPUs: values, methods,
ceilings and histories; and the newest earlier run of the same command beside them."""

from __future__ import annotations

import math
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from operator import attrgetter
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from gpuwatch.analysis.hardware.ceilings import BANDWIDTH, MEASURED, Ceiling, gpus_unknown
from gpuwatch.analysis.hardware.mfu import MFU
from gpuwatch.analysis.hardware.pipes import METRICS as PIPES
from gpuwatch.analysis.hardware.pipes import TENSOR
from gpuwatch.analysis.measured_value import MeasuredValue
from gpuwatch.analysis.samples.step_lines import NO_STEPS
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import CATALOGUE, DERIVED, Method, reading_of
from gpuwatch.core.models import JSON, mapping, number
from gpuwatch.core.units import NS, milliseconds, nice
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.rows import DeviceRow, StepRow
from gpuwatch.session.schema import SUFFIX
from gpuwatch.session.study.estimate import cell_of, changed, timing
from gpuwatch.tui.feed.checks import Ceilings, of_pipes
from gpuwatch.tui.feed.samples import NOTHING, Derived, Histories, History, Window
from gpuwatch.tui.feed.snapshot import MISSING, Alert, DeviceNow, Gauge, Panel, Reading, Search
from gpuwatch.tui.feed.steps import Steps, WorkRate, no_steps_yet

_IMPORTED = "an imported profile has no samples and no steps"
_UNKNOWN_GPUS = "GPUs not known"
"""Note of a gauge whose share of the ceiling is unknown."""
_MAX_SCALE = 1e24
"""Highest end of a scale; values from foreign files may be larger."""
_DECADE = 10
_CEILING_SHARE = 0.1
"""Share of its ceiling from which a history's scale ends there: a lower curve would be flat."""
_BUSY = "hw.gpu.memory.busy"
_BANDWIDTH = "hw.gpu.memory.bandwidth"
PICKED = "picked"
"""Key of the gauge of a picked metric, and the role of its colour."""


class Period(NamedTuple):
    """What the means of a run that is over cover, in nanoseconds of session time."""

    start: int
    end: int
    text: str


def period_of(
    window: Window, timed: tuple[int, int] | None, t: int, steps: tuple[int, int], least: float
) -> Period:
    """The ``timed`` steps, as in ``gpuwatch show``, without any the run up to ``t``, if all of that
    is in the window; else the window.

    Of it the part with timed steps, else with any ``steps``, if that is ``least`` long: what a run
    does without steps is no rate of 0, and what the devices do meanwhile is not of the same time.
    """
    whole = Period(*timed, "timed steps") if timed else Period(0, t, "whole run")
    if window.start <= whole.start and whole.end <= window.end:
        return whole
    spans = ((max(window.start, of[0]), min(window.end, of[1])) for of in (timed, steps) if of)
    shown = window.start, window.end
    start, end = next((each for each in spans if each[1] - each[0] > least), shown)
    length = window.end - window.start
    if end - start > 0.95 * length:  # but for the last moment, it is of steps
        return Period(start, end, _last(length))
    return Period(start, end, f"{_last(end - start)} of steps")


def _last(ns: int) -> str:
    seconds = ns / NS
    return "last " + (f"{seconds / 60:.0f} min" if seconds >= 60 else f"{seconds:.2g} s")


@dataclass(frozen=True)
class Sources:
    """Input of the gauges."""

    device: DeviceNow | None
    devices: Sequence[DeviceRow]
    series: Histories
    steps: Steps
    ceilings: Ceilings
    meta: Mapping[str, Any]
    live: bool
    t: int
    window: Window
    period: Period
    earlier: Earlier | Search | None
    scales: MutableMapping[tuple[str, str | None], float]
    """End of each history's scale by gauge and device id, which never shrinks."""

    @property
    def kind(self) -> object:
        """``machine``, ``import`` or what else was recorded."""
        return mapping(self.meta.get("workload")).get("kind")

    @property
    def unused(self) -> bool:
        """Whether the device is a GPU without a part in the run's work."""
        if self.device is None or self.device.row.kind != "gpu":
            return False
        return self.device.row.used is False

    @property
    def peak_bandwidth(self) -> float | None:
        """Peak bandwidth of the device's memory in By/s, never a measured one."""
        return self.ceilings.peak_bandwidth(self.device.row.id) if self.device else None

    def reading(self, metric: str) -> Reading:
        """The device's current ``metric``."""
        return self.device.get(metric) if self.device is not None else MISSING

    def history(self, metric: str) -> History:
        """The device's ``metric`` over time."""
        key = (self.device.row.id, metric) if self.device is not None else ("", "")
        return self.series.get(key, NOTHING)

    def provides(self, metric: str) -> bool:
        """Whether the device provides a metric, or provided it earlier."""
        available = self.reading(metric).method is not Method.UNAVAILABLE
        return available or self.history(metric).seen


def gauges_of(sources: Sources) -> tuple[Gauge, ...]:
    """Utilization, memory bandwidth and FLOP/s over the window."""
    bandwidth, flops = _bandwidth(sources), _flops(sources)
    return _utilization(sources), _with_scale(bandwidth, sources), _with_scale(flops, sources)


def _utilization(sources: Sources) -> Gauge:
    cpu = sources.device is not None and sources.device.row.kind == "cpu"
    metric = "hw.cpu.utilization" if cpu else "hw.gpu.utilization"
    reading = sources.reading(metric)
    if reading is MISSING and sources.kind == "import":
        reading = MISSING._replace(reason=_IMPORTED)
    title = "CPU utilization" if cpu else "GPU utilization"
    gauge = _gauge(sources, "utilization", title, "1", reading, sources.history(metric))
    return replace(gauge, ceiling=1.0)


def _bandwidth(sources: Sources) -> Gauge:
    title, device, reading = "Memory bandwidth", sources.device, sources.reading(_BANDWIDTH)
    # A measured history stays measured: a counted rate would continue it as if it were the same.
    if sources.provides(_BANDWIDTH):
        history = sources.history(_BANDWIDTH)
        gauge = _gauge(sources, "bandwidth", title, "By/s", reading, history)
        return _with_ceiling(
            gauge, sources.ceilings.of(device.row.id).get(BANDWIDTH) if device else None
        )
    unavailable = reading.reason if device is not None and device.row.kind == "gpu" else None
    if sources.kind == "machine":
        reason = unavailable or "no counter of memory traffic is recorded on this machine"
    else:
        reason = _no_count_reason(sources, "bytes")
        if sources.kind != "import" and not any(row.kind == "gpu" for row in sources.devices):
            reason = f"no GPU; {reason}" if sources.steps.any else "no GPU"
        if unavailable and unavailable != MISSING.reason:
            reason = f"{unavailable}; {reason}"
    if sources.steps.bytes.seen and not sources.unused:
        gauge = _counted(sources, "bandwidth", "Algorithmic bytes/s", "By/s", sources.steps.bytes)
        return _with_ceiling(gauge, sources.ceilings.of(None).get(BANDWIDTH))
    bound, peak = _bandwidth_bound(sources, reason), sources.peak_bandwidth
    if bound is None or peak is None:
        return _unavailable(sources, "bandwidth", title, "By/s", reason)
    history = Derived(
        lambda share: None if share[0] is None else share[0] * peak, sources.history(_BUSY)
    )
    gauge = _gauge(sources, "bandwidth", title, "By/s", bound, history)
    if bound.method is Method.UNAVAILABLE and not any(gauge.history):
        return _unavailable(sources, "bandwidth", title, "By/s", reason)
    return gauge


def _bandwidth_bound(sources: Sources, reason: str | None) -> Reading | None:
    """Upper bound of the bandwidth: the share of time with a memory access times the peak.

    Of 0 there is none: the driver gives whole percents.
    """
    if sources.peak_bandwidth is None or not sources.provides(_BUSY):
        return None
    share = sources.reading(_BUSY)
    source = f"{share.source} x peak bandwidth"
    if share.method is Method.UNAVAILABLE:
        return Reading(None, Method.UNAVAILABLE, share.reason, source, Method.BOUND)
    if share.value == 0:
        return Reading(None, Method.UNAVAILABLE, reason, source, Method.BOUND)
    value = None if share.value is None else share.value * sources.peak_bandwidth
    return Reading(value, Method.BOUND, reason, source)


def algorithmic_bytes(sources: Sources) -> Reading:
    """Current algorithmic bytes per second of the whole run."""
    if sources.unused or not sources.steps.bytes.seen:
        return Reading(None, Method.UNAVAILABLE, _no_count_reason(sources, "bytes"))
    return _counted(sources, "bandwidth", "", "By/s", sources.steps.bytes).reading


def _flops(sources: Sources) -> Gauge:
    title, own = "Model FLOP/s", sources.kind == "machine" or sources.unused
    if own or not sources.steps.flop.seen:
        reason = _no_count_reason(sources, "FLOP")
        bound = _flop_bound(sources, reason)
        if bound is not None:
            return bound
        gauge = _unavailable(sources, "flops", title, "FLOP/s", reason)
    else:
        gauge = _counted(sources, "flops", title, "FLOP/s", sources.steps.flop)
    if own:
        return gauge
    reading = gauge.reading
    rate = MeasuredValue(reading.value, "FLOP/s", reading.method, reading.source, reading.reason)
    mfus = [(peak.name, peak.mfu(rate)) for peak in sources.ceilings.mfu_peaks]
    shares = [(name, Reading(m.value, m.method, m.reason, m.source)) for name, m in mfus]
    gauge = replace(gauge, mfus=tuple(shares))
    ceiling = sources.ceilings.of(None).get(sources.ceilings.data_type or "")
    sheet = next((peak.ceiling for peak in sources.ceilings.mfu_peaks if peak.name == MFU), None)
    # Without a measured product the share is the MFU of lists and tables.
    mfu = ceiling is None or ceiling.kind != MEASURED
    return _with_ceiling(gauge, sheet if sheet is not None and mfu else ceiling)


def _flop_bound(sources: Sources, reason: str) -> Gauge | None:
    """The gauge of what the device's pipes executed at most; ``None``: it is not measured."""
    if sources.device is None or not sources.provides(TENSOR):
        return None
    found = of_pipes(sources.device.row, sources.ceilings.data_type, sources.series)
    if found is None:
        return None
    (history, text), tensor = found, sources.reading(TENSOR)
    now = history.rule([sources.reading(name).value for name in PIPES])
    reading = Reading(now, Method.BOUND, reason, text)
    if tensor.method is Method.UNAVAILABLE:
        reading = Reading(None, Method.UNAVAILABLE, tensor.reason, text, Method.BOUND)
    gauge = _gauge(sources, "flops", "Executed FLOP/s", "FLOP/s", reading, history)
    unknown = sources.ceilings.data_type is None
    return replace(gauge, note="type unknown: counted as the fastest" if unknown else "")


def _with_ceiling(gauge: Gauge, ceiling: Ceiling | None) -> Gauge:
    if ceiling is None:
        return gauge
    return replace(gauge, ceiling=ceiling.value, named_ceiling=ceiling)


def _unavailable(sources: Sources, key: str, title: str, unit: str, reason: str) -> Gauge:
    reading = Reading(None, Method.UNAVAILABLE, reason)
    return _gauge(sources, key, title, unit, reading, NOTHING)


def _counted(sources: Sources, key: str, title: str, unit: str, history: WorkRate) -> Gauge:
    """A gauge of counted work per second, which is that of all the run's GPUs."""
    gauge = _gauge(sources, key, title, unit, _steps_now(sources, history), history)
    several = sum(row.kind == "gpu" and bool(row.used) for row in sources.devices) > 1
    known = "whole run" if several else ""
    return replace(gauge, note=_UNKNOWN_GPUS if gpus_unknown(sources.devices) else known)


def _steps_now(sources: Sources, history: WorkRate) -> Reading:
    """Work per second of the newest step lines; unknown if they are too old."""
    silence = sources.steps.silence(sources.t) if sources.live else None
    return Reading(None if silence else history.last(), Method.COUNTED, silence, "step lines")


def _no_count_reason(sources: Sources, what: str) -> str:
    if sources.kind == "import":
        return _IMPORTED
    if sources.kind == "machine":
        return "no workload: FLOP are counted from its steps"
    if not sources.steps.any:
        # Of a run that is over why stands with the workload.
        return no_steps_yet(sources.meta) if sources.live else NO_STEPS
    if sources.unused:
        return "the run does not use this GPU"
    return sources.steps.doubt or f"the workload counts no {what}"


def _gauge(
    sources: Sources, key: str, title: str, unit: str, reading: Reading, history: History
) -> Gauge:
    """The gauge; of a run that is over with the mean over the period in place of the last value."""
    columns = tuple(history.columns(sources.window))
    gauge = Gauge(key, title, unit, reading, None, columns, 1.0, mean=False)
    lost = reading.method is Method.UNAVAILABLE
    method = reading.earlier_method if lost else reading.method
    known = [value for value in columns if value is not None]
    if sources.live or method is Method.UNAVAILABLE or (lost and not known):
        return gauge
    (start, end, period), covered = sources.period, None
    if method is Method.COUNTED and period == "whole run":
        if sources.steps.timed_start is None:  # the start-up would be in it
            return replace(gauge, reading=reading._replace(value=None, reason=NO_STEPS))
        start, end, period = *sources.steps.timed, "timed steps"  # too short for a sample's mean
    value = reading.value if reading.peak else history.mean(start, end)
    if lost:
        value, period, covered = sum(known) / len(known), "", len(known) / len(columns)
    elif value is None:
        what = "step" if method is Method.COUNTED else "value"
        return replace(
            gauge, reading=reading._replace(value=None, reason=f"no {what} in the {period}")
        )
    reading = reading._replace(value=value, method=method)
    return replace(gauge, reading=reading, mean=True, period=period, covered=covered)


def _with_scale(gauge: Gauge, sources: Sources) -> Gauge:
    """The gauge with a scale up to the largest value that it has shown so far."""
    known = [
        value for value in (*gauge.history, *gauge.ghost, gauge.reading.value) if value is not None
    ]
    device = sources.device.row.id if sources.device else None
    key = (f"{gauge.key} {gauge.title}", device)
    most = min(_MAX_SCALE, max(known)) if known else 0.0
    top = nice(most) if most > 0 else 0.0
    if gauge.ceiling is not None and _CEILING_SHARE * gauge.ceiling <= most <= gauge.ceiling:
        top = gauge.ceiling
    sources.scales[key] = max(sources.scales.get(key, 0.0), top)
    return replace(gauge, scale=sources.scales[key])


def _logarithmic(gauge: Gauge) -> Gauge:
    """The gauge on a logarithmic scale, if its history spans a decade: most of it would be flat."""
    known = [value for value in (*gauge.history, *gauge.ghost) if value is not None]
    if not known or not 0 < _DECADE * min(known) <= max(known):
        return gauge
    floor = 10.0 ** math.floor(math.log10(min(known)))
    return replace(gauge, title=f"{gauge.title}, log scale", floor=floor)


# A picked metric.

LOSS, STEP_TIME, THROUGHPUT = "loss", "step time", "samples/s"
_STEPS = {LOSS: "", THROUGHPUT: "{sample}/s", STEP_TIME: "s"}
"""Figures of the steps, and their units."""
_TOPS: Mapping[str, str | float] = {
    "hw.gpu.memory.usage": "memory.total",
    "hw.gpu.power": "power.limit",
    "hw.gpu.temperature": 100.0,
    "hw.gpu.clock.sm": "clock.sm.max",
    "hw.gpu.clock.memory": "clock.memory.max",
    "hw.memory.usage": "memory.total",
}
"""Ends of scales: a number, or the device attribute that holds it; of shares it is 1."""
_PICKED = tuple(
    metric.name
    for metric in CATALOGUE.values()
    if metric.name not in (*DERIVED, "hw.gpu.utilization", _BANDWIDTH) and metric.unit[0] != "{"
)
"""Sampled metrics that can be picked."""


def title_of(key: str) -> str:
    """What a picked metric is called."""
    name = key if key in _STEPS else reading_of(key)[0]
    return name[0].upper() + name[1:]


def metrics_of(devices: Sequence[DeviceNow], selected: str | None, steps: Steps) -> Iterator[str]:
    """Keys of the available metrics of the steps, the selected device, the host and the process,
    in that order."""
    if steps.any:
        available = {LOSS: steps.losses.seen, THROUGHPUT: steps.samples.seen}
        yield from (key for key in _STEPS if available.get(key, steps.times.seen))
    for key in _PICKED:
        device = _device(key, devices, selected)
        if device is None or device.get(key).method is Method.UNAVAILABLE:
            continue
        if key != "hw.cpu.utilization" or device.row.id != selected:  # else a gauge shows it
            yield key


def picked_of(key: str, devices: Sequence[DeviceNow], sources: Sources) -> Gauge:
    """The metric ``key`` over the window, or the reason why it is unavailable."""
    title = title_of(key)
    if key in _STEPS:
        reading, history = _step_figure(key, sources)
        own = sources
        if key != THROUGHPUT:
            # A loss falls: its mean says nothing. Scales are of what is shown: a stall passes.
            own = replace(sources, live=sources.live or key == LOSS, scales={})
        gauge = _gauge(own, PICKED, title, _STEPS[key], reading, history)
        if key == STEP_TIME:
            view, earlier, recent = sources.window, sources.earlier, sources.steps.recent
            ghost = earlier.beside(recent, view) if isinstance(earlier, Earlier) else ()
            longest = tuple(sources.steps.longest.columns(view))
            gauge = replace(gauge, history=longest, ghost=ghost)
        gauge = _with_scale(gauge, own)
        return gauge if key == THROUGHPUT else _logarithmic(gauge)
    unit = reading_of(key)[1]
    device = _device(key, devices, sources.device.row.id if sources.device else None)
    if device is None:
        return _gauge(sources, PICKED, title, unit, MISSING, NOTHING)
    history = sources.series.get((device.row.id, key), NOTHING)
    gauge = _gauge(sources, PICKED, title, unit, device.get(key), history)
    end = _TOPS.get(key, 1.0 if unit == "1" else "")
    top = device.attribute(end) if isinstance(end, str) else end
    if top is not None:
        # Memory, power and activity are shares of their limits; temperatures and clocks are not.
        ceiling = top if unit in ("By", "W", "1") else None
        return replace(gauge, ceiling=ceiling, scale=top)
    return _with_scale(gauge, sources)


def _device(key: str, devices: Sequence[DeviceNow], selected: str | None) -> DeviceNow | None:
    kind = "gpu" if key.startswith("hw.gpu.") else "cpu"
    kind = "workload" if key.startswith(("process.", "container.")) else kind
    candidates = (device for device in devices if device.row.kind == kind)
    return next((each for each in candidates if kind != "gpu" or each.row.id == selected), None)


def _step_figure(key: str, sources: Sources) -> tuple[Reading, History]:
    steps = sources.steps
    if key == THROUGHPUT:
        return _steps_now(sources, steps.samples), steps.samples
    last, history = steps.newest_loss, steps.losses
    if key == STEP_TIME:
        last, history = steps.last_seconds(), steps.times
    if last is not None:
        return Reading(last, Method.MEASURED, None, "step lines"), history
    why = steps.lacks(sources.meta, key, live=sources.live)
    why = why if steps.any else _no_count_reason(sources, key)
    return Reading(None, Method.UNAVAILABLE, why, "step lines"), history


# All GPUs.


def panels_of(
    sources: Sources, devices: Sequence[DeviceNow], alerts: Sequence[Alert]
) -> tuple[Panel, ...]:
    """A panel for each GPU: its utilization over the window, bandwidth and most serious warning."""
    panels = []
    for device in devices:
        if device.row.kind == "gpu":
            own = replace(sources, device=device)
            history = tuple(own.history("hw.gpu.utilization").columns(sources.window))
            problem = next((each.short for each in alerts if device.row.id in each.gpus), "")
            bandwidth = own.reading(_BANDWIDTH)
            if not own.provides(_BANDWIDTH):
                bandwidth = _bandwidth_bound(own, bandwidth.reason) or bandwidth
            panels.append(Panel(device, history, bandwidth, problem))
    return tuple(panels)


_NEWEST_FILES, _MOST_LINES = 100, 20_000
"""Newest sessions that are opened before all others, and first step lines that are read of it."""


@dataclass(frozen=True)
class Earlier:
    """A finished run, by its timed step lines in order."""

    began: str
    """When, in local time."""
    rows: Sequence[StepRow]

    def beside(self, recent: Sequence[StepRow], view: Window) -> tuple[float | None, ...]:
        """For each column of ``view`` the longest time, in seconds, that this run took for the
        steps that the run with the lines ``recent`` took then."""
        times = [row.t for row in recent]
        values: list[float | None] = []
        for start, end in pairwise(view.edges()):
            same: Sequence[StepRow] = ()
            if times and start < times[-1] and times[0] <= end:
                first = recent[bisect_right(times, start)]
                last = recent[min(bisect_left(times, end), len(times) - 1)]
                same = self._of(first.step - first.count + 1, last.step)
            values.append(max((max(row.seconds or (0.0,)) for row in same), default=None))
        return tuple(values)

    def compared(self, timed: Sequence[StepRow]) -> str:
        """The median time of the newest timed steps and of the same steps of this run: of one run
        each there is no verdict."""
        now = _by_step(timed)
        then = _by_step(self._of(min(now), max(now))) if now else {}
        if not (same := sorted(now.keys() & then.keys())):
            return f"the run of {self.began} has no times of these steps"
        middle = [milliseconds(median(of[step] for step in same)) for of in (now, then)]
        return (
            f"same steps, median: {middle[0]}, last finished run {middle[1]}: no verdict; "
            f"it began {self.began}, one run each; steps {same[0]:,}–{same[-1]:,}"
        )

    def _of(self, first: int, last: int) -> Sequence[StepRow]:
        """The lines with these steps."""
        begin, end = (bisect_left(self.rows, at, key=attrgetter("step")) for at in (first, last))
        rows = self.rows[begin : end + 1]
        return rows[:-1] if rows and rows[-1].step - rows[-1].count >= last else rows


def earlier_of(path: Path, meta: Mapping[str, JSON]) -> Iterator[Earlier | Search]:
    """The newest run of the same command and environment in the folder of the session's study that
    began before it and is finished, if there is one; before it ``GOES_ON`` for each file opened."""
    began = (number(mapping(meta.get("clock")).get("unix_ns")) or 0.0) / 1e9  # as ``timing`` rounds
    files = sorted(path.parent.parent.glob(f"*/*{SUFFIX}"), key=changed, reverse=True)
    before = []
    for at, each in enumerate(map(timing, files)):
        if each and each.finished and each.cell == cell_of(meta) and each.start < began:
            before.append(each)
        if before and at >= _NEWEST_FILES:
            break
        yield Search.GOES_ON
    if not before:
        return
    newest = max(before, key=lambda each: each.start)
    with SessionReader(newest.path) as reader:
        rows = [row for row in islice(reader.all_steps(), _MOST_LINES) if not row.warmup]
    when = time.strftime("%d %b %H:%M", time.localtime(newest.start))
    yield Earlier(when, [row for row in rows if row.seconds])


def _by_step(rows: Sequence[StepRow]) -> dict[int, float]:
    """Seconds of each step by its number."""
    return {
        step: seconds
        for row in rows
        for step, seconds in enumerate(row.seconds or (), row.step - len(row.seconds or ()) + 1)
    }
