"""What no run can pass: arithmetic on cores and clocks."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.analysis.hardware.ceilings import PEAK, Ceiling, peaks_of
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON
from gpuwatch.core.peaks import computed_in
from gpuwatch.session.rows import DeviceRow

OVER_PEAK = 1.02
"""Times the peak: what is over it is no error of the step times. (A measured product may be passed:
it is what one program got.)"""


@dataclass(frozen=True)
class Clocks:
    """How clocks were held down by power or temperature."""

    held: float
    """Share of the time, of the GPU with the largest."""
    mean: float | None
    """Hz: clock of the multiprocessors, mean over the GPUs that were held down."""
    maximum: float | None
    """Hz: the same GPUs' maximum."""
    share: float | None
    """Mean clock over maximum where all GPUs were held down, 0 to 1; else ``None``."""


def limit_of(gpus: Sequence[DeviceRow], data_type: str | None) -> Ceiling | None:
    """The peak [FLOP/s] of all GPUs together that no run in ``data_type`` can pass.

    Of a type that a GPU has no cores for, the peak of the type it is computed in. ``None`` where
    the peak of one of them is not known.
    """
    if data_type is None or not gpus:
        return None
    types = [computed_in(data_type, _plain(gpu), gpu.name) for gpu in gpus]
    found = [peaks_of(gpu).get(name) for gpu, name in zip(gpus, types, strict=True)]
    values = [peak.value for peak in found if peak is not None and peak.value]
    if len(values) < len(gpus):
        return None
    first = found[0]
    text = f"{types[0]} peak at maximum clock"
    if types[0] != data_type:
        text += f", as the GPU has no cores for {data_type}"
    if len(gpus) > 1:
        text += f", sum over {len(gpus)} GPUs"
    source = "" if first is None else f"{first.basis}; {first.source}"
    return Ceiling(types[0], sum(values), "FLOP/s", PEAK, text, source)


def is_over(limit: Ceiling | None, rate: float | None) -> bool:
    """Whether ``rate`` is more than the hardware can do."""
    return limit is not None and rate is not None and rate > OVER_PEAK * limit.value


def _plain(gpu: DeviceRow) -> dict[str, JSON]:
    return {k: v for k, v in gpu.attributes.items() if not isinstance(v, (dict, list))}
