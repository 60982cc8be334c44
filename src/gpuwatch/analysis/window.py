"""Which part of a session its figures are taken over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpuwatch.analysis.rates import intervals
from gpuwatch.session.rows import StepRow

_FEWEST_TICKS = 2


@dataclass(frozen=True)
class Window:
    """A span of the session, in nanoseconds since its start."""

    kind: str
    """``timed steps``, or ``whole run`` where steps are unknown or too short to hold two ticks."""
    start: int
    end: int

    @property
    def seconds(self) -> float:
        return (self.end - self.start) / 1e9


def timed_window(steps: Sequence[StepRow], tick_times: Sequence[int]) -> Window:
    """The span of the timed steps, else of the whole run."""
    whole = Window("whole run", 0, tick_times[-1] if tick_times else 0)
    timed = [(start, end) for start, end, row in intervals(steps) if not row.warmup]
    if not timed:
        return whole
    start, end = timed[0][0], timed[-1][1]
    inside = sum(start <= t <= end for t in tick_times)
    if inside < _FEWEST_TICKS:
        return whole
    return Window("timed steps", start, end)
