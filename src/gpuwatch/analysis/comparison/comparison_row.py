"""One quantity of several sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gpuwatch.analysis.hardware.ceilings import BANDWIDTH, Ceiling
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core import units
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method

Value = Callable[[Summary], float | None]

STEADY = "step time, steady"
"""Name of the row of the typical step, the primary metric."""
ALL_STEPS = "step time, all steps"
"""Name of the row of what users pay: slow steps, and what happens between steps, included."""
AT_MOST, AT_LEAST = "at most", "at least"
_TRAFFIC = frozenset({"work per step", "profile, all of it", "efficiency", "over the window"})
"""Groups of rows whose bytes are traffic, not memory use."""


@dataclass(frozen=True)
class ComparisonRow:
    """One quantity of every session, in the sessions' order."""

    group: str
    name: str
    unit: str
    values: tuple[float | None, ...]
    methods: tuple[Method, ...]
    ratios: tuple[float | None, ...] = ()
    """Each value over the baseline's; ``None`` where either is unknown or an upper bound, the
    baseline's is 0, a run failed, the windows differ in kind, or the shares are of different
    ceilings."""
    ceilings: tuple[Ceiling | None, ...] = ()
    """For a row of shares, the ceiling of each."""
    at_most: tuple[bool, ...] = ()
    """For a row with bounds, whether each value is an upper bound."""

    @property
    def is_traffic(self) -> bool:
        """Whether the values are bytes read or written, shown in powers of ten like their rates."""
        return self.unit == "By" and self.group in _TRAFFIC

    def bound(self, at: int) -> str | None:
        """``at most`` or ``at least`` if a value is a bound."""
        if any(self.at_most[at : at + 1]):
            return AT_MOST
        return AT_LEAST if self.methods[at] is Method.BOUND else None


def row_of(
    group: str,
    name: str,
    unit: str,
    sessions: Sequence[Summary],
    value: Value,
    method: Method = Method.MEASURED,
) -> ComparisonRow:
    """The row of ``value`` for each session."""
    values = tuple(value(session) for session in sessions)
    methods = tuple(Method.UNAVAILABLE if each is None else method for each in values)
    return ComparisonRow(group, name, unit, values, methods)


def same_ceiling(row: ComparisonRow, one: int, other: int) -> bool:
    """Whether two values of a row are shares of the same ceiling, or of none."""
    if not row.ceilings:
        return True
    first, second = row.ceilings[one], row.ceilings[other]
    return (
        first is None or second is None or (first.name, first.value) == (second.name, second.value)
    )


def ceiling_notes(rows: Sequence[ComparisonRow]) -> list[str]:
    """Notes on shares without a ratio because their ceilings differ."""
    notes = []
    for row in rows:
        known = [each for each in row.ceilings if each is not None]
        if len({(each.name, each.value) for each in known}) > 1:
            names = {each.name for each in known}
            ceilings = " against ".join(
                units.si(each.value, "B/s" if each.name == BANDWIDTH else each.unit)
                + ("" if len(names) == 1 else f" {each.name}")
                for each in known
            )
            notes.append(f"different ceilings, so no ratio of {row.name}: {ceilings}")
    return notes
