"""One quantity of several sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gpuwatch.analysis.hardware.ceilings import BANDWIDTH, Ceiling
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core import units
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method

Value = Callable[[Summary], float | None]

_TRAFFIC = frozenset({"work per step", "profile, all of it", "efficiency", "over the window"})
"""Groups of rows whose bytes are read or written, and not held."""


@dataclass(frozen=True)
class ComparisonRow:
    """One quantity of every session, in the sessions' order."""

    group: str
    name: str
    unit: str
    values: tuple[float | None, ...]
    methods: tuple[Method, ...]
    ratios: tuple[float | None, ...] = ()
    """Each value over the baseline's; ``None`` where either is unknown, the baseline's is 0, a run
    failed, what was sampled is of another part of the run, a value is the most it can be, or they
    are shares of different ceilings."""
    ceilings: tuple[Ceiling | None, ...] = ()
    """Of a row of shares, what each is a share of."""
    at_most: tuple[bool, ...] = ()
    """Of a row of bounds, whether each value is the most it can be."""

    @property
    def is_traffic(self) -> bool:
        """Whether the values are bytes read or written: in powers of ten, as their rates are."""
        return self.unit == "By" and self.group in _TRAFFIC


def row_of(
    group: str,
    name: str,
    unit: str,
    sessions: Sequence[Summary],
    value: Value,
    method: Method = Method.MEASURED,
) -> ComparisonRow:
    """The row of what ``value`` says of each session."""
    values = tuple(value(session) for session in sessions)
    methods = tuple(Method.UNAVAILABLE if each is None else method for each in values)
    return ComparisonRow(group, name, unit, values, methods)


def same_ceiling(row: ComparisonRow, one: int, other: int) -> bool:
    """Whether two values of a row are shares of one ceiling, or of none."""
    if not row.ceilings:
        return True
    first, second = row.ceilings[one], row.ceilings[other]
    return (
        first is None or second is None or (first.name, first.value) == (second.name, second.value)
    )


def ceiling_notes(rows: Sequence[ComparisonRow]) -> list[str]:
    """Why shares of a row have no ratio."""
    found = []
    for row in rows:
        known = [each for each in row.ceilings if each is not None]
        if len({(each.name, each.value) for each in known}) > 1:
            names = {each.name for each in known}
            told = " against ".join(
                units.si(each.value, "B/s" if each.name == BANDWIDTH else each.unit)
                + ("" if len(names) == 1 else f" {each.name}")
                for each in known
            )
            found.append(f"different ceilings, so no ratio of {row.name}: {told}")
    return found
