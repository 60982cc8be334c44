"""Shares of the phases in the time of the newest timed steps."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from math import inf
from typing import Any

from gpuwatch.core.models import mapping, number
from gpuwatch.session.rows import StepRow
from gpuwatch.tui.feed.snapshot import StepShares

_MAX_STEPS = 1000
"""Number of newest timed steps that the shares cover."""
_MAX_PHASES = 9
"""Most phases with a name; foreign step lines may name any number."""


class PhaseTimes:
    """Sums over the newest step lines that name phases."""

    def __init__(self) -> None:
        self._rows: deque[tuple[int, float, Mapping[str, float]]] = deque()
        self._sums: dict[str, float] = {}
        self._steps = 0
        self._seconds = 0.0

    def add(self, row: StepRow) -> None:
        """Add a timed step line; one without phases or durations is ignored.

        Where only some steps have phases, these add up to the time of those steps."""
        if not row.phases or not row.seconds:
            return
        phases = {name: max(0.0, seconds) for name, seconds in row.phases.items()}
        steps, seconds = len(row.seconds), sum(phases.values())
        if row.sampled is None:
            seconds = max(sum(row.seconds), seconds)
        else:
            steps = round(row.sampled)
        if not steps or not 0 < seconds < inf:
            return
        self._count(steps, seconds, phases, 1)
        self._rows.append((steps, seconds, phases))
        while self._steps - self._rows[0][0] >= _MAX_STEPS:
            self._count(*self._rows.popleft(), -1)

    def _count(self, steps: int, seconds: float, phases: Mapping[str, float], sign: int) -> None:
        self._steps += sign * steps
        self._seconds += sign * seconds
        for name, part in phases.items():
            if name in self._sums or len(self._sums) < _MAX_PHASES:
                self._sums[name] = self._sums.get(name, 0.0) + sign * part

    def shares(self, meta: Mapping[str, Any]) -> StepShares | None:
        """The shares of the phases, and of the hook by the session's ``meta``; ``None``: no step
        line named any."""
        if self._steps == 0 or self._seconds <= 0:
            return None
        parts = tuple(
            (name, min(1.0, part / self._seconds)) for name, part in self._sums.items() if part > 0
        )
        hook = number(mapping(meta.get("timing")).get("cost"))
        return StepShares(parts, self._steps, self._seconds / self._steps, hook)
