"""Energy over the steady window: joules per step and per sample."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from gpuwatch.analysis.measured_value import MeasuredValue, divided, unknown
from gpuwatch.analysis.samples.channels import FULL, Means, Samples, added, arrays, integral, middle
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
COUNTER_FROM = 10.0
"""Window in seconds from which on the energy counter is preferred: it is dated by the sample that
shows it first, up to an interval late. In shorter windows the integral of power is better."""

_NO_GPU = "the run used no GPU"
_NEGLIGIBLE = 0.001


@dataclass(frozen=True)
class Energy:
    """Energy in joules; unknown for windows under one second."""

    gpu: MeasuredValue
    """All GPUs that the run used, over the timed steps."""
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
    short = _unfit(window, steps)
    if short:
        gpu = cpu = unknown("J", short)
    else:
        gpu = gpu_energy(samples, gpus, window) if gpus else unknown("J", missing or _NO_GPU)
        cpu = _cpu(samples, window)
    return Energy(
        gpu, _per_step(gpu, steps, doubt), _per_sample(gpu, batch, doubt),
        cpu, _per_step(cpu, steps, doubt), _per_sample(cpu, batch, doubt),
    )  # fmt: skip


def _per_step(energy: MeasuredValue, steps: int | None, doubt: str | None) -> MeasuredValue:
    if doubt:
        return unknown("J", doubt)
    return divided(energy, steps, "J", "the timed steps", "no timed step was reported")


def _per_sample(energy: MeasuredValue, batch: float | None, doubt: str | None) -> MeasuredValue:
    if doubt:
        return unknown("J", doubt)
    return divided(
        energy, batch, "J", "the timed steps' samples", "the workload reported no samples"
    )


def _unfit(window: Window, steps: int | None) -> str:
    if not steps:
        return "no timed step was sampled"
    if window.seconds < SHORTEST:
        length = units.milliseconds(window.seconds)
        return f"the timed steps took {length}: energy needs at least a second"
    return ""


def with_energy(
    metrics: Mapping[str, Statistic],
    samples: Sequence[Samples],
    gpus: Sequence[str],
    window: Window,
) -> Mapping[str, Statistic]:
    """``metrics`` with the energy of ``gpus`` replaced by that of :func:`gpu_energy`."""
    statistic = metrics.get(COUNTER)
    if statistic is None or statistic.max is None:
        return metrics
    figure = gpu_energy(samples, gpus, window)
    if figure.value is None:
        missing = unavailable(statistic.unit, statistic.source, figure.reason or "not known")
        return {**metrics, COUNTER: missing}
    mean, p50, p95 = (
        v * figure.value / statistic.max if v is not None and statistic.max > 0 else None
        for v in (statistic.mean, statistic.p50, statistic.p95)
    )
    scaled = replace(statistic, source=figure.source, mean=mean, p50=p50, p95=p95, max=figure.value)
    return {**metrics, COUNTER: scaled}


def gpu_energy(samples: Sequence[Samples], gpus: Sequence[str], window: Window) -> MeasuredValue:
    """Joules that all ``gpus`` together used in ``window``; the source states the expected error.

    The integral of power in windows under :data:`COUNTER_FROM`, else the energy counter. If one is
    missing or reads 0 (no GPU uses 0 J in a second), the other is used.
    """
    if window.seconds < SHORTEST:
        length = units.milliseconds(window.seconds)
        return unknown("J", f"the window is {length}: energy needs at least a second")
    if not gpus:
        return unknown("J", _NO_GPU)
    figures = [_gpu(samples, gpu, window) for gpu in gpus]
    lacking = [
        f"{gpu}: {figure.reason}"
        for gpu, figure in zip(gpus, figures, strict=True)
        if figure.value is None
    ]
    if lacking:
        return unknown("J", "; ".join(lacking))
    total = sum(figure.value or 0.0 for figure in figures)
    source = "; ".join(dict.fromkeys(figure.source for figure in figures))
    if len(gpus) > 1:
        source += f"; sum over {len(gpus)} GPUs"
    return MeasuredValue(total, "J", Method.MEASURED, source)


def _gpu(samples: Sequence[Samples], gpu: str, window: Window) -> MeasuredValue:
    of_gpu = {series.channel.metric: series for series in samples if series.channel.device == gpu}
    by_counter = (COUNTER, added, _dated, "energy counter")
    by_power = (POWER, integral, _scattered, "integral of power over time")
    ways = (by_counter, by_power) if window.seconds >= COUNTER_FROM else (by_power, by_counter)
    reasons = []
    for metric, over, error, name in ways:
        series = of_gpu.get(metric)
        if series is None:
            reasons.append(f"{name}: not sampled")
            continue
        part = over(series.values, window)
        if part.coverage < FULL:
            reasons.append(f"{name}: {series.channel.reason or _covers(part.coverage)}")
        elif part.total <= 0:
            still = "did not move" if metric == COUNTER else "was 0"
            reasons.append(f"{name}: {still} in {units.number(window.seconds, 's', '.3g')}")
        else:
            source = f"{name} ({series.channel.source}){error(series.values, window)}"
            source += "".join(f"; {reason}" for reason in reasons if "did not move" in reason)
            return MeasuredValue(part.total / part.coverage, "J", Method.MEASURED, source)
    return unknown("J", "; ".join(reasons))


def _dated(values: Sequence[tuple[int, float]], window: Window) -> str:
    """Relative error from the dates of readings: one interval between samples, over the window."""
    late = middle(np.diff(arrays(values)[0]))
    error = late / (window.end - window.start)
    return f", within {units.percent(error)}: readings are dated to {late / 1e9:.3g} s"


def _scattered(values: Sequence[tuple[int, float]], window: Window) -> str:
    """Two standard errors of the mean of power, from the scatter of its samples."""
    t, power = arrays(values)
    in_window, name = (t >= window.start) & (t <= window.end), "samples"
    if isinstance(values, Means):
        in_window, name = in_window & values.whole, "ten-second means"
    inside = power[in_window]
    if inside.size < 2 or inside.mean() <= 0:
        return ""
    error = 2 * float(inside.std(ddof=1)) / math.sqrt(inside.size) / float(inside.mean())
    if error < _NEGLIGIBLE:
        return ""
    return f", within {units.percent(error)} by the scatter of {inside.size} {name}"


def _cpu(samples: Sequence[Samples], window: Window) -> MeasuredValue:
    series = next((series for series in samples if series.channel.metric == CPU_POWER), None)
    if series is None:
        return unknown("J", "the power of the CPU packages was not sampled")
    part = integral(series.values, window)
    if part.coverage < FULL:
        return unknown("J", series.channel.reason or _covers(part.coverage))
    source = f"integral of power over time ({series.channel.source})"
    return MeasuredValue(part.total / part.coverage, "J", Method.MEASURED, source)


def _covers(coverage: float) -> str:
    return f"its samples cover only {units.percent(coverage)} of the timed steps"
