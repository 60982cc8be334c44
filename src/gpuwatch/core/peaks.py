"""Theoretical peaks of a GPU, from its cores, clocks and memory bus.

Dense, accumulating in FP32. ``peaks`` are at the maximum clocks that NVML reports, which cards
reach only while power and heat allow; ``sheet_peaks`` are at the data-sheet clock. A peak that
cannot be derived is unknown and says why. Prefer measured ceilings (``gpuwatch.core.ceilings``).
"""

from __future__ import annotations

from collections.abc import Mapping

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, number
from gpuwatch.core.peak_tables import UNIFIED, Rates, is_virtual, rates_of, sheet_of

DATA_TYPES = ("float64", "float32", "tf32", "bfloat16", "float16", "fp8", "int8")
MEASURE = "`gpuwatch calibrate` measures what it can do"
"""The end of most reasons: calibration supplies the missing ceiling, but no gauge."""
_WIDER = {"fp8": "float16", "bfloat16": "float32", "tf32": "float32"}
_TENSOR_CLOCK = frozenset({"tf32", "bfloat16", "float16", "fp8", "int8"})


@dataclass(frozen=True)
class Peak:
    """A theoretical maximum per second, or why it is not known."""

    name: str
    """``bandwidth`` or a data type of :data:`DATA_TYPES`."""
    unit: str
    """``By/s`` or ``FLOP/s``; ``OP/s`` for ``int8``."""
    value: float | None
    basis: str
    """The clock it holds at: ``maximum clock 1980 MHz``, ``data-sheet clock 1830 MHz``."""
    source: str
    """Where each figure comes from."""
    reason: str | None
    """Why it is not known."""


def dram_peak(attributes: Mapping[str, JSON], name: str = "") -> Peak:
    """Peak bandwidth of device memory [By/s] at the maximum memory clock, both directions added.

    Maximum memory clock x 2 x bus width / 8. For every kind of memory (HBM, GDDR5 to
    GDDR7) NVML scales the clock so that the factor 2 gives the data-sheet value. The current clock
    is never used.
    """
    reason = _not_a_whole_gpu(attributes, name)
    if reason is None and str(attributes.get("compute.capability")) in UNIFIED:
        reason = (
            f"this GPU shares the host's memory, whose bandwidth NVML does not report; {MEASURE}"
        )
    clock = number(attributes.get("clock.memory.max"))
    width = number(attributes.get("memory.bus.width"))
    if reason is None and not clock:
        reason = f"NVML does not give the maximum memory clock; {MEASURE}"
    if reason is None and not width:
        reason = f"NVML does not give the width of the memory bus; {MEASURE}"
    if reason is not None or not clock or not width:
        return _unknown("bandwidth", reason)
    return Peak(
        "bandwidth",
        "By/s",
        clock * 2 * width / 8,
        f"maximum memory clock {_mhz(clock)}",
        f"{_mhz(clock)} (NVML, maximum) x 2 x {width:g} bit (NVML) / 8",
        None,
    )


def peaks(attributes: Mapping[str, JSON], name: str) -> dict[str, Peak]:
    """Peaks at the maximum clocks, by name: ``bandwidth`` and each data type.

    ``attributes`` are those of a GPU in ``docs/telemetry.md``, ``name`` its product name in NVML:
    professional and GeForce cards of one architecture differ.
    """
    clock = number(attributes.get("clock.sm.max"))
    by_name = {"bandwidth": dram_peak(attributes, name)}
    for data_type in DATA_TYPES:
        by_name[data_type] = _compute(data_type, attributes, name, clock, "maximum clock", "NVML")
    return by_name


def computed_in(data_type: str, attributes: Mapping[str, JSON], name: str) -> str:
    """The data type in which a GPU computes ``data_type``: a wider one if it lacks the type.

    bfloat16 and TF32 are computed in float32 before Ampere, FP8 in float16 before Ada.
    """
    rates = rates_of(str(attributes.get("compute.capability") or ""), name)
    if rates is None:
        return data_type
    while data_type not in rates.per_clock and data_type in _WIDER:
        data_type = _WIDER[data_type]
    return data_type


