"""Durations of steps and their phases, between iterations, on a CPU and on a GPU.

A step begins where the previous one ended. Marks divide it into five phases, which add up to it. On
a CPU the work is done when the call returns, and a mark reads the clock. On a GPU a mark is an
event in the stream, read once the step is known to be over: the phases are then the device's own
time, so ``data`` is how long the device really waited for the next batch.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch

PHASES = ("data", "copy", "forward", "backward", "optimizer")
"""The phases of a training step that is one pass."""

SLOW_STEP_SECONDS = 0.1
"""A step this long is reported as soon as it ends; on a GPU it is waited for, one step late."""


class Timing(NamedTuple):
    """Seconds of one finished step, of each of its phases, and when it ended.

    ``end_ns`` is CLOCK_MONOTONIC, nanoseconds.
    """

    seconds: float
    phases: tuple[float, ...]
    end_ns: int


class CpuClock:
    """Marks the phases of steps whose work is done when its call returns.

    ``phases`` are those of every step, in order; a name may come more than once. Timings of
    finished steps are in order.
    """

    def __init__(self, phases: Sequence[str] = PHASES) -> None:
        self.phases = phases
        self._marks: list[int] = []

    def start(self) -> None:
        """Begin a run of steps with the first one. Waits for all earlier work."""
        self._marks = [time.monotonic_ns()]
        self._append = self._marks.append

    def mark(self) -> None:
        """End the current phase; after the last phase, the step."""
        self._append(time.monotonic_ns())

    def finished(self, wait: bool) -> list[Timing]:
        """New timings of the steps known to be over, or of all steps with ``wait``."""
        marks, width = self._marks, len(self.phases)
        count = (len(marks) - 1) // width
        timings = []
        for first in range(0, count * width, width):
            step = marks[first : first + width + 1]
            phases = tuple((b - a) / 1e9 for a, b in pairwise(step))
            timings.append(Timing((step[-1] - step[0]) / 1e9, phases, step[-1]))
        del marks[: count * width]
        return timings


class CudaClock:
    """The same for a CUDA device, by events in its stream; no step waits for the device.

    Except for slow steps: the end of each waits for the end of the previous one. One step stays
    queued, so the device does not idle, and a long step is reported when it ends.
    """

    def __init__(self, device: torch.device, phases: Sequence[str] = PHASES) -> None:
        self.phases = phases
        self._device = device
        self._spare: list[Any] = []
        self._marks: deque[Any] = deque()
        self._end_ns = 0
        self._slow = False

    def start(self) -> None:
        torch.cuda.synchronize(self._device)
        self._spare.extend(self._marks)
        self._marks.clear()
        self._marks.append(self._record())
        self._end_ns = time.monotonic_ns()

    def mark(self) -> None:
        self._marks.append(self._record())
        width = len(self.phases)
        if self._slow and (len(self._marks) - 1) % width == 0 and len(self._marks) > 2 * width:
            self._marks[-1 - width].synchronize()

    def finished(self, wait: bool) -> list[Timing]:
        marks, width = self._marks, len(self.phases)
        timings = []
        while len(marks) > width:
            end = marks[width]
            if wait:
                end.synchronize()
            elif not end.query():
                break
            step = [marks.popleft() for _ in range(width)]
            edges = [*step, end]
            phases = tuple(a.elapsed_time(b) / 1e3 for a, b in pairwise(edges))
            seconds = sum(phases)
            self._end_ns = min(self._end_ns + round(seconds * 1e9), time.monotonic_ns())
            self._slow = seconds > SLOW_STEP_SECONDS
            self._spare.extend(step)
            timings.append(Timing(seconds, phases, self._end_ns))
        return timings

    def _record(self) -> Any:
        event: Any = self._spare.pop() if self._spare else None
        if event is None:
            event = torch.cuda.Event(enable_timing=True, blocking=True)  # type: ignore[no-untyped-call]
        event.record(torch.cuda.current_stream(self._device))
        return event


Clock = CpuClock | CudaClock


def clock_for(device: torch.device, phases: Sequence[str] = PHASES) -> Clock:
    """The clock that suits a device, for steps of these phases."""
    return CudaClock(device, phases) if device.type == "cuda" else CpuClock(phases)
