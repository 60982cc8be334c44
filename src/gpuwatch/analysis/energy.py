"""Energy over the steady window: joules per step and per sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpuwatch import units
from gpuwatch.analysis.figure import Figure, divided, unknown
from gpuwatch.analysis.samples import FULL, Samples, added, integral
from gpuwatch.analysis.window import Window
from gpuwatch.metrics import Method

COUNTER, POWER, CPU_POWER = "hw.gpu.energy", "hw.gpu.power", "hw.cpu.power"
SHORTEST = 1.0
"""Seconds: sensors of power look only now and then (those of A100 and H100 a quarter of the time:
Z. Yang et al., arXiv 2312.02741), and energy counters are renewed some ten times a second."""


@dataclass(frozen=True)
class Energy:
    """Joules; nothing is said of windows under one second."""

    gpu: Figure
    """Of all GPUs that the run used, over the timed steps."""
    gpu_per_step: Figure
    gpu_per_sample: Figure
    cpu: Figure
    """Of the CPU packages: the whole machine's, whoever used them."""
    cpu_per_step: Figure
    cpu_per_sample: Figure


def energy_of(
    samples: Sequence[Samples],
    gpus: Sequence[str],
    window: Window,
    steps: int | None,
    batch: float | None,
) -> Energy:
    """Energy in ``window``, of ``steps`` timed steps that processed ``batch`` samples together.

    ``steps`` is ``None`` where the window is not that of the timed steps.
    """
    short = _unfit(window, steps)
    if short:
        gpu = cpu = unknown("J", short)
    else:
        gpu = _gpus(samples, gpus, window)
        cpu = _cpu(samples, window)
    return Energy(
        gpu, _per_step(gpu, steps), _per_sample(gpu, batch),
        cpu, _per_step(cpu, steps), _per_sample(cpu, batch),
    )  # fmt: skip


def _per_step(energy: Figure, steps: int | None) -> Figure:
    return divided(energy, steps, "J", "the timed steps", "no timed step was reported")


def _per_sample(energy: Figure, batch: float | None) -> Figure:
    return divided(
        energy, batch, "J", "the timed steps' samples", "the workload reported no samples"
    )


def _unfit(window: Window, steps: int | None) -> str:
    if not steps:
        return "there are no timed steps that were sampled"
    if window.seconds < SHORTEST:
        told = units.milliseconds(window.seconds)
        return f"the timed steps took {told}: no energy can be told of less than a second"
    return ""


def _gpus(samples: Sequence[Samples], gpus: Sequence[str], window: Window) -> Figure:
    if not gpus:
        return unknown("J", "the run used no GPU")
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
    return Figure(total, "J", Method.MEASURED, source)


def _gpu(samples: Sequence[Samples], gpu: str, window: Window) -> Figure:
    """By the energy counter, else by the integral of power."""
    of_gpu = {each.channel.metric: each for each in samples if each.channel.device == gpu}
    reasons = []
    for metric, over, name in (
        (COUNTER, added, "energy counter"),
        (POWER, integral, "integral of power over time"),
    ):
        found = of_gpu.get(metric)
        if found is None:
            reasons.append(f"{name}: not sampled")
            continue
        part = over(found.values, window)
        if part.coverage >= FULL:
            source = f"{name} ({found.channel.source})"
            return Figure(part.total / part.coverage, "J", Method.MEASURED, source)
        reasons.append(f"{name}: {found.channel.reason or _covers(part.coverage)}")
    return unknown("J", "; ".join(reasons))


def _cpu(samples: Sequence[Samples], window: Window) -> Figure:
    found = next((each for each in samples if each.channel.metric == CPU_POWER), None)
    if found is None:
        return unknown("J", "the power of the CPU packages was not sampled")
    part = integral(found.values, window)
    if part.coverage < FULL:
        return unknown("J", found.channel.reason or _covers(part.coverage))
    source = f"integral of power over time ({found.channel.source})"
    return Figure(part.total / part.coverage, "J", Method.MEASURED, source)


def _covers(coverage: float) -> str:
    return f"its samples cover only {units.percent(coverage)} of the timed steps"