def sheet_peaks(attributes: Mapping[str, JSON], name: str) -> dict[str, Peak]:
    """Peaks from the product's data sheet, by name; unknown without a data sheet.

    Compute: at the sheet's boost clock, for tensor cores at the lower clock if the maker quotes
    one (H100, H200). Bandwidth: the sheet's own figure.
    """
    sheet = sheet_of(name)
    if sheet is None:
        reason = f"gpuwatch has no data sheet for {name or 'a GPU without a name'}"
        return {key: _unknown(key, reason) for key in ("bandwidth", *DATA_TYPES)}
    not_whole = _not_a_whole_gpu(attributes, name)
    by_name = {
        "bandwidth": _unknown("bandwidth", not_whole)
        if not_whole
        else Peak("bandwidth", "By/s", sheet.bandwidth * 1e9, "data sheet", "data sheet", None)
    }
    source = "data sheet: implied by its FLOP/s" if sheet.implied else "data sheet"
    for data_type in DATA_TYPES:
        mhz = sheet.tensor if sheet.tensor and data_type in _TENSOR_CLOCK else sheet.boost
        by_name[data_type] = _compute(
            data_type, attributes, name, mhz * 1e6, "data-sheet clock", source
        )
    return by_name


def _compute(
    data_type: str,
    attributes: Mapping[str, JSON],
    name: str,
    clock: float | None,
    which_clock: str,
    clock_source: str,
) -> Peak:
    capability = str(attributes.get("compute.capability") or "")
    cores = number(attributes.get("core.count"))
    rates = rates_of(capability, name)
    reason = _not_a_whole_gpu(attributes, name)
    if reason is None and not clock:
        reason = f"NVML does not give the maximum clock; {MEASURE}"
    reason = reason or _not_computed(data_type, capability, name, cores, rates)
    rate = rates.per_clock.get(data_type) if rates else None
    if reason is not None or not rates or not rate or not cores or not clock:
        return _unknown(data_type, reason)
    processors, basis = cores / rates.cores, f"{which_clock} {_mhz(clock)}"
    source = (
        f"{processors:g} multiprocessors ({cores:g} cores by NVML / {rates.cores}) x {rate} per"
        f" clock (white papers, compute capability {capability}) x {_mhz(clock)} ({clock_source})"
    )
    if data_type == "float64" and capability in ("8.0", "9.0"):
        source += "; of the tensor cores, twice that of the others"
    return Peak(data_type, _unit(data_type), processors * rate * clock, basis, source, None)


def _not_computed(
    data_type: str, capability: str, name: str, cores: float | None, rates: Rates | None
) -> str | None:
    if not capability:
        return f"NVML does not give the compute capability; {MEASURE}"
    if rates is None:
        return (
            f"the rates of {name or 'this GPU'}, compute capability {capability}, are not known"
            f" to gpuwatch; {MEASURE}"
        )
    if data_type not in rates.per_clock:
        return (
            f"{name or 'this GPU'}, compute capability {capability}, has no cores for {data_type}"
        )
    if rates.per_clock[data_type] is None:
        return f"the {data_type} rate of {name or 'this GPU'} is not known to gpuwatch; {MEASURE}"
    if not cores:
        return f"NVML does not give the number of cores; {MEASURE}"
    if cores % rates.cores:
        return (
            f"{cores:g} cores are not a multiple of {rates.cores}, the cores of a multiprocessor of"
            f" compute capability {capability}; {MEASURE}"
        )
    return None


def _not_a_whole_gpu(attributes: Mapping[str, JSON], name: str) -> str | None:
    if attributes.get("mig.parent"):
        return f"NVML does not report which part of the GPU a MIG device has; {MEASURE}"
    if is_virtual(name):
        return f"{name} is a virtual GPU, an unknown share of a card; {MEASURE}"
    return None


def _unit(name: str) -> str:
    return {"bandwidth": "By/s", "int8": "OP/s"}.get(name, "FLOP/s")


def _unknown(name: str, reason: str | None) -> Peak:
    return Peak(name, _unit(name), None, "", "", reason or f"not known; {MEASURE}")


def _mhz(clock: float) -> str:
    return f"{clock / 1e6:g} MHz"
