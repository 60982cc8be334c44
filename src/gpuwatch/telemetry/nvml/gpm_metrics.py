"""GPM metrics (NVML's GPU performance monitoring): numbers, units, plausible values.

Numbers and units are those of ``nvmlGpmMetricId_t`` in NVIDIA's ``nvml.h``. Pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import checked
from gpuwatch.core.peaks import Peak
from gpuwatch.telemetry.base import Value
from gpuwatch.telemetry.counters import OF_THE_WHOLE_GPU
from gpuwatch.telemetry.nvml.errors import describe

BANDWIDTH = "hw.gpu.memory.bandwidth"
DRAM_ACTIVITY = "hw.gpu.dram.activity"
PCIE = ("hw.gpu.pcie.transmit", "hw.gpu.pcie.receive")
NVLINK = ("hw.gpu.nvlink.transmit", "hw.gpu.nvlink.receive")

_PERCENT, _MIB = 0.01, 2.0**20


@dataclass(frozen=True)
class GpmMetric:
    """A GPM metric and gpuwatch's name for it."""

    number: int
    name: str
    """NVML's name, without ``NVML_GPM_METRIC_``."""
    metric: str
    scale: float
    """Factor from percent or MiB/s to gpuwatch's unit."""

    @property
    def source(self) -> str:
        return f"NVML GPM metric {self.number} ({self.name})"


@dataclass(frozen=True)
class Reading:
    """A value in the metric's unit, or ``None`` and the reason."""

    value: Value
    reason: str | None = None


WANTED = (
    GpmMetric(2, "SM_UTIL", "hw.gpu.sm.activity", _PERCENT),
    GpmMetric(3, "SM_OCCUPANCY", "hw.gpu.sm.occupancy", _PERCENT),
    GpmMetric(5, "ANY_TENSOR_UTIL", "hw.gpu.tensor.activity", _PERCENT),
    GpmMetric(10, "DRAM_BW_UTIL", DRAM_ACTIVITY, _PERCENT),
    GpmMetric(11, "FP64_UTIL", "hw.gpu.fp64.activity", _PERCENT),
    GpmMetric(12, "FP32_UTIL", "hw.gpu.fp32.activity", _PERCENT),
    GpmMetric(13, "FP16_UTIL", "hw.gpu.fp16.activity", _PERCENT),
    GpmMetric(20, "PCIE_TX_PER_SEC", PCIE[0], _MIB),
    GpmMetric(21, "PCIE_RX_PER_SEC", PCIE[1], _MIB),
    GpmMetric(61, "NVLINK_TOTAL_TX_PER_SEC", NVLINK[0], _MIB),
    GpmMetric(60, "NVLINK_TOTAL_RX_PER_SEC", NVLINK[1], _MIB),
)
METRICS = (*(metric.metric for metric in WANTED), BANDWIDTH)
"""Every metric that GPM can provide."""
_SOURCES = {metric.metric: metric.source for metric in WANTED}

NO_NVLINK = Reading(None, "no NVLink of this GPU is up")
"""GPM answers 0 B/s for links that a GPU does not have (seen on an H200)."""


def source_of(metric: str, peak: Peak) -> str:
    """The source of a metric's values; for the bandwidth it includes the peak."""
    if metric != BANDWIDTH:
        return _SOURCES[metric]
    share = _SOURCES[DRAM_ACTIVITY]
    if peak.value is None:
        return f"{share} x peak DRAM bandwidth"
    return f"{share} x peak DRAM bandwidth {peak.value / 1e9:.0f} GB/s ({peak.basis})"


def reading_of(metric: GpmMetric, code: int, raw: float, mig: bool = False) -> Reading:
    """Check one metric's return code and value (percent or MiB/s).

    PCIe and NVLink are never a MIG device's own: ``nvml.h`` calls them the traffic of the GPU.
    """
    if mig and metric.metric in (*PCIE, *NVLINK):
        return Reading(None, OF_THE_WHOLE_GPU)
    if code:
        return Reading(None, f"{metric.source}: {describe(code).reason}")
    value, reason = checked(metric.metric, raw * metric.scale)
    return Reading(value, reason and f"{metric.source}: {reason}")


def with_bandwidth(readings: Mapping[str, Reading], peak: Peak, no_peak: str) -> dict[str, Reading]:
    """Add the bandwidth in bytes/s, from the share of the peak DRAM bandwidth.

    ``no_peak`` is the reason if the peak is unknown.
    """
    share = readings[DRAM_ACTIVITY]
    if peak.value is None:
        bandwidth = Reading(None, no_peak)
    elif share.value is None:
        bandwidth = share
    else:
        bandwidth = Reading(share.value * peak.value)
    return {**readings, BANDWIDTH: bandwidth}
