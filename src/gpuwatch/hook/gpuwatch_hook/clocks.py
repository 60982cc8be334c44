"""How long phases and steps take: by the processor's clock, or by events in a GPU's stream.

A phase begins where the one before ended, so the phases of a step add up to it; what an evaluation
took between two steps is kept apart. Phases are timed in the steps that are sampled
(``sampling.py``). On a GPU the events are read once they are over; nothing waits for them.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

PHASES = ("data", "forward", "backward", "optimizer", "other", "evaluation")
DATA, FORWARD, BACKWARD, OPTIMIZER, OTHER, EVALUATION = range(len(PHASES))
SLOTS = len(PHASES) + 8
"""Most phases of a program: those, and some that it names itself."""
_NONE: list[float] = [0] * SLOTS
EVENTS, HOST, MEAN = "events", "host", "mean"
"""What gave the time of a step: events at both of its ends, the processor's clock, or two events
with several steps between them, of which it has the mean."""
_LOOKED_AT, _FEWEST = 25, 3
"""Most and fewest steps in which the processor's clock is compared with a GPU's."""
_AGREES = 0.05
"""Share of a step's time up to which they agree."""
_WAITS = 20
"""How many times as long as the fastest a call takes that waits for room in a GPU's queue."""


class Timing(NamedTuple):
    """One step: ns in all, without the evaluation; ns by phase, which are those of its phases only
    if it is ``sampled``; when it ended (``CLOCK_MONOTONIC``, ns); what gave ``ns``."""

    ns: float
    phases: list[float]
    end_ns: int
    sampled: bool
    by: str


class _Clock:
    """Which phase the program is in. Of steps that are not ``sampled`` only their ends are timed,
    and their evaluations."""

    def __init__(self, phase: int, held: bool, sampled: bool) -> None:
        self.phase = phase
        self.held = held
        """Whether the phase stays until it is let go."""
        self.sampled = sampled
        """Whether the step that runs now is."""
        self.ends = True
        """Whether an event ends each step, sampled or not; a CPU's ends are timed anyway."""
        self.marks = 0
        """How often the time was taken, but for ends of steps that are not sampled."""
        self.waited = 0
        """Nanoseconds that calls waited for room in a GPU's queue: without them the program's own
        next call would have, so that they cost it nothing."""

    def enter(self, phase: int) -> int:
        """Begin a phase; returns the one that it ends."""
        before = self.phase
        if not self.held:
            self.phase = phase
            if self.sampled or phase == EVALUATION or before == EVALUATION:
                self.marks += 1
                self._mark(before)
        return before

    def _mark(self, phase: int) -> None:
        """``phase`` ends here."""
        raise NotImplementedError


class CpuClock(_Clock):
    """For work that is done when its call returns; the first step begins with its first phase."""

    def __init__(self) -> None:
        super().__init__(OTHER, held=False, sampled=True)
        self._since: int | None = None
        self._taken: list[float] = [0] * SLOTS
        self._ended: list[Timing] = []

    def _mark(self, phase: int) -> None:
        now = time.monotonic_ns()
        if self._since is not None:
            self._taken[phase] += now - self._since
        self._since = now

    def end_step(self, sample: bool) -> None:
        """End a step here, and sample the next one or not; the phase goes on."""
        self._mark(self.phase)
        taken, end_ns = self._taken, self._since or 0
        ns = sum(taken) - taken[EVALUATION]
        self._ended.append(Timing(ns, taken, end_ns, self.sampled, HOST))
        self._taken = [0] * SLOTS
        self.marks += self.sampled
        self.sampled = sample

    def passed(self, ends: list[int]) -> None:
        """Steps ended at these times, of one or more, that were not looked at; the phase goes
        on."""
        taken, self._taken = self._taken, [0] * SLOTS
        taken[self.phase] += ends[0] - (self._since or ends[0])
        ns = sum(taken) - taken[EVALUATION]
        self._ended.append(Timing(ns, taken, ends[0], False, HOST))
        self._ended += [
            Timing(end - before, _NONE, end, False, HOST) for before, end in pairwise(ends)
        ]
        self._since = ends[-1]

    def finished(self, wait: bool = False) -> list[Timing]:
        """The steps that are known to be over since the last call, in order."""
        ended, self._ended = self._ended, []
        return ended


