"""Model FLOP utilization; without numpy, so that session lists start fast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpuwatch.analysis.hardware.ceilings import (
    PEAK,
    UNKNOWN_GPUS,
    data_type_of,
    devices_of_run,
    every_ceiling_of,
    gpus_unknown,
    peaks_of,
)
from gpuwatch.analysis.measured_value import MeasuredValue, unknown
from gpuwatch.core import units
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import JSON, mapping
from gpuwatch.session.rows import DeviceRow


def mfu_of(
    flop: MeasuredValue, meta: Mapping[str, JSON], devices: Sequence[DeviceRow]
) -> MeasuredValue:
    """Forward and backward FLOP per second over the peak of the run's data type at the maximum
    clock, summed over its GPUs; a share, not clipped at 1."""
    if gpus_unknown(devices):
        return unknown("1", UNKNOWN_GPUS)
    if flop.value is None:
        return unknown("1", flop.reason or "no FLOP/s are known")
    gpus = [device for device in devices_of_run(meta, devices) if device.kind == "gpu"]
    if not gpus:
        return unknown("1", "a CPU's peak is not known: see the share of the measured product")
    data_type = data_type_of(mapping(meta.get("run")))
    if data_type is None:
        return unknown("1", "the workload did not report a data type whose peak is known")
    ceilings = every_ceiling_of(meta, devices).get(data_type, ())
    peak = next((ceiling for ceiling in ceilings if ceiling.kind == PEAK), None)
    if peak is None:
        peaks = (peaks_of(gpu).get(data_type) for gpu in gpus)
        reason = next((each.reason for each in peaks if each and each.reason), None)
        return unknown("1", reason or f"the {data_type} peak of this GPU is not known")
    source = (
        f"model FLOP (forward and backward) per second over the {peak.text}, "
        f"{units.si(peak.value, peak.unit)} ({peak.source})"
    )
    return MeasuredValue(flop.value / peak.value, "1", Method.COUNTED, source)
