"""How long phases and steps take: by the processor's clock, or by events in a GPU's stream.

A phase begins where the one before ended, so the phases of a step add up to it; what an evaluation
took between two steps is kept apart. On a GPU the events
are read once they are over; nothing waits for them.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Any, NamedTuple

PHASES = ("data", "forward", "backward", "optimizer", "other", "evaluation")
DATA, FORWARD, BACKWARD, OPTIMIZER, OTHER, EVALUATION = range(len(PHASES))
SLOTS = len(PHASES) + 8
"""Most phases of a program: those, and some that it names itself."""


class Timing(NamedTuple):
    """One step: ns in all, without the evaluation; ns by phase; when it ended (``CLOCK_MONOTONIC``,
    ns)."""

    ns: float
    phases: list[float]
    end_ns: int


class CpuClock:
    """For work that is done when its call returns; the first step begins with its first phase."""

    def __init__(self) -> None:
        self.phase = OTHER
        self.held = False
        """Whether the phase stays until it is let go."""
        self._since: int | None = None
        self._taken: list[float] = [0] * SLOTS
        self._ended: list[tuple[list[float], int]] = []

    def enter(self, phase: int) -> int:
        """Begin a phase; returns the one that it ends."""
        before = self.phase
        if self.held:
            return before
        now = time.monotonic_ns()
        if self._since is not None:
            self._taken[before] += now - self._since
        self.phase, self._since = phase, now
        return before

    def end_step(self) -> None:
        """End a step here; the phase goes on."""
        now = time.monotonic_ns()
        if self._since is not None:
            self._taken[self.phase] += now - self._since
        self._since = now
        self._ended.append((self._taken, now))
        self._taken = [0] * SLOTS

    def finished(self, wait: bool = False) -> list[Timing]:
        """The steps that are known to be over since the last call, in order."""
        ended, self._ended = self._ended, []
        return [Timing(sum(taken) - taken[EVALUATION], taken, end_ns) for taken, end_ns in ended]


class CudaClock:
    """For work in the current stream of a CUDA device, as :class:`CpuClock`."""

    def __init__(self, torch: Any, device: Any, before: CpuClock | CudaClock) -> None:
        """Goes on in the phase of ``before``."""
        self._torch = torch
        self._device = device
        self._spare: list[Any] = []
        self.phase: int = before.phase
        self.held: bool = before.held
        self._marks: deque[tuple[Any, int, bool]] = deque()
        """Events, the phase that each ends, and whether it ends a step."""
        self._first = self._event()
        self._taken = [0.0] * SLOTS
        self._end_ns = 0

    def enter(self, phase: int) -> int:
        before = self.phase
        if self.held:
            return before
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
            self._taken[phase] += self._first.elapsed_time(event) * 1e6
            self._spare.append(self._first)
            self._first = event
            if ends:
                ended.append(self._timing())
        return ended

    def _timing(self) -> Timing:
        taken, self._taken = self._taken, [0.0] * SLOTS
        ns, now = sum(taken), time.monotonic_ns()
        # The first end is known only as not later than now.
        self._end_ns = min(self._end_ns + round(ns), now) if self._end_ns else now
        return Timing(ns - taken[EVALUATION], taken, self._end_ns)

    def _event(self) -> Any:
        cuda = self._torch.cuda
        event = self._spare.pop() if self._spare else cuda.Event(enable_timing=True)
        event.record(cuda.current_stream(self._device))
        return event
