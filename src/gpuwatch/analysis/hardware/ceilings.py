"""Ceilings of compute and bandwidth: measured ones, else the data sheet's peaks, else those at the
maximum clock.

A measured ceiling comes from `gpuwatch calibrate` on the same device; a peak is computed from the
card's widths and clocks (``gpuwatch.core.peaks``). A CPU has measured ceilings only. Names are
``bandwidth`` [By/s] and data types [FLOP/s]: ``float32``, ``tf32``, ``bfloat16``, ...
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from gpuwatch.core.aggregate import grouped
from gpuwatch.core.ceilings import warnings_of, when_of
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, mapping, number
from gpuwatch.core.peaks import Peak, peaks, sheet_peaks
from gpuwatch.core.text import clean
from gpuwatch.session.rows import DeviceRow

BANDWIDTH = "bandwidth"
MEASURED, PEAK, SHEET = "measured", "peak", "sheet"
KINDS = (MEASURED, SHEET, PEAK)
"""The first that is known is the one that a share is of."""
CALIBRATE = "`gpuwatch calibrate`, on its machine, measures the ceilings of later runs"

_TEXTS = {PEAK: "peak at maximum clock", SHEET: "data-sheet peak"}
_DATA_TYPES = {
    "float64": "float64", "fp64": "float64", "double": "float64",
    "float32": "float32", "fp32": "float32", "float": "float32",
    "tf32": "tf32",
    "bfloat16": "bfloat16", "bf16": "bfloat16",
    "float16": "float16", "fp16": "float16", "half": "float16",
    "fp8": "fp8",
}  # fmt: skip


@dataclass(frozen=True)
class Ceiling:
    """An upper limit of a rate."""

    name: str
    """``bandwidth`` or a data type."""
    value: float
    unit: str
    """``By/s`` or ``FLOP/s``."""
    kind: str
    """``measured``, ``peak`` (at the maximum clock) or ``sheet`` (at the data sheet's clock)."""
    text: str
    """Short, for people: ``measured copy``, ``peak at maximum clock, sum over 2 GPUs``."""
    source: str
    doubt: str | None = None
    """Why a measured ceiling may be too low: what disturbed its measurement."""


@dataclass(frozen=True)
class Missing:
    """Reason and hint where a measured ceiling is unknown."""

    reason: str | None = None
    """Why it is unknown although the device was calibrated; ``None``: not known."""
    hint: str = CALIBRATE


NEVER_MEASURED = Missing()
UNKNOWN_GPUS = "it is not known which GPUs are the run's"
OVER_PEAK = 1.02
"""Multiple of the peak beyond which errors of the step times cannot explain a rate. (A measured
product may be exceeded: it is only what one program reached.)"""
_TELL_GPUS = "a `run` line with `device` and `device_uuid` names them (`gpuwatch run --help`)"


def is_over(limit: Ceiling | None, rate: float | None) -> bool:
    """Whether ``rate`` [FLOP/s] is more than the hardware can do."""
    return limit is not None and rate is not None and rate > OVER_PEAK * limit.value


def missing_of(meta: Mapping[str, JSON], devices: Sequence[DeviceRow]) -> Missing:
    """Why the run's ceilings are unknown: its GPUs are, or the recorder could not choose between
    calibrations and gave its reason."""
    if gpus_unknown(devices):
        return Missing(UNKNOWN_GPUS, _TELL_GPUS)
    recorded = mapping(meta.get("ceilings_missing"))
    reason, hint = recorded.get("reason"), recorded.get("hint")
    return Missing(clean(reason), clean(hint)) if reason and hint else NEVER_MEASURED


def ceilings_of(
    meta: Mapping[str, JSON], devices: Sequence[DeviceRow], device_id: str | None = None
) -> dict[str, Ceiling]:
    """The known ceilings by name: the first of :data:`KINDS`.

    They are those of ``device_id``, by default of what the run used: the CPU, a GPU, or the sum
    over its GPUs, if all of them have a ceiling of the same kind.
    """
    every = every_ceiling_of(meta, devices, device_id)
    return {name: of_name[0] for name, of_name in every.items()}


def every_ceiling_of(
    meta: Mapping[str, JSON], devices: Sequence[DeviceRow], device_id: str | None = None
) -> dict[str, tuple[Ceiling, ...]]:
    """All ceilings by name, in the order of :data:`KINDS`; see :func:`ceilings_of`."""
    if device_id is None:
        chosen = devices_of_run(devices)
    else:
        chosen = tuple(device for device in devices if device.id == device_id)
    every = (ceiling for device in chosen for ceiling in _of_device(meta, device))
    by_kind = grouped(((ceiling.name, ceiling.kind), ceiling) for ceiling in every)
    by_name: dict[str, tuple[Ceiling, ...]] = {}
    for kind in KINDS:
        for (name, of_kind), ceilings in by_kind.items():
            if of_kind == kind and len(ceilings) == len(chosen):
                by_name[name] = (*by_name.get(name, ()), _sum(ceilings))
    return by_name


def devices_of_run(devices: Sequence[DeviceRow]) -> tuple[DeviceRow, ...]:
    """The GPUs that the run used, else the CPU; empty where the run's GPUs are unknown."""
    gpus = tuple(device for device in devices if device.kind == "gpu" and device.used)
    if gpus or gpus_unknown(devices):
        return gpus
    return tuple(device for device in devices if device.kind == "cpu")[:1]


def gpus_unknown(devices: Sequence[DeviceRow]) -> bool:
    """Whether it is still unknown which of the watched GPUs the run uses, if any."""
    return any(device.used is None for device in devices)


def data_type_of(meta: Mapping[str, JSON], devices: Sequence[DeviceRow]) -> str | None:
    """The data type of a run's matrix products, named like its ceiling; ``None``: not reported, or
    of products on the CPU while other code of the program used GPUs.

    ``bfloat16`` and ``float16`` include autocast regions; ``float32`` means without TF32.
    """
    run = mapping(meta.get("run"))
    if run.get("device") == "cpu" and any(each.kind == "gpu" for each in devices_of_run(devices)):
        return None
    words = re.findall(r"[a-z]+[0-9]*", str(run.get("dtype") or "").lower().replace("torch.", ""))
    known = [_DATA_TYPES[word] for word in words if word in _DATA_TYPES]
    return known[0] if len(set(known)) == 1 else None


def _of_device(meta: Mapping[str, JSON], device: DeviceRow) -> list[Ceiling]:
    ceilings: list[Ceiling] = []
    for document in _documents(meta, device):
        for name, entry in mapping(document.get("ceilings")).items():
            measured = _measured(str(name), mapping(entry), document)
            if measured is not None and all(ceiling.name != name for ceiling in ceilings):
                ceilings.append(measured)
    if device.kind == "gpu":
        ceilings += _peaks(peaks_of(device), PEAK)
        ceilings += _peaks(sheet_peaks_of(device), SHEET)
    return ceilings


def peaks_of(device: DeviceRow) -> dict[str, Peak]:
    """The peaks of a GPU at its maximum clocks, including unknown ones."""
    return peaks(plain(device), device.name)


def sheet_peaks_of(device: DeviceRow) -> dict[str, Peak]:
    """The peaks of a GPU by its data sheet, including unknown ones."""
    return sheet_peaks(plain(device), device.name)


def plain(device: DeviceRow) -> dict[str, JSON]:
    """The scalar attributes: a file from elsewhere may hold anything."""
    attributes = device.attributes.items()
    return {key: value for key, value in attributes if not isinstance(value, (dict, list))}


def _documents(meta: Mapping[str, JSON], device: DeviceRow) -> list[Mapping[str, JSON]]:
    """The calibrations of this device, by UUID, or by name without one."""
    stored = meta.get("ceilings")
    documents = [mapping(entry) for entry in (stored if isinstance(stored, list) else [stored])]
    matching = []
    for document in documents:
        calibrated = mapping(document.get("device"))
        if calibrated.get("kind") != device.kind:
            continue
        uuid, name = calibrated.get("uuid"), calibrated.get("name")
        same = uuid == device.uuid if uuid and device.uuid else name == device.name
        if same or device.kind == "cpu":
            matching.append(document)
    return matching


def _measured(name: str, entry: Mapping[str, JSON], document: Mapping[str, JSON]) -> Ceiling | None:
    value = number(entry.get("value"))
    if value is None or value <= 0 or (name != BANDWIDTH and name not in _DATA_TYPES.values()):
        return None
    how = [str(entry.get("how") or "measured")]
    spread = number(entry.get("spread"))
    if spread is not None:
        how.append(f"spread {spread * 100:.1f} % (no error bound)")
    if document.get("torch"):
        how.append(f"torch {document['torch']}")
    when = when_of(entry, document)
    if when:
        how.append(str(when))
    text = "measured copy" if name == BANDWIDTH else f"measured {name} product"
    if document.get("run_torch"):
        how.append(f"while the run has torch {document['run_torch']}")
        text += ", by another torch"
    unit = "By/s" if name == BANDWIDTH else "FLOP/s"
    doubt = "; ".join(dict.fromkeys(map(clean, warnings_of(entry, document)))) or None
    source = f"gpuwatch calibrate: {', '.join(how)}"
    return Ceiling(name, value, unit, MEASURED, text, source, doubt)


def _peaks(peaks: Mapping[str, Peak], kind: str) -> list[Ceiling]:
    return [
        Ceiling(
            name,
            peak.value,
            peak.unit,
            kind,
            _TEXTS[kind] if name == BANDWIDTH else f"{name} {_TEXTS[kind]}",
            "; ".join(dict.fromkeys((peak.basis, peak.source))),
        )
        for name, peak in peaks.items()
        if peak.value is not None and peak.value > 0
    ]


def _sum(ceilings: Sequence[Ceiling]) -> Ceiling:
    first = ceilings[0]
    if len(ceilings) == 1:
        return first
    return Ceiling(
        first.name,
        sum(ceiling.value for ceiling in ceilings),
        first.unit,
        first.kind,
        f"{first.text}, sum over {len(ceilings)} GPUs",
        "; ".join(dict.fromkeys(ceiling.source for ceiling in ceilings)),
        "; ".join(dict.fromkeys(ceiling.doubt for ceiling in ceilings if ceiling.doubt)) or None,
    )
