"""What a reader must know of a run's figures: counts beyond what the hardware allows, held clocks,
other programs on its GPUs.

Counted FLOP/s are checked against the peak, and against what the pipes executed at most.

A counted rate may exceed what the pipes' activity allows by 15 % (activity and clocks are sampled).
Activity may allow three times what was counted, since an active pipe is seldom full, and additions,
normalisation and the optimizer run on the same pipes without being counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gpuwatch.analysis.hardware.ceilings import PEAK, Ceiling, is_over, peaks_of, plain
from gpuwatch.analysis.hardware.pipes import TENSOR
from gpuwatch.analysis.samples.window import Window
from gpuwatch.core import units
from gpuwatch.core.aggregate import average_of
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import JSON, number
from gpuwatch.core.peaks import computed_in
from gpuwatch.session.rows import MPS_SERVER, DeviceRow, GpuProcessRow

if TYPE_CHECKING:  # screens do without numpy
    from gpuwatch.analysis.statistics.description import Statistic


@dataclass(frozen=True)
class Clocks:
    """How far power or temperature held the clocks down."""

    held: float
    """Share of the time by one cause, 0 to 1, on the GPU with the largest."""
    text: str
    """By what, and what share of the time, on the GPU with the largest."""
    mean: float | None
    """Hz: mean clock of the multiprocessors of the GPUs that were held down."""
    maximum: float | None
    """Hz: mean maximum clock of the same GPUs."""
    share: float | None
    """Mean clock over maximum where all GPUs were held down, 0 to 1; else ``None``."""
    by_power: float = 0.0
    """As ``held``, by power alone."""
    power: float | None = None
    """Mean power of the GPUs that were held down, in watts."""
    power_limit: float | None = None
    """Their mean limit."""


def limit_of(gpus: Sequence[DeviceRow], data_type: str | None) -> Ceiling | None:
    """The peak [FLOP/s] of all GPUs together, which no run in ``data_type`` can exceed.

    Where a GPU has no cores for the type, the peak of the type that it computes in. ``None`` where
    the peak of a GPU is unknown.
    """
    if data_type is None or not gpus:
        return None
    types = [computed_in(data_type, plain(gpu), gpu.name) for gpu in gpus]
    peaks_ = [peaks_of(gpu).get(name) for gpu, name in zip(gpus, types, strict=True)]
    known = [(peak, peak.value) for peak in peaks_ if peak is not None and peak.value]
    if len(known) < len(gpus):
        return None
    text = f"{types[0]} peak at maximum clock"
    if types[0] != data_type:
        text += f", as the GPU has no cores for {data_type}"
    if len(gpus) > 1:
        text += f", sum over {len(gpus)} GPUs"
    first, total = known[0][0], sum(value for _, value in known)
    return Ceiling(types[0], total, "FLOP/s", PEAK, text, f"{first.basis}; {first.source}")


RATE_SLACK, RATE_FAR = 1.15, 3.0
_SOME_TENSOR = 0.05


@dataclass(frozen=True)
class Finding:
    """Two numbers for the same quantity, and what their ratio means."""

    kind: str
    """``peak``, ``pipes``, ``tensor``, ``clocks`` or ``sharing``."""
    warning: bool
    """Whether they disagree beyond the ordinary causes; else the text explains them."""
    text: str
    """One sentence with both numbers."""
    counted: float | None
    other: float | None
    unit: str


Means = Mapping[str, Mapping[str, float]]
"""Means over the timed steps, by device id and metric."""


def findings_of(
    gpus: Sequence[DeviceRow],
    means: Means,
    data_type: str | None,
    flop_rate: float | None,
    most_executed: float | None,
) -> tuple[Finding, ...]:
    """All cross-checks of what was counted.

    ``flop_rate`` is in FLOP/s over the timed steps and over all GPUs of the run; ``most_executed``
    is that of :mod:`~gpuwatch.analysis.hardware.pipes`.
    """
    candidates = [
        _peak(limit_of(gpus, data_type), data_type, flop_rate),
        _pipes(flop_rate, most_executed),
        _tensor(means, data_type),
    ]
    return tuple(finding for finding in candidates if finding is not None)


def _peak(limit: Ceiling | None, data_type: str | None, counted: float | None) -> Finding | None:
    if limit is None or counted is None or not is_over(limit, counted):
        return None
    faster = "TF32 or another faster type" if data_type == "float32" else "a faster type"
    text = (
        f"counted {units.si(counted, 'FLOP/s')}, {units.percent(counted / limit.value)} of "
        f"the {limit.text}, {units.si(limit.value, 'FLOP/s')}, which no run can pass: the count is "
        f"too high, steps do less than was counted, or {faster} than the reported {data_type} was "
        "in use"
    )
    return Finding("peak", True, text, counted, limit.value, "FLOP/s")


def _pipes(counted: float | None, upper: float | None) -> Finding | None:
    if not counted or upper is None:
        return None
    both = (
        f"counted {units.si(counted, 'FLOP/s')}, and the activity of the pipes allows at most "
        f"{units.si(upper, 'FLOP/s')}"
    )
    if counted > RATE_SLACK * upper:
        text = (
            f"{both}: the step does less than its count (an algorithm like Winograd, work that is "
            "skipped), or the count is too high"
        )
    elif counted * RATE_FAR < upper:
        text = (
            f"{both}: the pipes do more than is counted (padding, recomputation, uncounted "
            "operators, another process on the GPU)"
        )
    else:
        return Finding("pipes", False, f"{both}: they agree", counted, upper, "FLOP/s")
    return Finding("pipes", True, text, counted, upper, "FLOP/s")


def _tensor(means: Means, data_type: str | None) -> Finding | None:
    active = [of_gpu[TENSOR] for of_gpu in means.values() if TENSOR in of_gpu]
    if data_type != "float32" or not active or max(active) < _SOME_TENSOR:
        return None
    text = (
        f"the run reports float32, and the tensor pipes were active {units.percent(max(active))} "
        "of the cycles: TF32 or a narrower type was in use, so the float32 ceiling is not the run's"
    )
    return Finding("tensor", True, text, None, max(active), "1")


HELD = 0.05
"""Share of the time from which on held-down clocks are reported."""
_BUSY = 0.05
"""Utilization from which on a GPU without a process of the run is reported."""
_MOST_NAMED = 3
CLOCKS = "clocks"
"""The kind of the finding that they were held down."""
_CAUSES = (("hw.gpu.throttle.power", "power"), ("hw.gpu.throttle.thermal", "temperature"))


def clocks_of(gpus: Sequence[DeviceRow], means: Means) -> Clocks | None:
    """How long and how far the clocks of the GPUs were held down; ``None``: not, or unknown.

    For several GPUs: the largest share of time, and the mean clock of those held down.
    """
    shares = [_held(gpu, means) for gpu in gpus]
    held = [gpu for gpu, of in zip(gpus, shares, strict=True) if max(of) >= HELD]
    if not held:
        return None
    causes = [
        f"by {name} {units.percent(min(1.0, max(of_cause)))}"
        for (_, name), of_cause in zip(_CAUSES, zip(*shares, strict=True), strict=True)
        if max(of_cause) > 0
    ]
    now, most = list[float](), list[float]()
    for gpu in held:
        clock = means[gpu.id].get("hw.gpu.clock.sm")
        maximum = number(gpu.attributes.get("clock.sm.max"))
        if clock and maximum and maximum > 0:
            now.append(clock)
            most.append(maximum)
    return Clocks(
        max(map(max, shares)),
        f"{' and '.join(causes)} of the time",
        average_of(now),
        average_of(most),
        min(1.0, sum(now) / sum(most)) if len(now) == len(gpus) else None,
        min(power if power >= heat else 0.0 for power, heat in shares),
        average_of([means[gpu.id].get("hw.gpu.power") for gpu in held]),
        average_of([number(gpu.attributes.get("power.limit")) for gpu in held]),
    )


def _held(gpu: DeviceRow, means: Means) -> tuple[float, float]:
    """Shares of the time in which power and temperature held its clocks down."""
    power, heat = (means.get(gpu.id, {}).get(metric, 0.0) for metric, _ in _CAUSES)
    return power, heat


def held_down(gpus: Sequence[DeviceRow], means: Means) -> Finding | None:
    """The finding on clocks held down by power or temperature."""
    clocks = clocks_of(gpus, means)
    if clocks is None:
        return None
    affected = [gpu.id for gpu in gpus if max(_held(gpu, means)) >= HELD]
    text = f"the clocks of {', '.join(affected)} were held down {clocks.text}"
    if clocks.mean is not None and clocks.maximum is not None:
        mean, most = units.si(clocks.mean, "Hz"), units.si(clocks.maximum, "Hz")
        text += (
            f": on average {mean} of at most {most}, so that peaks at maximum clock were out of "
            "reach"
        )
    return Finding(CLOCKS, True, text, None, clocks.held, "1")


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
        text = (
            f"the workload reports cuda, but NVML lists none of its processes on {', '.join(ids)}, "
            f"busy {units.percent(share)} of the time: the figures may belong to others (is the "
            "workload on another GPU, or does a server outside its process tree run its kernels?)"
        )
        findings.append(Finding("sharing", True, text, None, share, "1"))
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
