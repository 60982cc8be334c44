"""One quantity of several sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gpuwatch.analysis.summary import Summary
from gpuwatch.metrics import Method

Value = Callable[[Summary], float | None]


@dataclass(frozen=True)
class Row:
    """One quantity of every session, in the sessions' order."""

    group: str
    name: str
    unit: str
    values: tuple[float | None, ...]
    methods: tuple[Method, ...]
    ratios: tuple[float | None, ...] = ()
    """Each value over the baseline's; ``None`` where either is unknown, the baseline's is 0, a run
    failed, or what was sampled is of another part of the run."""


def row_of(
    group: str,
    name: str,
    unit: str,
    sessions: Sequence[Summary],
    value: Value,
    method: Method = Method.MEASURED,
) -> Row:
    """The row of what ``value`` says of each session."""
    values = tuple(value(session) for session in sessions)
    methods = tuple(Method.UNAVAILABLE if each is None else method for each in values)
    return Row(group, name, unit, values, methods)
