"""The part of a session that its figures are taken over."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.analysis.samples.rates import StepLine, intervals
from gpuwatch.core.lazy_dataclass import dataclass

_FEWEST_TICKS = 2


@dataclass(frozen=True)
class Window:
    """A span of the session, in nanoseconds since its start."""

    kind: str
    """``timed steps``, or ``whole run`` where steps are unknown or too short for two ticks."""
    start: int
    end: int

    @property
    def seconds(self) -> float:
        return (self.end - self.start) / 1e9


def span_of(steps: Sequence[StepLine]) -> tuple[int, int] | None:
    """Start of the first timed step and end of the last, in nanoseconds; ``None`` without any."""
    timed = [(start, end) for start, end, row in intervals(steps) if not row.warmup]
    return (timed[0][0], timed[-1][1]) if timed else None


def timed_window(steps: Sequence[StepLine], tick_times: Sequence[int]) -> Window:
    """The span of the timed steps if at least two ticks lie in it, else the whole run.

    ``tick_times``: nanoseconds; the whole run ends with the last tick.
    """
    whole = Window("whole run", 0, tick_times[-1] if tick_times else 0)
    span = span_of(steps)
    if span is None or sum(span[0] <= t <= span[1] for t in tick_times) < _FEWEST_TICKS:
        return whole
    return Window("timed steps", *span)
