"""Energy over the steady window: joules per step and per sample."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from gpuwatch.analysis.measured_value import MeasuredValue, divided, unknown
from gpuwatch.analysis.samples.channels import FULL, Samples, arrays, integral
from gpuwatch.analysis.samples.window import Window
from gpuwatch.analysis.statistics.description import Statistic, unavailable
from gpuwatch.core import units
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method

COUNTER, POWER, CPU_POWER = "hw.gpu.energy", "hw.gpu.power", "hw.cpu.power"
SHORTEST = 1.0
"""Shortest window in seconds: power sensors measure only part of the time (a quarter of it on A100
and H100: Z. Yang et al., arXiv 2312.02741), and energy counters are updated about ten times a
second."""

_UPDATE_NS = 100_000_000
"""Between two updates of the energy counter: 0.1 s on an H200 (docs/validation.md)."""
_ROUGH = 0.1
"""Relative error beyond which the counter gives way to the integral of power."""
_LEAST_SPAN = 0.5
"""Share of the window that the counter's readings span at least: the first and the last, late by up
to an update each, are then off by at most two updates over the window."""
_ERRORS = 4
"""Standard errors: of independent samples 2 would do, but a load whose period is near that of the
samples scatters their mean up to twice as much."""


@dataclass(frozen=True)
class Energy:
    """Energy in joules; unknown for windows under one second."""

    gpu: MeasuredValue
    """All GPUs that the run used, over the window; the others are of the timed steps."""
    gpu_per_step: MeasuredValue
    gpu_per_sample: MeasuredValue
    cpu: MeasuredValue
    """CPU packages of the whole machine, whichever program used them."""
    cpu_per_step: MeasuredValue
    cpu_per_sample: MeasuredValue


def energy_of(
    samples: Sequence[Samples],
    gpus: Sequence[str],
    window: Window,
    steps: int | None,
    batch: float | None,
    missing: str | None = None,
    doubt: str | None = None,
) -> Energy:
    """Energy in ``window``, whose ``steps`` timed steps processed ``batch`` samples in total.

    ``steps`` is ``None`` where the window is not that of the timed steps; ``missing`` is the reason
    for a run without GPUs, ``doubt`` that against any figure per step.
    """
    if not gpus:  # whatever is in doubt of the steps
        doubt = None
    gpu, cpu = gpu_energy(samples, gpus, window, missing), _cpu(samples, window)
    if steps and window.seconds < SHORTEST:
        length = units.milliseconds(window.seconds)
        gpu = cpu = unknown("J", f"the timed steps took {length}: energy needs at least a second")
    if not steps:
        cpu = unknown("J", "no timed step was sampled")

    def shares(of: MeasuredValue) -> tuple[MeasuredValue, MeasuredValue]:
        """Of a step and of a sample."""
        if doubt:
            return unknown("J", doubt), unknown("J", doubt)
        return (
            divided(of, steps, "J", "the timed steps", "no timed step was reported"),
            divided(of, batch, "J", "the timed steps' samples", "the workload told no samples"),
        )

    return Energy(gpu, *shares(gpu if steps else cpu), cpu, *shares(cpu))


def with_energy(
    metrics: Mapping[str, Statistic],
    samples: Sequence[Samples],
    gpus: Sequence[str],
    window: Window,
) -> Mapping[str, Statistic]:
    """``metrics`` with the energy of ``gpus`` replaced by that of :func:`gpu_energy`."""
    statistic = metrics.get(COUNTER) or unavailable("J", "", "not sampled")
    figure = gpu_energy(samples, gpus, window)
    if figure.value is None:
        missing = unavailable(statistic.unit, statistic.source, figure.reason or "not known")
        return metrics if statistic.max is None else {**metrics, COUNTER: missing}
    mean, p50, p95 = (
        v * figure.value / statistic.max if v is not None and statistic.max else None
        for v in (statistic.mean, statistic.p50, statistic.p95)
    )
    of = statistic.unit, figure.method, figure.source, statistic.count
    return {**metrics, COUNTER: Statistic(*of, mean, p50, p95, figure.value, None)}


def gpu_energy(
    samples: Sequence[Samples], gpus: Sequence[str], window: Window, missing: str | None = None
) -> MeasuredValue:
    """Joules that all ``gpus`` together used in ``window``; ``missing``: why there are none.

    By the energy counter. Where that is missing, stands still (no GPU uses 0 J in a second) or is
    more than 10 % off, the integral of power. The source states the largest error.
    """
    if window.seconds < SHORTEST:
        length = units.milliseconds(window.seconds)
        return unknown("J", f"the window is {length}: energy needs at least a second")
    if not gpus:
        return unknown("J", missing or "the run used no GPU")
    counter = _total(COUNTER, _counted, samples, gpus, window)
    if counter.value is not None and counter.error <= _ROUGH:
        return _figure(_BY_COUNTER, counter)
    power = _total(POWER, _integrated, samples, gpus, window)
    if counter.value is not None and (power.value is None or counter.error <= power.error):
        return _figure(_BY_COUNTER, counter)
    if power.value is None:
        return unknown("J", f"{_BY_COUNTER}: {counter.why}; {_BY_POWER}: {power.why}")
    why = counter.why if counter.value is None else f"only ±{units.percent(counter.error)}"
    return _figure(_BY_POWER, power, f"; {_BY_COUNTER}: {why}")


_BY_COUNTER, _BY_POWER = "energy counter", "integral of power over time"


@dataclass(frozen=True)
class _Found:
    """What one way says of one GPU, or of several together."""

    value: float | None
    error: float
    why: str
    """Where the error comes from; where ``value`` is unknown, the reason."""
    source: str = ""


_Way = Callable[[Sequence[tuple[int, float]], Window], _Found]
"""A way to the energy of one GPU, from the samples of a metric."""


def _total(
    metric: str, way: _Way, samples: Sequence[Samples], gpus: Sequence[str], window: Window
) -> _Found:
    series = {each.channel.device: each for each in samples if each.channel.metric == metric}
    found = [_of_gpu(way, series.get(gpu), window) for gpu in gpus]
    lacking = {gpu: each.why for gpu, each in zip(gpus, found, strict=True) if each.value is None}
    if len(gpus) == 1:
        return found[0]
    if lacking:
        return _unknown(", ".join(f"{gpu} {reason}" for gpu, reason in lacking.items()))
    source = "; ".join(dict.fromkeys(each.source for each in found))
    worst = max(found, key=lambda each: each.error)
    total = sum(each.value or 0.0 for each in found)
    return replace(worst, value=total, source=f"{source}, sum over {len(gpus)} GPUs")


def _of_gpu(way: _Way, series: Samples | None, window: Window) -> _Found:
    if series is None:
        return _unknown("not sampled")
    found = way(series.values, window)
    if found.value is None:
        return _unknown(series.channel.reason or found.why)
    return replace(found, source=series.channel.source)


def _unknown(why: str) -> _Found:
    return _Found(None, 0.0, why)


def _figure(way: str, found: _Found, behind: str = "") -> MeasuredValue:
    source = f"{way} ({found.source}), ±{units.percent(found.error)}: {found.why}"
    return MeasuredValue(found.value, "J", Method.MEASURED, source + behind, error=found.error)


def _counted(values: Sequence[tuple[int, float]], window: Window) -> _Found:
    """From the first reading in the window to the last, scaled to all of it.

    Readings outside are not used: before and after the timed steps the load is another. A value
    that repeats is the same reading, shown again; such a reading was taken some time between two
    samples, any other with its sample. The error is two updates, and for the ends of the window
    the largest deviation of the power between two readings that updates do not explain.
    """
    t, counts = arrays(values)
    inside = (t >= window.start) & (t <= window.end)
    known = np.flatnonzero(inside)
    at = np.flatnonzero(inside & np.concatenate([[True], np.diff(counts) != 0])[: t.size])
    length = window.end - window.start
    if (np.diff(counts[known]) < 0).any():
        return _unknown("was reset")
    if known.size > 1 and counts[known[0]] == counts[known[-1]]:
        return _unknown(f"did not move in {_length(window)}")
    span = int(t[at[-1]] - t[at[0]]) if at.size > 2 else 0
    if span < _LEAST_SPAN * length:
        return _unknown(f"too few readings in {_length(window)}")
    rise, apart = np.diff(counts[at]), np.diff(t[at])
    ends = at[[0, -1]]
    late = np.max(t[ends] - t[np.maximum(ends - 1, 0)]) if at.size < known.size else 0
    dated, total = _UPDATE_NS + float(late), float(rise.sum())
    varied = np.max(np.abs(rise / apart * span / total - 1) - dated / apart)
    error = (2 * dated + (length - span) * max(0.0, float(varied))) / length
    why = f"dated to {dated / 1e9:.2g} s of {_length(window)}"
    return _Found(total * length / span, error, why)


def _integrated(values: Sequence[tuple[int, float]], window: Window) -> _Found:
    """The integral of power. The error is :data:`_ERRORS` standard errors of the mean of the
    samples, and what the one that begins before the window may be off."""
    part = integral(values, window)
    if part.coverage < FULL:
        return _unknown(_covers(part.coverage))
    joules = part.total / part.coverage
    if joules <= 0:
        return _unknown(f"was 0 in {_length(window)}")
    t, power = arrays(values)
    inside = (t >= window.start) & (t <= window.end)
    edge = int(np.argmax(inside))
    inside[edge] = False
    each = power[inside]
    if each.size < 2:
        few = units.counted(each.size, "sample lies", "samples lie")
        return _unknown(f"only {few} within {_length(window)}")
    off = _ERRORS * float(each.std(ddof=1)) / math.sqrt(each.size) * window.seconds
    off += (int(t[edge]) - window.start) / 1e9 * abs(float(power[edge] - each.mean()))
    return _Found(joules, off / joules, f"by the scatter of {each.size} samples")


def _cpu(samples: Sequence[Samples], window: Window) -> MeasuredValue:
    series = next((series for series in samples if series.channel.metric == CPU_POWER), None)
    if series is None:
        return unknown("J", "the power of the CPU packages was not sampled")
    part = integral(series.values, window)
    if part.coverage < FULL:
        return unknown("J", series.channel.reason or _covers(part.coverage))
    source = f"{_BY_POWER} ({series.channel.source})"
    return MeasuredValue(part.total / part.coverage, "J", Method.MEASURED, source)


def _length(window: Window) -> str:
    return units.number(window.seconds, "s", ".3g")


def _covers(coverage: float) -> str:
    return f"its samples cover only {units.percent(coverage)} of the timed steps"