class CudaClock(_Clock):
    """For work in the current stream of a CUDA device, as :class:`CpuClock`.

    The host runs ahead of the device, so that its clock tells when a step was launched. Steps
    between two events took as long together as the device says; each of them took its part by the
    host's clock where that agrees with the device's in the steps that have both, else the mean.
    """

    def __init__(self, cuda: Any, device: Any, before: CpuClock | CudaClock) -> None:
        """Goes on in the phase of ``before``. ``cuda``: torch's module."""
        super().__init__(before.phase, before.held, before.sampled)
        self._cuda = cuda
        self._device = device
        self._spare: list[Any] = []
        self._marked: deque[tuple[Any, int, int, bool, bool]] = deque()
        """Events (``None``: a step ended without one), the host's time, the phase that ends,
        whether the step does, and whether it is sampled."""
        self._between: list[int] = []
        """The host's time of the ends since ``_first``, which have no event."""
        self._disagree: deque[float] = deque(maxlen=_LOOKED_AT)
        """By which share of its time each of the last sampled steps took another time by the host's
        clock."""
        self._fastest = sys.maxsize
        """Nanoseconds of the fastest call."""
        self._stream = cuda.current_stream(device)
        self._first = self._event()
        self._first_ns = self._began_ns = time.monotonic_ns()
        """The host's time of ``_first``, and of the last end of a step."""
        self._taken = [0.0] * SLOTS
        self._by = EVENTS
        self._end_ns = self._first_ns

    def _mark(self, phase: int) -> None:
        if self._captures():
            self.sampled = False
        else:
            now = time.monotonic_ns()
            self._marked.append((self._event(), now, phase, False, self.sampled))

    def end_step(self, sample: bool) -> None:
        now, event = time.monotonic_ns(), None
        if (self.ends or self.sampled or sample) and not self._captures():
            self.marks += 1
            self._stream = self._cuda.current_stream(self._device)
            event = self._event()
        sampled = self.sampled and event is not None
        self._marked.append((event, now, self.phase, True, sampled))
        self.sampled = sample and event is not None

    def passed(self, ends: list[int]) -> None:
        """As :meth:`CpuClock.passed`; these ends have no event."""
        self._marked += [(None, end, self.phase, True, False) for end in ends]

    def finished(self, wait: bool = False) -> list[Timing]:
        ended: list[Timing] = []
        marked = deque() if self._captures() else self._marked  # to ask for an event would break it
        while marked:
            event, now, phase, ends, sampled = marked[0]
            if event is None:
                self._between.append(now)
                marked.popleft()
                continue
            if wait:
                event.synchronize()
            elif not event.query():
                break
            marked.popleft()
            ns = self._first.elapsed_time(event) * 1e6
            self._spare.append(self._first)
            if self._between:
                ended += self._settle(ns, now, ends)
            else:
                self._taken[phase] += ns
            self._first, self._first_ns = event, now
            if ends:
                if sampled and (device := sum(self._taken)):
                    self._disagree.append(abs(now - self._began_ns - device) / device)
                ended.append(self._timing(now, sampled))
        if wait and self._between:
            ended += self._last()
        return ended

    def _last(self) -> list[Timing]:
        """The steps since the last event, at the end of the process."""
        event, now = self._event(), time.monotonic_ns()
        if not event.query():  # the device is at it still
            event.synchronize()
            return self._settle(self._first.elapsed_time(event) * 1e6, now, ends=False)
        ended = []
        for end in self._between:
            self._taken[OTHER] += end - self._began_ns
            self._by = HOST
            ended.append(self._timing(end, False))
        return ended

    def _settle(self, ns: float, now: int, ends: bool) -> list[Timing]:
        """The steps that ended since the last event, ``ns`` ago by the device. A part of them is
        left for the step that ends here, or goes on."""
        ends_ns = [self._first_ns, *self._between, now]
        by, parts = HOST, [after - before for before, after in pairwise(ends_ns)]
        if len(self._disagree) < _FEWEST or median(self._disagree) > _AGREES:
            by, parts = MEAN, [1] * len(self._between) + [int(ends)]
        scale = ns / sum(parts)
        ended = []
        for part, end in zip(parts, self._between, strict=False):
            self._taken[OTHER] += part * scale
            self._by = by
            ended.append(self._timing(end, False))
        self._taken[OTHER] += parts[-1] * scale
        self._by = by
        self._between.clear()
        return ended

    def _timing(self, end: int, sampled: bool) -> Timing:
        """Of the step that ended, at ``end`` by the host's clock; by the device's not before."""
        taken, self._taken = self._taken, [0.0] * SLOTS
        by, self._by, self._began_ns = self._by, EVENTS, end
        ns = sum(taken)
        self._end_ns = min(max(self._end_ns + round(ns), end), time.monotonic_ns())
        return Timing(ns - taken[EVALUATION], taken, self._end_ns, sampled, by)

    def _captures(self) -> bool:
        """Whether a CUDA graph is recorded: an event would become a part of it."""
        return bool(self._cuda.is_current_stream_capturing())

    def _event(self) -> Any:
        event = self._spare.pop() if self._spare else self._cuda.Event(enable_timing=True)
        begin = time.thread_time_ns()
        event.record(self._stream)
        taken = time.thread_time_ns() - begin
        self._fastest = min(self._fastest, taken)
        if taken > _WAITS * self._fastest:
            self.waited += taken - self._fastest
        return event


def median(values: Iterable[float]) -> float:
    """The middle one of some values, the upper of two; ``statistics`` takes long to load."""
    ordered = sorted(values)
    return ordered[len(ordered) // 2]
