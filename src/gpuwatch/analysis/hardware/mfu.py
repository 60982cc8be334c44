"""Model FLOP utilization; without numpy, so that session lists start fast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpuwatch.analysis.hardware import ceilings
from gpuwatch.analysis.measured_value import MeasuredValue, unknown
from gpuwatch.core import units
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import JSON, mapping, number
from gpuwatch.session.rows import DeviceRow

MFU = "MFU"
"""Over the peak of the data sheet, as the field defines it."""
MFU_AT_MAXIMUM_CLOCK = "MFU at maximum clock"
HFU = "HFU"
"""Hardware FLOP utilization: MFU with the operations that the program computes twice, by activation
checkpointing."""
MODEL_FLOP = "model FLOP, forward and backward, without recomputation"
"""Which FLOP an MFU counts: a multiply-add is two, of attention all pairs of tokens, as in PaLM's
6N + 12LHQT a token (arXiv:2204.02311, appendix B), but with the embedding only where it is
multiplied."""
EXECUTED_TWICE = "model FLOP, forward and backward, and those that checkpointing computes again"
"""Which FLOP an HFU counts."""


@dataclass(frozen=True)
class MfuPeak:
    """The peak that an MFU is over: of the run's data type, summed over its GPUs."""

    name: str
    """``MFU`` or ``MFU at maximum clock``."""
    ceiling: ceilings.Ceiling | None
    reason: str | None
    """Why it is not known."""
    limit: ceilings.Ceiling | None = None
    """What no run can pass: the peak at the maximum clock."""

    def mfu(self, flop: MeasuredValue) -> MeasuredValue:
        """Forward and backward FLOP/s over the peak; unknown above what no run can pass."""
        if flop.value is None:
            return unknown("1", flop.reason or "no FLOP/s are known")
        if self.ceiling is None:
            return unknown("1", self.reason or "no peak is known")
        if ceilings.is_over(self.limit, flop.value) and self.limit is not None:
            most = f"{self.limit.text}, {units.si(self.limit.value, 'FLOP/s')}"
            return unknown(
                "1", f"{units.si(flop.value, 'FLOP/s')} are counted, and no run can pass the {most}"
            )
        source = (
            f"{MODEL_FLOP}, per second over the dense {self.ceiling.text}, "
            f"{units.si(self.ceiling.value, self.ceiling.unit)} ({self.ceiling.source})"
        )
        return MeasuredValue(flop.value / self.ceiling.value, "1", Method.COUNTED, source)


def hfu_of(mfu: MeasuredValue, count: Mapping[str, JSON]) -> MeasuredValue:
    """MFU with what was recomputed, from the ``count`` report of a program that recomputes."""
    model, again = (number(count.get(key)) for key in ("flop_per_step", "flop_recomputed_per_step"))
    if not again or not model:
        return unknown("1", "the program is not known to recompute anything")
    if mfu.value is None:
        return mfu
    source = mfu.source.replace(MODEL_FLOP, EXECUTED_TWICE)
    return MeasuredValue(mfu.value * (model + again) / model, "1", mfu.method, source)


def mfu_peaks(meta: Mapping[str, JSON], devices: Sequence[DeviceRow]) -> tuple[MfuPeak, MfuPeak]:
    """The peaks of the data sheet and at the maximum clock."""
    return (
        _peak(MFU, ceilings.SHEET, meta, devices),
        _peak(MFU_AT_MAXIMUM_CLOCK, ceilings.PEAK, meta, devices),
    )


def _peak(name: str, kind: str, meta: Mapping[str, JSON], devices: Sequence[DeviceRow]) -> MfuPeak:
    if ceilings.gpus_unknown(devices):
        return MfuPeak(name, None, ceilings.UNKNOWN_GPUS)
    gpus = [device for device in ceilings.devices_of_run(devices) if device.kind == "gpu"]
    data_type = ceilings.data_type_of(meta, devices)
    known = ceilings.every_ceiling_of(meta, devices).get(data_type or "", ())
    if not gpus:
        measured = ": see the share of the measured product" if known else ""
        return MfuPeak(name, None, f"a CPU's peak is not known{measured}")
    if data_type is None:
        reason = "the workload did not report a data type whose peak is known"
        if mapping(meta.get("run")).get("device") == "cpu":
            reason = "FLOP were counted on the CPU, not of what ran on the GPU"
        return MfuPeak(name, None, reason)
    of_kind = {each.kind: each for each in known}
    if kind in of_kind:
        return MfuPeak(name, of_kind[kind], None, of_kind.get(ceilings.PEAK))
    of_gpu = ceilings.sheet_peaks_of if kind == ceilings.SHEET else ceilings.peaks_of
    peaks = (of_gpu(gpu).get(data_type) for gpu in gpus)
    found = next((each.reason for each in peaks if each and each.reason), None)
    return MfuPeak(name, None, found or f"the {data_type} peak of this GPU is not known")
