"""Detects that the machine slept or its wall clock was set."""

from __future__ import annotations

import time

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.session.writing.statements import Row, event

_LEAST_NS = 1_000_000_000
"""Smaller steps are ignored: time synchronisation makes steps of milliseconds."""


_MOMENT_NS = 100_000_000


@dataclass(frozen=True)
class Reading:
    """The three clocks at one moment, in nanoseconds."""

    monotonic: int
    """Stops while the machine sleeps; all session times come from it."""
    boot: int
    """Continues while the machine sleeps."""
    wall: int
    """May be set at any time."""


def read() -> Reading:
    """Read the clocks; again if the process paused in between, which would look like sleep."""
    while True:
        start = time.monotonic_ns()
        now = Reading(start, time.clock_gettime_ns(time.CLOCK_BOOTTIME), time.time_ns())
        if time.monotonic_ns() - start < _MOMENT_NS:
            return now


class Clocks:
    """Compares the clocks from one look to the next."""

    def __init__(self, now: Reading) -> None:
        self._before = now

    def look(self, t: int, now: Reading) -> list[Row]:
        """Events since the previous look, at session time ``t`` in nanoseconds."""
        before, self._before = self._before, now
        slept = (now.boot - before.boot) - (now.monotonic - before.monotonic)
        stepped = (now.wall - before.wall) - (now.boot - before.boot)
        rows = []
        if slept >= _LEAST_NS:
            text = f"the machine slept for {_length(slept)}: times here do not count that"
            rows.append(event(t, "suspended", text))
        if abs(stepped) >= _LEAST_NS:
            way = "forwards" if stepped > 0 else "backwards"
            text = (
                f"its clock was set {way} by {_length(abs(stepped))}: "
                "times here follow the clock as set at the start"
            )
            rows.append(event(t, "clock-stepped", text))
        return rows


def _length(nanoseconds: int) -> str:
    seconds = nanoseconds / 1e9
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
