"""Step times and throughput of step lines; without numpy, so that session lists start fast."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from gpuwatch.analysis.samples.rates import StepLine, full_times, taken
from gpuwatch.session.rows import StepRow

NO_STEPS = "no timed step was reported"


def times_of(timed: Sequence[StepRow]) -> tuple[list[float], str | None]:
    """Seconds of each full step, in order, or between the lines where no line has times.

    The second value is the reason where they are not step times.
    """
    times = [value for row in timed for value in full_times(row)]
    if not timed:
        return times, NO_STEPS
    if not all(row.seconds is not None or row.count == 1 for row in timed):
        return times, "the workload reports several steps at once without their times"
    return (times, None) if times else _gaps(timed)


def _gaps(timed: Sequence[StepRow]) -> tuple[list[float], str | None]:
    """The times between lines of single steps."""
    gaps = [(float(after.t) - float(before.t)) / 1e9 for before, after in pairwise(timed)]
    return (gaps, None) if gaps else (gaps, "one step without its time")


def median_step(timed: Sequence[StepRow]) -> float | None:
    """Median step time in seconds; ``None`` where unknown."""
    times, reason = times_of(timed)
    if not times or reason is not None:
        return None
    times.sort()
    middle = len(times) // 2
    return times[middle] if len(times) % 2 else (times[middle - 1] + times[middle]) / 2


def throughput(timed: Sequence[StepLine]) -> float | None:
    """Samples per second of step time, else of the time from the first line to the last."""
    samples = [row.samples for row in timed]
    if not timed or any(value is None for value in samples):
        return None
    total = sum(value for value in samples if value is not None)
    times = [taken(row) for row in timed]
    if None not in times:
        seconds = sum(value or 0.0 for value in times)
    else:
        # The first line's own time is unknown: the rate between the first line and the last.
        seconds = (timed[-1].t - timed[0].t) / 1e9
        total -= samples[0] or 0
    return total / seconds if seconds > 0 else None
