"""Energy over the steady window: joules per step and per sample."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from gpuwatch.analysis.measured_value import MeasuredValue, divided, unknown
from gpuwatch.analysis.samples.channels import (
    FULL,
    Integral,
    Means,
    Samples,
    added,
    arrays,
    integral,
    middle,
)
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

_ERRORS = 4
"""Standard errors: of independent samples 2 would do, but a load whose period is near that of the
samples scatters their mean up to twice as much."""
_NO_GPU = "the run used no GPU"
_NEGLIGIBLE = 0.001


@dataclass(frozen=True)
class GpuEnergies:
    """Joules of GPUs in two ways."""

    gpu: MeasuredValue
    """In the better way for the length of the window; the source names the other one too."""
    by_counter: MeasuredValue
    by_power: MeasuredValue
    """The integral of the sampled power."""


@dataclass(frozen=True)
class Energy:
    """Energy in joules; unknown for windows under one second."""

    gpus: GpuEnergies
    """All GPUs that the run used, over the timed steps."""
    gpu_per_step: MeasuredValue
    gpu_per_sample: MeasuredValue
    cpu: MeasuredValue
    """CPU packages of the whole machine, whichever program used them."""
    cpu_per_step: MeasuredValue
    cpu_per_sample: MeasuredValue

    @property
    def gpu(self) -> MeasuredValue:
        """That of all GPUs in the better way."""
        return self.gpus.gpu


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
        every, cpu = _neither(short), unknown("J", short)
    else:
        none = _neither(missing or _NO_GPU)
        every = gpu_energies(samples, gpus, window) if gpus else none
        cpu = _cpu(samples, window)
    gpu = every.gpu
    return Energy(
        every, _per_step(gpu, steps, doubt), _per_sample(gpu, batch, doubt),
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
    """Joules that all ``gpus`` together used in ``window``: ``gpu`` of :func:`gpu_energies`."""
    return gpu_energies(samples, gpus, window).gpu


def gpu_energies(samples: Sequence[Samples], gpus: Sequence[str], window: Window) -> GpuEnergies:
    """Joules that all ``gpus`` together used in ``window``, in both ways.

    ``gpu`` is the integral of power in windows under :data:`COUNTER_FROM`, else the energy counter.
    If one is missing or reads 0 (no GPU uses 0 J in a second), it is the other. Its source states
    the expected error, which is never less than the difference between the two.
    """
    if window.seconds < SHORTEST:
        length = units.milliseconds(window.seconds)
        return _neither(f"the window is {length}: energy needs at least a second")
    if not gpus:
        return _neither(_NO_GPU)
    counter, power = (_total(way, samples, gpus, window) for way in (_BY_COUNTER, _BY_POWER))
    ways = (counter, power) if window.seconds >= COUNTER_FROM else (power, counter)
    best = _best(*ways) if ways[0].value is not None else _best(*reversed(ways))
    return GpuEnergies(best, *(_alone(way) for way in (counter, power)))


@dataclass(frozen=True)
class _Way:
    """A way to the energy of one GPU."""

    name: str
    metric: str
    over: Callable[[Sequence[tuple[int, float]], Window], Integral]
    error: Callable[[Sequence[tuple[int, float]], Window], tuple[float, str]]
    """Relative error, and where it comes from."""
    zero: str
    """What is said of 0 J."""


@dataclass(frozen=True)
class _Found:
    """What one way says of one GPU, or of several together."""

    name: str
    value: float | None
    source: str
    error: float
    why: str
    """Where the error comes from; where ``value`` is unknown, the reason."""


def _neither(reason: str) -> GpuEnergies:
    return GpuEnergies(*[unknown("J", reason)] * 3)


def _total(way: _Way, samples: Sequence[Samples], gpus: Sequence[str], window: Window) -> _Found:
    found = [_of_gpu(way, samples, gpu, window) for gpu in gpus]
    lacking = {gpu: each.why for gpu, each in zip(gpus, found, strict=True) if each.value is None}
    if len(gpus) == 1:
        return found[0]
    if lacking:
        why = ", ".join(f"{gpu} {reason}" for gpu, reason in lacking.items())
        return _Found(way.name, None, "", 0.0, why)
    source = "; ".join(dict.fromkeys(each.source for each in found))
    worst = max(found, key=lambda each: each.error)
    total = sum(each.value or 0.0 for each in found)
    return replace(worst, value=total, source=f"{source}, sum over {len(gpus)} GPUs")


def _of_gpu(way: _Way, samples: Sequence[Samples], gpu: str, window: Window) -> _Found:
    of_gpu = (
        each for each in samples if (each.channel.device, each.channel.metric) == (gpu, way.metric)
    )
    series = next(of_gpu, None)
    if series is None:
        return _Found(way.name, None, "", 0.0, "not sampled")
    part = way.over(series.values, window)
    if part.coverage < FULL:
        why = series.channel.reason or _covers(part.coverage)
        return _Found(way.name, None, "", 0.0, why)
    if part.total <= 0:
        still = f"{way.zero} in {units.number(window.seconds, 's', '.3g')}"
        return _Found(way.name, None, "", 0.0, still)
    error, why = way.error(series.values, window)
    return _Found(way.name, part.total / part.coverage, series.channel.source, error, why)


def _alone(found: _Found) -> MeasuredValue:
    """One way by itself."""
    if found.value is None:
        return unknown("J", f"{found.name}: {found.why}")
    source = f"{found.name} ({found.source}){_within(found.error, found.why)}"
    return MeasuredValue(found.value, "J", Method.MEASURED, source)


def _best(best: _Found, other: _Found) -> MeasuredValue:
    """``best`` with the other way beside it."""
    if best.value is None:
        ways = sorted((best, other), key=lambda each: each.name)
        return unknown("J", "; ".join(f"{each.name}: {each.why}" for each in ways))
    if other.value is None:
        alone = _alone(best)
        told = f"; {other.name}: {other.why}" if _STILL in other.why else ""
        return replace(alone, source=alone.source + told)
    apart = abs(other.value / best.value - 1)
    beside = f"the {other.name} gives {units.quantity(other.value, 'J')}"
    if apart > best.error:
        text = _within(apart, beside)
    else:
        text = f"{_within(best.error, best.why)}; {beside}"
    source = f"{best.name} ({best.source}){text}"
    return MeasuredValue(best.value, "J", Method.MEASURED, source)


def _within(error: float, why: str) -> str:
    return "" if error < _NEGLIGIBLE else f", within {units.percent(error)}: {why}"


def _dated(values: Sequence[tuple[int, float]], window: Window) -> tuple[float, str]:
    """From the dates of readings: one interval between samples, over the window."""
    late = middle(np.diff(arrays(values)[0]))
    return late / (window.end - window.start), f"readings are dated to {late / 1e9:.3g} s"


def _scattered(values: Sequence[tuple[int, float]], window: Window) -> tuple[float, str]:
    """From the scatter of the samples: :data:`_ERRORS` standard errors of the mean of power."""
    t, power = arrays(values)
    in_window, name = (t >= window.start) & (t <= window.end), "samples"
    if isinstance(values, Means):
        in_window, name = in_window & values.whole, "ten-second means"
    inside = power[in_window]
    if inside.size < 2 or inside.mean() <= 0:
        return 0.0, ""
    error = _ERRORS * float(inside.std(ddof=1)) / math.sqrt(inside.size) / float(inside.mean())
    return error, f"by the scatter of {inside.size} {name}"


_STILL = "did not move"
_BY_COUNTER = _Way("energy counter", COUNTER, added, _dated, _STILL)
_BY_POWER = _Way("integral of power over time", POWER, integral, _scattered, "was 0")


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
