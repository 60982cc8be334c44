"""Counted FLOP/s against what the hardware allows: its peak, and what its pipes executed at most.

A counted rate may exceed what the pipes' activity allows by 15 % (activity and clocks are sampled).
Activity may allow three times what was counted, since an active pipe is seldom full, and additions,
normalisation and the optimizer run on the same pipes without being counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpuwatch.analysis.hardware.ceilings import Ceiling
from gpuwatch.analysis.hardware.limits import is_over, limit_of
from gpuwatch.analysis.hardware.pipes import TENSOR
from gpuwatch.core import units
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.session.rows import DeviceRow

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
    """All cross-checks, warnings first.

    ``flop_rate`` is in FLOP/s over the timed steps and over all GPUs of the run; ``most_executed``
    is that of :mod:`~gpuwatch.analysis.hardware.pipes`.
    """
    candidates = [
        _peak(limit_of(gpus, data_type), data_type, flop_rate),
        _pipes(flop_rate, most_executed),
        _tensor(means, data_type),
    ]
    findings = [finding for finding in candidates if finding is not None]
    return tuple(sorted(findings, key=lambda finding: not finding.warning))


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
