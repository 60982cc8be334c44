"""The run's points in the roofline, from the feed's histories: pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpuwatch.analysis.hardware.ceilings import Ceiling
from gpuwatch.analysis.hardware.crosscheck import Means
from gpuwatch.analysis.hardware.pipes import METRICS as PIPES
from gpuwatch.analysis.hardware.pipes import pipes_of
from gpuwatch.analysis.hardware.points import Rates
from gpuwatch.analysis.hardware.profile import Counters
from gpuwatch.analysis.hardware.program import Program
from gpuwatch.analysis.hardware.roofline import roofline_of
from gpuwatch.analysis.samples.channels import FULL
from gpuwatch.analysis.samples.cpu_time import cpu_shares, resolution
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.units import NS
from gpuwatch.session.rows import DeviceRow
from gpuwatch.tui.feed.series import Series
from gpuwatch.tui.feed.snapshot import Rooflines
from gpuwatch.tui.feed.steps import Steps
from gpuwatch.tui.widgets.graph import Window

_MINUTE_NS = 60 * NS

BANDWIDTH = "hw.gpu.memory.bandwidth"
CORES = "cores"
"""Key of the series of CPU seconds per second of the workload's processes."""


@dataclass(frozen=True)
class Record:
    """The recorded data of a run so far."""

    program: Program
    gpus: tuple[DeviceRow, ...]
    """The run's GPUs; empty: it runs on the CPU."""
    data_type: str | None
    """Of the run's matrix products."""
    series: Mapping[tuple[str, str], Series]
    interval: float
    steps: Steps
    threads: int | None
    """Threads of the workload on the CPU."""
    cores: int | None
    """Logical cores of the machine."""
    counters: Counters | None
    newest: int
    """Session time of the newest record in nanoseconds."""

    @property
    def timed(self) -> tuple[int, int]:
        """Start and end of the timed steps, in nanoseconds of session time; all of a program that
        reports none."""
        return self.steps.timed if self.program.steps else (0, self.newest)

    @property
    def minute(self) -> tuple[int, int]:
        """Start and end of the last minute of that."""
        start, end = self.timed
        return max(start, end - _MINUTE_NS), end


def rooflines_of(record: Record, ceilings: Mapping[str, Ceiling]) -> Rooflines:
    """The rooflines of the last minute and of all timed steps."""
    minute, whole = (
        roofline_of(record.program, each, ceilings, record.data_type)
        for each in (
            rates(record, *record.minute),
            rates(record, *record.timed, counters=record.counters),
        )
    )
    return Rooflines(minute, whole, "timed steps" if record.program.steps else "whole run")


def rates(record: Record, start: int, end: int, counters: Counters | None = None) -> Rates:
    """Means from ``start`` to ``end`` in nanoseconds; ``counters``: those of ncu per step."""
    steps, gpus = record.steps, [gpu.id for gpu in record.gpus]
    window = Window(start, end, 1)
    flop = size = None
    if end > start:
        flop = steps.flop.columns(window, steps.recent, steps.complete)[0]
        size = steps.bytes.columns(window, steps.recent, steps.complete)[0]
    utilization = [_mean(record, gpu, "hw.gpu.utilization", start, end) for gpu in gpus]
    active = [_mean(record, gpu, "hw.gpu.sm.activity", start, end) for gpu in gpus]
    moved = [_mean(record, gpu, BANDWIDTH, start, end) for gpu in gpus]
    per_second = steps.per_second()
    executed = read = written = None
    if counters is not None and per_second is not None:
        executed = counters.flop_per_step
        read, written = counters.dram_read_bytes_per_step, counters.dram_write_bytes_per_step
    of_pipes = means(record, PIPES, start, end)
    most = [
        None if isinstance(pipes, str) else pipes.rate(of_pipes[gpu.id])
        for gpu, pipes in ((gpu, pipes_of(gpu, record.data_type)) for gpu in record.gpus)
    ]
    return Rates(
        flop=_plausible(flop),
        bytes=_plausible(size),
        measured_bytes=_total(moved),
        most_executed=_total(most),
        executed_flop=None if executed is None else executed * (per_second or 0.0),
        executed_bytes=(
            None if read is None or written is None else (read + written) * (per_second or 0.0)
        ),
        on_gpu=bool(gpus),
        **({"busy": _average(utilization)} if gpus else _cpu_shares(record, start, end)),
        sm_activity=_average(active),
        data_share=steps.data_share(),
    )


def means(record: Record, metrics: Sequence[str], start: int, end: int) -> Means:
    """By GPU id and metric, the mean from ``start`` to ``end`` in nanoseconds where known."""
    return {
        gpu.id: {
            metric: mean
            for metric in metrics
            if (mean := _mean(record, gpu.id, metric, start, end)) is not None
        }
        for gpu in record.gpus
    }


def _mean(record: Record, device: str, metric: str, start: int, end: int) -> float | None:
    """``None``: less than most of the period is known."""
    series = record.series.get((device, metric))
    if series is None or end <= start:
        return None
    return series.mean(start, end, record.interval, FULL)


def _cpu_shares(record: Record, start: int, end: int) -> dict[str, Any]:
    """The fields of :class:`Rates` for a run on the CPU."""
    own = _mean(record, "workload", CORES, start, end)
    least = resolution((end - start) / NS)
    return cpu_shares(
        None if own is None else max(own, least),
        own is not None and own <= least,
        record.threads,
        record.cores,
        _mean(record, "cpu", "hw.cpu.utilization", start, end),
    )


def _plausible(rate: float | None) -> float | None:
    """A rate that a machine can reach; a foreign file may contain any."""
    return rate if rate is not None and 1e-6 < rate < 1e24 else None


def _total(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def _average(values: Sequence[float | None]) -> float | None:
    total = _total(values)
    return None if total is None else total / len(values)
