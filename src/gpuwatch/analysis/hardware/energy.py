"""Energy over the steady window: joules per step and per sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from gpuwatch.analysis.measured_value import MeasuredValue, divided, unknown
from gpuwatch.analysis.samples.channels import FULL, Samples, arrays, integral
from gpuwatch.analysis.samples.window import Window
from gpuwatch.analysis.statistics.description import Statistic, unavailable
from gpuwatch.core import units
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method

COUNTER, CPU_POWER = "hw.gpu.energy", "hw.cpu.power"
SHORTEST = 1.0
"""Shortest window in seconds: power sensors measure only part of the time (a quarter of it on A100
and H100: Z. Yang et al., arXiv 2312.02741), and energy counters are updated about ten times a
second."""

_UPDATE_NS = 100_000_000
"""Between two updates of the energy counter: 0.1 s on an H200 (docs/validation.md)."""
_LEAST_SPAN = 0.5
"""Share of the window that the counter's readings span at least: the first and the last, late by up
to an update each, are then off by at most two updates over the window."""


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
    short = ""
    if not steps:
        short = "no timed step was sampled"
    elif window.seconds < SHORTEST:
        length = units.milliseconds(window.seconds)
        short = f"the timed steps took {length}: energy needs at least a second"
    gpu = cpu = unknown("J", short)
    if not short:
        gpu, cpu = gpu_energy(samples, gpus, window, missing), _cpu(samples, window)

    def over(energy: MeasuredValue) -> tuple[MeasuredValue, MeasuredValue]:
        """Of a step, and of a sample."""
        if doubt:
            return unknown("J", doubt), unknown("J", doubt)
        none = "no timed step was reported", "the workload reported no samples"
        return (
            divided(energy, steps, "J", "the timed steps", none[0]),
            divided(energy, batch, "J", "the timed steps' samples", none[1]),
        )

    return Energy(gpu, *over(gpu), cpu, *over(cpu))


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


def gpu_energy(
    samples: Sequence[Samples], gpus: Sequence[str], window: Window, missing: str | None = None
) -> MeasuredValue:
    """Joules that all ``gpus`` together used in ``window``, by their energy counters; ``missing``:
    why there are none.

    The source states the largest error. No GPU uses 0 J in a second: a counter that stands still
    tells nothing.
    """
    if window.seconds < SHORTEST:
        length = units.milliseconds(window.seconds)
        return unknown("J", f"the window is {length}: energy needs at least a second")
    if not gpus:
        return unknown("J", missing or "the run used no GPU")
    total, worst, told = 0.0, -1.0, ""
    sources: dict[str, None] = {}
    counters = {each.channel.device: each for each in samples if each.channel.metric == COUNTER}
    for gpu in gpus:
        series = counters.get(gpu)
        if series is None:
            return unknown("J", f"the energy counter of {gpu} was not sampled")
        joules, error, why = _counted(series.values, window)
        if joules is None:
            return unknown("J", f"energy counter of {gpu}: {series.channel.reason or why}")
        total += joules
        sources[series.channel.source] = None
        if error > worst:
            worst, told = error, why
    several = f", sum over {len(gpus)} GPUs" if len(gpus) > 1 else ""
    source = (
        f"energy counter ({'; '.join(sources)}{several}), within {units.percent(worst)}: {told}"
    )
    return MeasuredValue(total, "J", Method.MEASURED, source)


def _counted(
    values: Sequence[tuple[int, float]], window: Window
) -> tuple[float | None, float, str]:
    """Joules from the first reading in the window to the last, scaled to all of it, their relative
    error, and where that comes from; or ``None``, 0 and the reason.

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
    in_all = units.number(window.seconds, "s", ".3g")
    if (np.diff(counts[known]) < 0).any():
        return None, 0.0, "was reset"
    if known.size > 1 and counts[known[0]] == counts[known[-1]]:
        return None, 0.0, f"did not move in {in_all}"
    span = int(t[at[-1]] - t[at[0]]) if at.size > 2 else 0
    if span < _LEAST_SPAN * length:
        return None, 0.0, f"too few readings in {in_all}"
    rise, apart = np.diff(counts[at]), np.diff(t[at])
    ends = at[[0, -1]]
    late = np.max(t[ends] - t[np.maximum(ends - 1, 0)]) if at.size < known.size else 0
    dated, total = _UPDATE_NS + float(late), float(rise.sum())
    varied = np.max(np.abs(rise / apart * span / total - 1) - dated / apart)
    error = (2 * dated + (length - span) * max(0.0, float(varied))) / length
    return total * length / span, error, f"dated to {dated / 1e9:.2g} s of {in_all}"


def _cpu(samples: Sequence[Samples], window: Window) -> MeasuredValue:
    series = next((series for series in samples if series.channel.metric == CPU_POWER), None)
    if series is None:
        return unknown("J", "the power of the CPU packages was not sampled")
    part = integral(series.values, window)
    if part.coverage < FULL:
        covered = f"its samples cover only {units.percent(part.coverage)} of the timed steps"
        return unknown("J", series.channel.reason or covered)
    source = f"integral of power over time ({series.channel.source})"
    return MeasuredValue(part.total / part.coverage, "J", Method.MEASURED, source)
