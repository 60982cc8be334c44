"""How well a run used its hardware: shares of ceilings, MFU, traffic, energy, the bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from gpuwatch.analysis.hardware import ceilings, crosscheck
from gpuwatch.analysis.hardware.energy import COUNTER, CPU_POWER, POWER, Energy, energy_of
from gpuwatch.analysis.hardware.mfu import MfuPeak, hfu_of, mfu_peaks
from gpuwatch.analysis.hardware.pipes import METRICS as PIPES
from gpuwatch.analysis.hardware.pipes import busiest, most_executed
from gpuwatch.analysis.hardware.points import Rates, of_phases
from gpuwatch.analysis.hardware.profile import Counters, how_to_see
from gpuwatch.analysis.hardware.program import Program
from gpuwatch.analysis.hardware.roofline import Roofline, roofline_of
from gpuwatch.analysis.measured_value import MeasuredValue, divided, unknown
from gpuwatch.analysis.samples.channels import FULL, Samples, integral
from gpuwatch.analysis.samples.cpu_time import cpu_shares
from gpuwatch.analysis.samples.window import Window
from gpuwatch.analysis.statistics.description import Statistic
from gpuwatch.core import units
from gpuwatch.core.aggregate import product_of
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import JSON, mapping
from gpuwatch.session.rows import DeviceRow, GpuProcessRow

METRIC = "hw.gpu.memory.bandwidth"
SECTOR = 32
"""Bytes per sector, the unit in which an NVIDIA GPU's caches access DRAM (NVIDIA Nsight Compute
documentation, "Memory Chart")."""


@dataclass(frozen=True)
class Traffic:
    """Memory reads and writes of all used GPUs together in the window."""

    total: MeasuredValue
    """Bytes. With samples over 90 % of the window or more, measured and scaled to all of it; with
    less, a lower bound: the bytes of the covered part."""
    sectors: MeasuredValue
    """The same in 32-byte sectors."""
    per_step: MeasuredValue
    """Bytes per timed step."""
    rate: MeasuredValue
    """Bytes per second, over the window."""
    coverage: float | None
    """Share of the window that samples cover, 0 to 1, on the GPU with the least."""

    @property
    def missing(self) -> str | None:
        """Why the measured bytes of the whole window are unknown; ``None`` where they are known."""
        return None if self.total.method is Method.MEASURED else self.total.reason


def traffic_of(
    samples: Sequence[Samples],
    devices: Sequence[str],
    window: Window,
    steps: int | None,
    missing: str | None,
    doubt: str | None,
) -> Traffic:
    """Integrate the measured bandwidth of ``devices`` over ``window``, which has ``steps`` steps.

    ``steps`` is ``None`` where the window is not that of the timed steps; ``missing`` is the reason
    for a run without GPUs, ``doubt`` that against any figure per step.
    """
    by_device = {each.channel.device: each for each in samples if each.channel.metric == METRIC}

    def not_known(reason: str) -> Traffic:
        by = unknown("By", reason)
        return Traffic(by, unknown("{sector}", reason), by, unknown("By/s", reason), None)

    if not devices:
        return not_known(missing or "the run used no GPU, and only GPUs count bytes to memory")
    without = [device for device in devices if device not in by_device]
    if without:
        return not_known(f"the memory bandwidth of {', '.join(without)} was not sampled")
    integrals = [integral(by_device[device].values, window) for device in devices]
    coverage = min(part.coverage for part in integrals)
    sources = dict.fromkeys(by_device[device].channel.source for device in devices)
    source = f"integral of the measured bandwidth ({'; '.join(sources)})"
    if coverage <= 0:
        reasons = dict.fromkeys(by_device[device].channel.reason or "" for device in devices)
        reason = "; ".join(text for text in reasons if text)
        return not_known(reason or "no sample of the memory bandwidth fell into the window")
    known = units.percent(coverage)
    if coverage >= FULL:
        value = sum(part.total / part.coverage for part in integrals)
        source += f", scaled from the {known} of the window that its samples cover"
        total = MeasuredValue(value, "By", Method.MEASURED, source)
    else:
        reason = f"samples cover only {known} of the window"
        value = sum(part.total for part in integrals)
        total = MeasuredValue(value, "By", Method.BOUND, source, reason)
    return Traffic(
        total,
        divided(total, SECTOR, "{sector}", "32 bytes", ""),
        unknown("By", doubt)
        if doubt
        else divided(
            total, steps, "By", "the timed steps", "the window is not that of timed steps"
        ),
        divided(total, window.seconds, "By/s", "the window", "the window has no length"),
        coverage,
    )


SAMPLED = (METRIC, COUNTER, POWER, CPU_POWER, *PIPES)
"""Metrics whose single samples are needed."""

Metrics = Mapping[str, Statistic]


@dataclass(frozen=True)
class Share:
    """A rate as a share of a ceiling; not clipped at 1."""

    value: float
    ceiling: ceilings.Ceiling


@dataclass(frozen=True)
class Efficiency:
    covers: tuple[str, ...]
    """Ids of the devices behind rates and ceilings: all GPUs of the run together, or the CPU."""
    data_type: str | None
    flop_rate: MeasuredValue
    """Model FLOP/s over the timed steps."""
    flop_shares: tuple[Share, ...]
    """Shares of each compute ceiling of the run's data type, in the order of ``ceilings.KINDS``."""
    most_executed: MeasuredValue
    """Executed FLOP/s at most, over the window; a ``bound`` for every program on a GPU whose pipes
    are measured."""
    most_executed_shares: tuple[Share, ...]
    mfu: MeasuredValue
    """Model FLOP utilization: forward and backward FLOP per second over the data-sheet peak of the
    data type, summed over the run's GPUs."""
    mfu_at_maximum_clock: MeasuredValue
    """The same over the peak at the maximum clock that the driver reports."""
    mfu_peaks: tuple[MfuPeak, MfuPeak]
    """What the two are over."""
    hfu: MeasuredValue
    """MFU with the FLOP that a program with activation checkpointing computes again."""
    bytes_rate: MeasuredValue
    """Algorithmic bytes per second over the timed steps."""
    bytes_shares: tuple[Share, ...]
    bandwidth: MeasuredValue
    """Bytes to and from device memory per second, measured."""
    bandwidth_shares: tuple[Share, ...]
    intensity: MeasuredValue
    """FLOP per byte, by the most trustworthy count of bytes."""
    traffic: Traffic
    energy: Energy
    roofline: Roofline
    findings: tuple[crosscheck.Finding, ...]
    """Results of the cross-checks, warnings first."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Texts of the findings that are warnings."""
        return tuple(finding.text for finding in self.findings if finding.warning)


