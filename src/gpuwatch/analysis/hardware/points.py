"""The points of a run in the roofline, and the rates behind them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from gpuwatch.analysis.hardware.ceilings import Ceiling
from gpuwatch.analysis.hardware.crosscheck import Clocks
from gpuwatch.core import units
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method

ALGORITHMIC, MEASURED, EXECUTED = "algorithmic", "measured", "executed"
KINDS = (EXECUTED, MEASURED, ALGORITHMIC)
"""Kinds of bytes, the most trustworthy first."""
AT_MOST = "at most"

_BYTES = {
    ALGORITHMIC: "algorithmic bytes (operators' inputs and outputs; no caches, no fusion)",
    MEASURED: "measured bytes (DRAM traffic by hardware counters over the steady steps)",
    EXECUTED: "executed FLOP and DRAM bytes by ncu, at the step rate of the timed steps",
}
_AT_MOST = "executed FLOP at most, by the activity of the pipes, and measured bytes (DRAM traffic)"
_OWN = ("forward", "backward", "optimizer")
OUTSIDE = "outside forward, backward and optimizer"


@dataclass(frozen=True)
class Rates:
    """Mean rates over a part of a run, for all devices it used together; ``None`` is unknown."""

    flop: float | None = None
    """Counted model FLOP/s."""
    bytes: float | None = None
    """Algorithmic By/s."""
    measured_bytes: float | None = None
    """DRAM By/s by hardware counters."""
    executed_flop: float | None = None
    """Executed FLOP per step by ncu, times the step rate."""
    most_executed: float | None = None
    """Executed FLOP/s at most, by the activity of the pipes."""
    executed_bytes: float | None = None
    """DRAM bytes read and written per step by ncu, times the step rate, By/s."""
    on_gpu: bool = True
    pause: float | None = None
    """Share of the time of one pause between steps."""
    busy: float | None = None
    """Share of time in which a kernel ran (GPU), or the workload's threads ran (CPU)."""
    own_cores: float | None = None
    """CPU: share of all cores' time that the program's processes used."""
    own_at_most: bool = False
    """``own_cores`` is an upper bound: the use was below the resolution of the accounting."""
    usable: float | None = None
    """CPU: number of cores that the program may use, where the machine has more."""
    held: float | None = None
    """CPU: share of the time, at most, in which others had all cores that the program may use."""
    waits: float | None = None
    """CPU: share of the time, at least, in which no thread of the program wanted to run."""
    core_wait: float | None = None
    """CPU: share of the time, at least, in which the workload's threads were ready and had no
    core."""
    others_held: bool = False
    """CPU: it was other programs that had the cores then."""
    cores_busy: float | None = None
    """CPU: share of all cores' time in use, by any program."""
    clocks: Clocks | None = None
    """GPUs: how far power or temperature held their clocks down; ``None``: not, or unknown."""
    limit: Ceiling | None = None
    """FLOP/s that no run on these GPUs can exceed."""
    unmeasured: str | None = None
    """Why ``measured_bytes`` is unknown."""
    sm_activity: float | None = None
    """Share of time a multiprocessor had work, mean over all."""
    pipe: tuple[float, str] | None = None
    """The busiest of its pipes: share of the time in which it worked, and its name."""
    data_share: float | None = None
    """Share of the steps' time in the data phase."""
    outside: float | None = None
    """Share of the steps' time outside forward, backward and optimizer."""
    kernels: str | None = None
    """How to see the run's kernels."""


def of_phases(shares: Mapping[str, float]) -> dict[str, Any]:
    """The fields of :class:`Rates` that follow from each phase's share of the steps' time."""
    outside = 1 - sum(shares.get(name, 0.0) for name in _OWN) if _OWN[0] in shares else None
    return {
        "data_share": min(1.0, shares["data"]) if shares.get("data") else None,
        "outside": outside,
    }


@dataclass(frozen=True)
class Point:
    """A run as a point in the roofline."""

    label: str
    intensity: float
    """FLOP per byte."""
    rate: float
    """FLOP/s."""
    bytes_kind: str
    """``algorithmic``, ``measured`` or ``executed``."""
    method: Method
    """``measured`` where ncu counted FLOP and bytes, ``counted`` like model FLOP, or ``bound``
    where the pipes did at most so much."""
    text: str
    """What the bytes are, in words."""

    @property
    def bound(self) -> str | None:
        return AT_MOST if self.method is Method.BOUND else None

    @property
    def mark(self) -> str:
        """What its mark in a plot shows: the kind of its bytes, or ``at most``."""
        return self.bound or self.bytes_kind

    @property
    def place(self) -> str:
        """``100 FLOP/B, 4.00 TFLOP/s``, each behind ``≤`` where it is at most there."""
        told = units.quantity(self.intensity, "FLOP/By"), units.si(self.rate, "FLOP/s")
        return ", ".join(units.bounded(each, self.bound) for each in told)

    @property
    def bytes_rate(self) -> float:
        """Bytes per second that the point stands for."""
        return self.rate / self.intensity


def points_of(label: str, rates: Rates) -> tuple[Point, ...]:
    """One point for each known kind of bytes, the most trustworthy first; without a count of FLOP
    one that the run is at most at."""
    most = None if rates.flop or rates.executed_flop else rates.most_executed
    candidates = (
        (EXECUTED, rates.executed_flop, rates.executed_bytes, Method.MEASURED, _BYTES[EXECUTED]),
        (MEASURED, rates.flop, rates.measured_bytes, Method.COUNTED, _BYTES[MEASURED]),
        (ALGORITHMIC, rates.flop, rates.bytes, Method.COUNTED, _BYTES[ALGORITHMIC]),
        (MEASURED, most, rates.measured_bytes, Method.BOUND, _AT_MOST),
    )
    return tuple(
        Point(label, flop / size, flop, kind, method, text)
        for kind, flop, size, method, text in candidates
        if flop and size and flop > 0 and size > 0 and 0 < flop / size < math.inf
    )
