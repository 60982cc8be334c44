"""Counted work against hardware counters: two ways to one number that should agree.

The tolerances are what ordinary causes explain, not laws of nature; beyond them a warning gives
both numbers.

- ``RATE_SLACK``: a counted rate may exceed what the pipes' activity allows by 15 % (activity and
  clocks are sampled). ``RATE_FAR``: activity may allow three times what was counted, since an
  active pipe is seldom full, and additions, normalisation and the optimizer run on the same pipes
  without being counted.
- ``BYTES_MORE``: DRAM may move half as much again as the operators' inputs and outputs (workspaces,
  padding). ``BYTES_FEWER``: caches and fusion may save up to nineteen bytes of twenty.
- ``EXECUTED``: executed FLOP may be from a quarter of the model's (Winograd's F(4x4, 3x3) needs a
  fourth of the multiplications: A. Lavin, S. Gray, CVPR 2016) to twice them (padding to tiles).
- ``UNCOUNTED``: operators without a formula are reported from three tenths of the bytes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpuwatch.analysis.hardware.ceilings import Ceiling
from gpuwatch.analysis.hardware.limits import is_over, limit_of
from gpuwatch.analysis.hardware.pipes import TENSOR
from gpuwatch.analysis.hardware.profile import Counters
from gpuwatch.core import units
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, mapping, number
from gpuwatch.session.rows import DeviceRow

RATE_SLACK, RATE_FAR = 1.15, 3.0
BYTES_MORE, BYTES_FEWER = 1.5, 1 / 20
EXECUTED = (0.25, 2.0)
UNCOUNTED = 0.3

_SOME_TENSOR = 0.05
_MOST_NAMED = 5


@dataclass(frozen=True)
class Finding:
    """Two numbers for the same quantity, and what their ratio means."""

    kind: str
    """``peak``, ``pipes``, ``bytes``, ``executed``, ``tensor``, ``uncounted``, ``clocks`` or
    ``sharing``."""
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
    bytes_rate: float | None,
    measured_bytes: float | None,
    most_executed: float | None,
    count: Mapping[str, JSON],
    counters: Counters | None,
) -> tuple[Finding, ...]:
    """All cross-checks, warnings first.

    Rates are FLOP/s and By/s over the timed steps and over all GPUs of the run; ``most_executed``
    is that of :mod:`~gpuwatch.analysis.hardware.pipes`.
    """
    candidates = [
        _peak(limit_of(gpus, data_type), data_type, flop_rate),
        _pipes(flop_rate, most_executed),
        _bytes(bytes_rate, measured_bytes),
        _executed(count, counters),
        _tensor(means, data_type),
        _uncounted(count),
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


def _bytes(counted: float | None, measured: float | None) -> Finding | None:
    if not counted or measured is None:
        return None
    both = (
        f"algorithmic bytes {units.si(counted, 'B/s')}, and the memory moved "
        f"{units.si(measured, 'B/s')}"
    )
    if measured > BYTES_MORE * counted:
        text = (
            f"{both}: more than the operators' inputs and outputs (workspaces, padding, spilled "
            "registers, copies between host and GPU, another process on the GPU)"
        )
    elif measured < BYTES_FEWER * counted:
        text = (
            f"{both}: fewer than caches and fusion usually leave, unless all the data of a step "
            "fits into the GPU's cache"
        )
    elif measured < counted:
        saved = units.percent(1 - measured / counted)
        text = f"{both}: caches and fusion saved {saved}"
        return Finding("bytes", False, text, counted, measured, "By/s")
    else:
        return Finding("bytes", False, f"{both}: they agree", counted, measured, "By/s")
    return Finding("bytes", True, text, counted, measured, "By/s")


def _executed(count: Mapping[str, JSON], counters: Counters | None) -> Finding | None:
    model = number(count.get("flop_per_step"))
    executed = None if counters is None else counters.flop_per_step
    if not model or executed is None:
        return None
    ratio = executed / model
    both = (
        f"the model takes {units.si(model, 'FLOP')} a step, and the kernels executed "
        f"{units.si(executed, 'FLOP')}, {ratio:.2f} times as many"
    )
    low, high = EXECUTED
    if ratio < low:
        cause = "fewer than any usual algorithm needs: were all kernels counted?"
    elif ratio < 1:
        cause = "fewer, as algorithms like Winograd or FFT convolution do"
    elif ratio <= high:
        cause = "padding to whole tiles, and operators that have no formula"
    else:
        cause = "more than padding explains: recomputation, or operators without a formula"
    warning = not low <= ratio <= high
    return Finding("executed", warning, f"{both}: {cause}", model, executed, "FLOP")


def _tensor(means: Means, data_type: str | None) -> Finding | None:
    active = [of_gpu[TENSOR] for of_gpu in means.values() if TENSOR in of_gpu]
    if data_type != "float32" or not active or max(active) < _SOME_TENSOR:
        return None
    text = (
        f"the run reports float32, and the tensor pipes were active {units.percent(max(active))} "
        "of the cycles: TF32 or a narrower type was in use, so the float32 ceiling is not the run's"
    )
    return Finding("tensor", True, text, None, max(active), "1")


def _uncounted(count: Mapping[str, JSON]) -> Finding | None:
    """Operators without a FLOP formula, where they move a large part of the bytes."""
    total = number(count.get("bytes_per_step"))
    listed, operators = count.get("uncounted_operators"), count.get("operators")
    if not total or not isinstance(listed, list) or not isinstance(operators, list):
        return None
    names = {str(entry).rpartition(" x")[0] for entry in listed}
    sizes = {
        str(mapping(operator).get("name")): number(mapping(operator).get("bytes")) or 0.0
        for operator in operators
    }
    moved = {name: size for name, size in sizes.items() if name in names and size > 0}
    share = sum(moved.values()) / total
    if share < UNCOUNTED:
        return None
    largest = sorted(moved, key=lambda name: -moved[name])[:_MOST_NAMED]
    text = (
        f"operators whose FLOP are not counted move {units.percent(share)} of the algorithmic "
        f"bytes: {', '.join(largest)}"
    )
    return Finding("uncounted", False, text, None, min(1.0, share), "1")