@dataclass(frozen=True)
class Work:
    """Totals of the timed steps."""

    count: int | None
    """Timed steps."""
    samples: float | None
    """Training samples of all of them together."""
    rate: float | None
    """Steps per second, over the time that FLOP/s are over."""
    mean_seconds: float | None
    """Mean step time."""
    phases: Mapping[str, float]
    """Mean seconds of each phase of a step."""
    pause: float | None
    """Share of the time of one pause between steps."""
    part: str | None = None
    """Why nothing follows per step: only some of the steps were told; ``None``: all were."""


def efficiency_of(
    program: Program,
    meta: Mapping[str, JSON],
    facts: Mapping[str, Mapping[str, JSON]],
    ranks: int,
    devices: Sequence[DeviceRow],
    window: Window,
    metrics: Metrics,
    by_device: Mapping[str, Metrics],
    samples: Sequence[Samples],
    work: Work,
    counters: Counters | None,
    processes: Sequence[GpuProcessRow],
) -> Efficiency:
    """The efficiency of a run; ``metrics`` and ``by_device`` are the statistics over ``window``."""
    run, count = mapping(meta.get("run")), mapping(meta.get("count"))
    of_run = ceilings.devices_of_run(devices)
    gpus = tuple(device for device in of_run if device.kind == "gpu")
    ids = [gpu.id for gpu in gpus]
    steady = window.kind == "timed steps"
    steps = work.count if steady else None
    doubt = program.doubt or work.part
    data_type = ceilings.data_type_of(meta, devices)
    every = ceilings.every_ceiling_of(meta, devices)
    flop, size = _rate(metrics, "gpuwatch.flop.rate"), _rate(metrics, "gpuwatch.bytes.rate")
    traffic = traffic_of(samples, ids, window, steps, metrics[METRIC].reason, doubt)
    whole = traffic.rate.value if traffic.rate.method is Method.MEASURED else None
    # Without a process of the run on the GPUs, their counters measure others' work.
    own = metrics.get("process.gpu.memory.usage")
    absent = own is not None and own.method is Method.MEASURED and own.max == 0
    most = most_executed(gpus, samples, window, data_type, metrics[METRIC].reason)
    if absent:
        most = unknown("FLOP/s", "no process of the run held memory of its GPUs")
    means = _means(by_device, ids) if steady else {}
    rate = None if program.doubt else work.rate
    step = work.mean_seconds
    shares = {name: each / step for name, each in work.phases.items()} if step else {}
    own_ceilings = every.get(data_type or "", ())
    rates = Rates(
        flop=flop.value,
        bytes=size.value,
        measured_bytes=whole if steady or flop.value is None else None,
        unmeasured=traffic.missing,
        clocks=crosscheck.clocks_of(gpus, means),
        limit=crosscheck.limit_of(gpus, data_type),
        most_executed=most.value,
        executed_flop=product_of(None if counters is None else counters.flop_per_step, rate),
        executed_bytes=product_of(None if counters is None else counters.dram_bytes_per_step, rate),
        on_gpu=bool(gpus),
        **_busy(gpus, devices, metrics, window, facts, ranks, run.get("device") == "cpu")
        if steady and of_run
        else {},
        sm_activity=_mean(metrics, "hw.gpu.sm.activity") if steady and gpus else None,
        pipe=busiest(partial(_mean, metrics)) if steady and gpus and not absent else None,
        **of_phases(shares),
        kernels=how_to_see(meta),
        pause=work.pause,
    )
    over = mfu_peaks(meta, devices)
    mfu, mfu_at_maximum_clock = (peak.mfu(flop) for peak in over)
    roofline = roofline_of(program, rates, ceilings.ceilings_of(meta, devices), data_type)
    intensity = unknown("FLOP/By", roofline.reason or "not known")
    if roofline.points:
        point = roofline.points[0]
        intensity = MeasuredValue(point.intensity, "FLOP/By", point.method, point.text)
    # Of an unknown data type the bound is too far above to be compared with a count.
    upper = most.value if steady and data_type is not None else None
    own_gpus, own_means = ((), {}) if absent else (gpus, means)
    findings = [
        *crosscheck.findings_of(own_gpus, own_means, data_type, flop.value, upper),
        *([held] if (held := crosscheck.held_down(gpus, means)) else []),
        *crosscheck.shared(gpus, processes, window, run, metrics),
    ]
    return Efficiency(
        covers=tuple(device.id for device in of_run),
        data_type=data_type,
        flop_rate=flop,
        flop_shares=_shares(
            None if ceilings.is_over(rates.limit, flop.value) else flop.value, own_ceilings
        ),
        most_executed=most,
        most_executed_shares=_shares(most.value, own_ceilings),
        mfu=mfu,
        mfu_at_maximum_clock=mfu_at_maximum_clock,
        mfu_peaks=over,
        hfu=hfu_of(mfu, count),
        bytes_rate=size,
        bytes_shares=_shares(size.value, every.get(ceilings.BANDWIDTH, ())),
        bandwidth=traffic.rate,
        bandwidth_shares=_shares(traffic.rate.value, every.get(ceilings.BANDWIDTH, ())),
        intensity=intensity,
        traffic=traffic,
        energy=energy_of(samples, ids, window, steps, work.samples, metrics[COUNTER].reason, doubt),
        roofline=roofline,
        findings=tuple(sorted(findings, key=lambda finding: not finding.warning)),
    )


