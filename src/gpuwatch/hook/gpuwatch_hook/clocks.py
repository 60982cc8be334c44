"""How long phases and steps take: by the processor's clock, or by events in a GPU's stream.

A phase begins where the one before ended, so the phases of a step add up to it. On a GPU the events
are read once they are over; nothing waits for them.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Any, NamedTuple

PHASES = ("data", "forward", "backward", "optimizer", "other")
DATA, FORWARD, BACKWARD, OPTIMIZER, OTHER = range(len(PHASES))


class Timing(NamedTuple):
    """One step: seconds in all and by phase, and when it ended (``CLOCK_MONOTONIC``, ns)."""

    seconds: float
    phases: tuple[float, ...]
    end_ns: int


class CpuClock:
    """For work that is done when its call returns."""

    def __init__(self) -> None:
        self.phase = OTHER
        self._since = time.monotonic_ns()
        self._taken = [0] * len(PHASES)
        self._ended: list[Timing] = []

    def enter(self, phase: int) -> int:
        """Begin a phase; returns the one that it ends."""
        now = time.monotonic_ns()
        before = self.phase
        self._taken[before] += now - self._since
        self.phase, self._since = phase, now
        return before

    def end_step(self) -> None:
        """End a step here; the phase goes on."""
        self.enter(self.phase)
        taken = self._taken
        self._taken = [0] * len(PHASES)
        phases = tuple(each / 1e9 for each in taken)
        self._ended.append(Timing(sum(taken) / 1e9, phases, self._since))

    def finished(self, wait: bool = False) -> list[Timing]:
        """The steps that are known to be over since the last call, in order."""
        ended, self._ended = self._ended, []
        return ended


class CudaClock:
    """For work in the current stream of a CUDA device, as :class:`CpuClock`."""

    def __init__(self, torch: Any, device: Any) -> None:
        self._torch = torch
        self._device = device
        self._spare: list[Any] = []
        self.phase = OTHER
        self._marks: deque[tuple[Any, int, bool]] = deque()
        """Events, the phase that each ends, and whether it ends a step."""
        self._first = self._event()
        self._taken = [0.0] * len(PHASES)
        self._end_ns = 0

    def enter(self, phase: int) -> int:
        before = self.phase
        self._marks.append((self._event(), before, False))
        self.phase = phase
        return before

    def end_step(self) -> None:
        self._marks.append((self._event(), self.phase, True))

    def finished(self, wait: bool = False) -> list[Timing]:
        ended: list[Timing] = []
        marks = self._marks
        while marks:
            event, phase, ends = marks[0]
            if wait:
                event.synchronize()
            elif not event.query():
                break
            marks.popleft()
            self._taken[phase] += self._first.elapsed_time(event) / 1e3
            self._spare.append(self._first)
            self._first = event
            if ends:
                ended.append(self._timing())
        return ended

    def _timing(self) -> Timing:
        taken, self._taken = self._taken, [0.0] * len(PHASES)
        seconds, now = sum(taken), time.monotonic_ns()
        # The first end is known only as not later than now.
        self._end_ns = min(self._end_ns + round(seconds * 1e9), now) if self._end_ns else now
        return Timing(seconds, tuple(taken), self._end_ns)

    def _event(self) -> Any:
        cuda = self._torch.cuda
        event = self._spare.pop() if self._spare else cuda.Event(enable_timing=True)
        event.record(cuda.current_stream(self._device))
        return event
