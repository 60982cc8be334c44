"""Statistics of every metric of a session over a window."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from gpuwatch.analysis.hardware.ceilings import UNKNOWN_GPUS, gpus_unknown
from gpuwatch.analysis.hardware.program import NO_RATE, unknown_rate
from gpuwatch.analysis.samples.cpu_time import MOST_SECONDS, TICK_SECONDS
from gpuwatch.analysis.samples.rates import Span, StepLine, intervals, mean_rate, spread, works
from gpuwatch.analysis.samples.source import Column, Source
from gpuwatch.analysis.samples.step_lines import NO_STEPS, ends_told
from gpuwatch.analysis.samples.window import WHOLE_RUN, Window
from gpuwatch.analysis.statistics.description import Statistic, describe, unavailable
from gpuwatch.core.metrics import CATALOGUE, DERIVED, Kind, Method
from gpuwatch.core.models import JSON, mapping
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.rows import ChannelRow

Metrics = Mapping[str, Statistic]
CPU_TIME = "process.cpu.time"
_SPAN = ", over the time of the timed steps"
_IMPORTED = "an imported profile holds no samples and no steps"


def statistics_of(
    reader: SessionReader,
    source: Source,
    window: Window,
    steps: Sequence[StepLine],
    count: Mapping[str, JSON],
    silent: str,
    doubt: str | None = None,
) -> tuple[Metrics, dict[str, Metrics]]:
    """Every metric of the catalogue, over the devices that the run used; and every sampled metric
    of each device, by device id.

    Over several devices, samples of gauges are pooled and values of counters are added. In the
    mean of a gauge each sample counts by the time that it covers in the window. ``silent``: why
    there are no steps, if there are none. ``doubt``: why no rate follows from the steps.
    """
    devices, channels = reader.devices(), reader.channels()
    used = {device.id for device in devices if device.used}
    missing = _missing_reason(reader)
    # Step rates need no samples: their window is that of the steps even if none lies in it.
    spans = [span for span in intervals(steps) if not span[2].warmup]
    start, end = (spans[0][0], spans[-1][1]) if spans else (0, 0)
    edges = [start, *source.edges(start, end), end] if end > start else []
    silent = NO_STEPS if steps else silent
    meta = reader.meta()
    told = ends_told(meta)
    # What a lost run counted after its last sample is not known.
    cut = window.kind == WHOLE_RUN and "closed" not in meta
    statistics: dict[str, Statistic] = {}
    single: dict[tuple[str, str], Statistic] = {}
    others = dict.fromkeys(
        channel.metric for channel in channels if channel.metric not in CATALOGUE
    )
    for name in (*CATALOGUE, *others):
        of_metric = [channel for channel in channels if channel.metric == name]
        columns = source.columns(of_metric, window) if of_metric else {}
        for channel in of_metric:
            single[channel.device, name] = _describe([channel], [columns[channel.id]], cut)
        if name in DERIVED:
            statistics[name] = _derived(name, spans, edges, count, doubt, silent, told=told)
        elif name in CATALOGUE:
            pooled = [channel for channel in of_metric if channel.device in used]
            if not pooled:
                statistics[name] = unavailable(CATALOGUE[name].unit, "", missing(name))
                continue
            if len(pooled) == 1:
                described = single[pooled[0].device, name]
            else:
                described = _describe(pooled, [columns[channel.id] for channel in pooled], cut)
            statistics[name] = _resolved(described) if name == CPU_TIME else described
    if mapping(meta.get("workload")).get("kind") == "import":
        statistics = {
            name: unavailable(metric.unit, "", _IMPORTED) for name, metric in CATALOGUE.items()
        }
    return statistics, {
        device.id: {
            channel.metric: single[device.id, channel.metric]
            for channel in channels
            if channel.device == device.id
        }
        for device in devices
    }


def _describe(channels: Sequence[ChannelRow], columns: Sequence[Column], cut: bool) -> Statistic:
    """``cut``: the run may have gone on after the window."""
    first = channels[0]
    sampled = [c for c in channels if c.sampled_as is not Method.UNAVAILABLE] or [first]
    method, source = sampled[0].sampled_as, sampled[0].source
    # A device that never had it leaves no gap in the samples of the others; one that fell out does.
    pairs = zip(channels, columns, strict=True)
    coverage = min(column.coverage for channel, column in pairs if channel in sampled)
    reason = "no sample fell into the window"
    if first.kind == Kind.COUNTER.value:
        values = np.sum([_from_start(column.values) for column in columns], axis=0)
        if np.count_nonzero(~np.isnan(values)) < 2:
            values, reason = values[:0], "a difference needs two samples, and the window has fewer"
        elif coverage < 1 or cut:
            method = Method.BOUND
            source += "; at least: between its first reading in the window and its last"
    else:
        values = np.concatenate([column.values for column in columns])
    described = describe(
        values, unit=first.unit, method=method, source=source, reason=first.reason or reason
    )
    if described.count and (first.kind != Kind.COUNTER.value or method is Method.BOUND):
        described = replace(described, coverage=coverage)
    # Without any: a counter, or a single sample, of which nobody knows since when it stands.
    weighted = [(each.mean, each.coverage) for each in columns if each.mean is not None]
    if not weighted:
        return described
    total = sum(mean * weight for mean, weight in weighted)
    return replace(described, mean=total / sum(weight for _, weight in weighted))


def _from_start(values: np.ndarray) -> np.ndarray:
    known = values[~np.isnan(values)]
    return values - known[0] if known.size else values


def _derived(
    name: str,
    spans: Sequence[Span],
    edges: Sequence[int],
    count: Mapping[str, JSON],
    doubt: str | None,
    silent: str,
    *,
    told: bool,
) -> Statistic:
    """``edges``: between rates, in ns; ``silent``: the reason if there are no steps."""
    unit = CATALOGUE[name].unit
    work, source = works(count)[name]
    if name != "gpuwatch.throughput":
        source += _SPAN
    if not spans:
        return unavailable(unit, source, silent)
    if doubt and any(work(row) is not None for _, _, row in spans):
        return unavailable(unit, source, doubt)
    every = sum(row.count for _, _, row in spans)
    silent_steps = sum(row.count for _, _, row in spans if work(row) is None)
    if 0 < silent_steps < every:
        return unavailable(unit, source, f"{silent_steps:,} of {every:,} steps do not tell it")
    missing = unknown_rate(name, count) if edges and silent_steps else NO_RATE
    rate = mean_rate([row for _, _, row in spans], work, told=told)
    if rate is None:
        return unavailable(unit, source, missing)
    rates = spread(spans, work, edges)  # none where all lines came at once, with their times
    described = describe(rates, unit=unit, method=Method.COUNTED, source=source, reason=missing)
    return replace(described, method=Method.COUNTED, mean=rate, reason=None)


def _resolved(time: Statistic) -> Statistic:
    """``process.cpu.time``; an upper bound where its increase is below the kernel's resolution."""
    if time.max is None or time.max >= TICK_SECONDS or time.coverage is not None:
        return time
    bound = MOST_SECONDS
    source = f"{time.source}; at most: it counts in ticks of {TICK_SECONDS * 1e3:.0f} ms"
    return replace(
        time, method=Method.BOUND, source=source, mean=bound, p50=bound, p95=bound, max=bound
    )


def _missing_reason(reader: SessionReader) -> Callable[[str], str]:
    host = reader.facts().get("host", {})
    devices = reader.devices()
    if any(device.kind == "gpu" and device.used for device in devices):
        no_gpu = "not sampled"
    elif gpus_unknown(devices):
        no_gpu = UNKNOWN_GPUS
    else:
        no_gpu = str(host.get("gpu.unavailable") or "the run used no GPU")

    def reason(name: str) -> str:
        if name.startswith(("hw.gpu.", "process.gpu.")):
            return no_gpu
        if name.startswith("process.") and not any(d.kind == "workload" for d in devices):
            return "the machine alone was recorded, without a workload"
        if name.startswith("container."):
            return "the control group is read only for Docker containers"
        return "not sampled"

    return reason
