"""What else the machine's clocks did: it slept, or its wall clock was set."""

from __future__ import annotations

import time

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.session.writing.statements import Row, event

_LEAST_NS = 1_000_000_000
"""A smaller step is not told: keeping a clock right takes steps of milliseconds."""


_MOMENT_NS = 100_000_000


@dataclass(frozen=True)
class Reading:
    """The three clocks at one moment, in nanoseconds."""

    monotonic: int
    """Stands still while the machine sleeps; all times of a session are of it."""
    boot: int
    """Goes on while the machine sleeps."""
    wall: int
    """May be set."""


def read() -> Reading:
    """Of one moment: anew where the process stood still in between, which would look like sleep."""
    while True:
        start = time.monotonic_ns()
        now = Reading(start, time.clock_gettime_ns(time.CLOCK_BOOTTIME), time.time_ns())
        if time.monotonic_ns() - start < _MOMENT_NS:
            return now


class Clocks:
    """Compares the clocks with each other from one look to the next."""

    def __init__(self, now: Reading) -> None:
        self._before = now

    def look(self, t: int, now: Reading) -> list[Row]:
        """What happened since the look before, as events ``t`` nanoseconds after the start."""
        before, self._before = self._before, now
        slept = (now.boot - before.boot) - (now.monotonic - before.monotonic)
        stepped = (now.wall - before.wall) - (now.boot - before.boot)
        rows = []
        if slept >= _LEAST_NS:
            text = f"the machine slept for {_length(slept)}: times here leave that out"
            rows.append(event(t, "suspended", text))
        if abs(stepped) >= _LEAST_NS:
            way = "forwards" if stepped > 0 else "backwards"
            text = (
                f"its clock was set {way} by {_length(abs(stepped))}: "
                "times here are by the clock as it was at the start"
            )
            rows.append(event(t, "clock-stepped", text))
        return rows


def _length(nanoseconds: int) -> str:
    seconds = nanoseconds / 1e9
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