def _rate(metrics: Metrics, name: str) -> MeasuredValue:
    statistic = metrics[name]
    if statistic.mean is None:
        return unknown(statistic.unit, statistic.reason or "not known", statistic.source)
    return MeasuredValue(statistic.mean, statistic.unit, statistic.method, statistic.source)


def _mean(metrics: Metrics, name: str) -> float | None:
    statistic = metrics.get(name)
    return None if statistic is None else statistic.mean


def _means(by_device: Mapping[str, Metrics], ids: Sequence[str]) -> crosscheck.Means:
    return {
        id_: {
            name: statistic.mean
            for name, statistic in by_device.get(id_, {}).items()
            if statistic.mean is not None
        }
        for id_ in ids
    }


def _shares(value: float | None, of: Sequence[ceilings.Ceiling]) -> tuple[Share, ...]:
    if value is None:
        return ()
    return tuple(Share(value / ceiling.value, ceiling) for ceiling in of)


def _busy(
    gpus: Sequence[DeviceRow],
    devices: Sequence[DeviceRow],
    metrics: Metrics,
    window: Window,
    facts: Mapping[str, Mapping[str, JSON]],
    ranks: int,
    on_cpu: bool,
) -> dict[str, Any]:
    """The fields of :class:`Rates` on how busy the device was, or the program."""
    if gpus:
        return {"busy": _mean(metrics, "hw.gpu.utilization")}
    used, waited = metrics["process.cpu.time"], metrics["process.cpu.wait"]
    return cpu_shares(
        used.per_second(window.seconds),
        waited.per_second(window.seconds),
        used.method is Method.BOUND and used.coverage is None,
        facts,
        ranks,
        devices,
        _mean(metrics, "hw.cpu.utilization"),
        on_cpu,
    )
