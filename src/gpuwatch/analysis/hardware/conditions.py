"""Disturbances of a run: clocks held down, and other processes on its GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpuwatch.analysis.hardware.crosscheck import Finding, Means
from gpuwatch.analysis.hardware.limits import Clocks
from gpuwatch.analysis.samples.window import Window
from gpuwatch.analysis.statistics.description import Statistic
from gpuwatch.core import units
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import JSON, number
from gpuwatch.session.rows import MPS_SERVER, DeviceRow, GpuProcessRow

HELD = 0.05
"""Share of the time from which on held-down clocks are reported."""
_BUSY = 0.05
"""Utilization from which on a GPU without a process of the run is reported."""
_MOST_NAMED = 3
_CAUSES = (("hw.gpu.throttle.power", "power"), ("hw.gpu.throttle.thermal", "temperature"))


def clocks_of(gpus: Sequence[DeviceRow], means: Means) -> Clocks | None:
    """How long and how far the clocks of the GPUs were held down; ``None``: not, or unknown.

    For several GPUs: the largest share of time, and the mean clock of those held down.
    """
    held, now, most = [], [], []
    for gpu in gpus:
        of_gpu = means.get(gpu.id, {})
        share = max((of_gpu.get(metric, 0.0) for metric, _ in _CAUSES), default=0.0)
        if share < HELD:
            continue
        held.append(share)
        clock = of_gpu.get("hw.gpu.clock.sm")
        maximum = number(gpu.attributes.get("clock.sm.max"))
        if clock and maximum and maximum > 0:
            now.append(clock)
            most.append(maximum)
    if not held:
        return None
    all_held = len(now) == len(gpus)
    return Clocks(
        max(held),
        sum(now) / len(now) if now else None,
        sum(most) / len(most) if most else None,
        min(1.0, sum(now) / sum(most)) if all_held else None,
    )


def held_down(gpus: Sequence[DeviceRow], means: Means) -> Finding | None:
    """The finding on clocks held down by power or temperature."""
    clocks = clocks_of(gpus, means)
    if clocks is None:
        return None
    causes = []
    for metric, name in _CAUSES:
        share = max((means.get(gpu.id, {}).get(metric, 0.0) for gpu in gpus), default=0.0)
        if share > 0:
            causes.append(f"by {name} {units.percent(min(1.0, share))} of the time")
    affected = [
        gpu.id
        for gpu in gpus
        if max(means.get(gpu.id, {}).get(metric, 0.0) for metric, _ in _CAUSES) >= HELD
    ]
    text = f"the clocks of {', '.join(affected)} were held down {', '.join(causes)}"
    if clocks.mean is not None and clocks.maximum is not None:
        mean, most = units.si(clocks.mean, "Hz"), units.si(clocks.maximum, "Hz")
        text += (
            f": on average {mean} of at most {most}, so that peaks at maximum clock were out of "
            "reach"
        )
    return Finding("clocks", True, text, None, clocks.held, "1")


def shared(
    gpus: Sequence[DeviceRow],
    processes: Sequence[GpuProcessRow],
    window: Window,
    run: Mapping[str, JSON],
    metrics: Mapping[str, Statistic],
) -> list[Finding]:
    """Findings on other processes on the run's GPUs, and on a workload that is on none of them."""
    ids = [gpu.id for gpu in gpus]
    others = [
        process
        for process in processes
        if process.device in ids
        and process.owned is False
        and (process.running or process.t > window.start)
    ]
    others.sort(key=lambda process: -(process.bytes or 0))
    served = any(MPS_SERVER in (process.name or "") for process in others)
    findings = [_others(others)] if others and not served else []
    held, busy = metrics.get("process.gpu.memory.usage"), metrics.get("hw.gpu.utilization")
    absent = held is not None and held.method is Method.MEASURED and held.max == 0
    share = None if busy is None else busy.mean
    reports_cuda = str(run.get("device") or "").startswith("cuda")
    if ids and absent and reports_cuda and not served and share is not None and share >= _BUSY:
        findings.append(_elsewhere(ids, share))
    return findings


def _others(others: Sequence[GpuProcessRow]) -> Finding:
    named = [_name(process) for process in others[:_MOST_NAMED]]
    if len(others) > _MOST_NAMED:
        named.append(f"{len(others) - _MOST_NAMED} more")
    was = "another process was" if len(others) == 1 else "other processes were"
    text = (
        f"{was} on the run's GPUs: {', '.join(named)}; GPU metrics cover all processes on a GPU, "
        "which share its time"
    )
    return Finding("sharing", True, text, None, float(len(others)), "{process}")


def _name(process: GpuProcessRow) -> str:
    size = "" if process.bytes is None else f", {units.binary(process.bytes)}"
    return f"{process.name or 'a process'} (PID {process.pid}{size}) on {process.device}"


def _elsewhere(ids: Sequence[str], share: float) -> Finding:
    text = (
        f"the workload reports cuda, but NVML lists none of its processes on {', '.join(ids)}, "
        f"busy {units.percent(share)} of the time: the figures may belong to others (is the "
        "workload on another GPU, or does a server outside its process tree run its kernels?)"
    )
    return Finding("sharing", True, text, None, share, "1")
