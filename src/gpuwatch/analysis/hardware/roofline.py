"""The roofline: FLOP/s against FLOP per byte, under the ceilings of compute and bandwidth.

S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model for
multicore architectures", CACM 52(4), 2009. At an intensity of I FLOP per byte the attainable rate
is at most min(compute ceiling, I x bandwidth).
"""

from __future__ import annotations

from collections.abc import Mapping

from gpuwatch.analysis.hardware.bound import Verdict, verdict_of, without_point
from gpuwatch.analysis.hardware.ceilings import BANDWIDTH, MEASURED, Ceiling, Missing
from gpuwatch.analysis.hardware.points import ALGORITHMIC, Point, Rates, points_of
from gpuwatch.analysis.hardware.program import Program, no_point
from gpuwatch.core import units
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method


@dataclass(frozen=True)
class Roofline:
    """Points, ceilings and verdict of one run."""

    label: str
    points: tuple[Point, ...]
    """The most trustworthy first: executed, measured, algorithmic."""
    ceilings: Mapping[str, Ceiling]
    """By name: ``bandwidth`` [By/s] and data types [FLOP/s]."""
    data_type: str | None
    """The run's data type, which selects its compute ceiling."""
    verdict: Verdict
    reason: str | None
    """Why there is no point, or only one that the run is at most at."""
    no_ceilings: Missing
    """Reason and hint for ceilings that were not measured."""

    @property
    def bandwidth(self) -> Ceiling | None:
        return self.ceilings.get(BANDWIDTH)

    @property
    def compute(self) -> tuple[Ceiling, ...]:
        """The ceiling of the run's data type; all in FLOP/s, highest first, where it has none."""
        own = self.ceilings.get(self.data_type or "")
        every = (ceiling for ceiling in self.ceilings.values() if ceiling.unit == "FLOP/s")
        return (own,) if own else tuple(sorted(every, key=lambda ceiling: -ceiling.value))

    def share_of_roof(self, point: Point) -> str | None:
        """``39 % of the roof there, 299 TFLOP/s``: how far up to the lower roof a point is;
        ``None``: a roof is not known, it is a bound, or its bytes were not measured."""
        compute, bandwidth = self.ceilings.get(self.data_type or ""), self.bandwidth
        untold = point.bytes_kind == ALGORITHMIC or point.method is Method.BOUND
        if compute is None or bandwidth is None or untold:
            return None
        roof = min(point.intensity * bandwidth.value, compute.value)
        return f"{units.percent(point.rate / roof)} of the roof there, {units.si(roof, 'FLOP/s')}"

    @property
    def missing(self) -> str | None:
        """How to get measured ceilings; ``None`` if they are known, or there is no point."""
        names = [name for name in (BANDWIDTH, self.data_type) if name]
        known = [self.ceilings.get(name) for name in names]
        if not self.points or all(ceiling and ceiling.kind == MEASURED for ceiling in known):
            return None
        return self.no_ceilings.hint

    @property
    def hints(self) -> tuple[str, ...]:
        """What would tell more: how to fix the verdict's cause, how to get ceilings."""
        first, more = self.verdict.hint or "", self.missing or ""
        return tuple(hint for hint in (first, "" if more in first else more) if hint)


def roofline_of(
    program: Program, rates: Rates, ceilings: Mapping[str, Ceiling], data_type: str | None
) -> Roofline:
    """Points, ceilings and bound of a run, or of its last minute."""
    points = points_of(program.label, rates)
    if not points or points[0].method is Method.BOUND:
        reason, hint = no_point(program, rates)
        verdict = without_point(reason, hint, rates, ceilings.get(BANDWIDTH))
    else:
        reason = None
        verdict = verdict_of(
            points[0],
            rates,
            data_type,
            ceilings.get(data_type or ""),
            ceilings.get(BANDWIDTH),
            program.no_ceilings,
        )
    return Roofline(
        program.label, points, dict(ceilings), data_type, verdict, reason, program.no_ceilings
    )
