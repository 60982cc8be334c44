"""Hard limits of a run, computed from cores and clocks."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.analysis.hardware.ceilings import PEAK, Ceiling, peaks_of
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON
from gpuwatch.core.peaks import computed_in
from gpuwatch.session.rows import DeviceRow

OVER_PEAK = 1.02
"""Multiple of the peak beyond which errors of the step times cannot explain a rate. (A measured
product may be exceeded: it is only what one program reached.)"""


@dataclass(frozen=True)
class Clocks:
    """How far power or temperature held the clocks down."""

    held: float
    """Share of the time, 0 to 1, on the GPU with the largest."""
    mean: float | None
    """Hz: mean clock of the multiprocessors of the GPUs that were held down."""
    maximum: float | None
    """Hz: mean maximum clock of the same GPUs."""
    share: float | None
    """Mean clock over maximum where all GPUs were held down, 0 to 1; else ``None``."""


def limit_of(gpus: Sequence[DeviceRow], data_type: str | None) -> Ceiling | None:
    """The peak [FLOP/s] of all GPUs together, which no run in ``data_type`` can exceed.

    Where a GPU has no cores for the type, the peak of the type that it computes in. ``None`` where
    the peak of a GPU is unknown.
    """
    if data_type is None or not gpus:
        return None
    types = [computed_in(data_type, _plain(gpu), gpu.name) for gpu in gpus]
    peaks_ = [peaks_of(gpu).get(name) for gpu, name in zip(gpus, types, strict=True)]
    values = [peak.value for peak in peaks_ if peak is not None and peak.value]
    if len(values) < len(gpus):
        return None
    first = peaks_[0]
    text = f"{types[0]} peak at maximum clock"
    if types[0] != data_type:
        text += f", as the GPU has no cores for {data_type}"
    if len(gpus) > 1:
        text += f", sum over {len(gpus)} GPUs"
    source = "" if first is None else f"{first.basis}; {first.source}"
    return Ceiling(types[0], sum(values), "FLOP/s", PEAK, text, source)


def is_over(limit: Ceiling | None, rate: float | None) -> bool:
    """Whether ``rate`` [FLOP/s] is more than the hardware can do."""
    return limit is not None and rate is not None and rate > OVER_PEAK * limit.value


def _plain(gpu: DeviceRow) -> dict[str, JSON]:
    return {k: v for k, v in gpu.attributes.items() if not isinstance(v, (dict, list))}
