"""Which steps are sampled: as many as the cost of the hook, which it measures, leaves room for.

They are drawn at random, since programs have periods; in all ranks the same, since each would
hold up the others. A callback is timed in the steps that are sampled, and in some of the others;
what is told after each interval is timed always.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable

from .clocks import CpuClock, CudaClock

BUDGET = 0.003
"""Most of the time that the hook may take, where less than all steps can be sampled."""
_LEAST = 0.001
"""Share of the time that sampling may take even where the rest of the hook is over the budget."""
_FEWEST, _KEPT = 5, 25
"""Fewest and most steps whose costs are looked at."""
_FIRST = 5
"""Steps at the beginning that cost more: models are found, work is counted."""
_TIMED = 1 / 16
"""Share of the other steps whose callbacks are timed."""


class Sampling:
    """Draws the steps that are sampled, and keeps account of what the hook takes."""

    def __init__(self, seed: str) -> None:
        """``seed``: the same in all processes of a run."""
        self.sampled = self.timed = True
        """Whether the step that runs now is sampled, and whether its callbacks are timed."""
        self.timing = False
        """Whether the callback that runs now is timed."""
        self.spent = 0
        """Nanoseconds in callbacks that were timed, since the last step ended."""
        self.clock: CpuClock | CudaClock = CpuClock()
        """That of the last step."""
        self.ended = False
        """Whether a step ended in the callback that runs now."""
        self._costs: deque[tuple[int, int]] | None = None
        """Where that step's costs belong, if they are known."""
        self._first = _FIRST
        self._share = 1.0
        """Of the steps that are sampled."""
        self._drawn = self._steps = 0
        """Steps that were sampled, and all, since the last choice."""
        self._cost = self._ns = 0.0
        """In all, of the hook and of the program."""
        self._of_sampled: deque[tuple[int, int]] = deque(maxlen=_KEPT)
        """Nanoseconds of a step's callbacks, and how often they took the time."""
        self._of_others: deque[tuple[int, int]] = deque(maxlen=_KEPT)
        self._reading: deque[float] = deque(maxlen=_KEPT)
        """Nanoseconds to read a mark, or a step."""
        self._draw = random.Random(seed).random  # noqa: S311

    @property
    def cost(self) -> float | None:
        """Share of the time that the hook took so far; ``None``: not known yet."""
        return self._cost / self._ns if self._ns else None

    def next(self, clock: CpuClock | CudaClock) -> bool:
        """A step ends. Returns whether the next one is sampled."""
        self.clock, self.ended = clock, True
        self._costs = None
        if self.timed:
            self._costs = self._of_sampled if self.sampled else self._of_others
        self._steps += 1
        self._drawn += self.sampled
        drawn = self._draw()  # once a step, so that ranks stay together
        self.sampled = drawn < self._share
        self.timed = self.sampled or drawn > 1 - _TIMED or len(self._of_others) < _FEWEST
        return self.sampled

    def close(self) -> None:
        """The callback is over in which a step ended: what it took is that step's."""
        if not self.ended:
            return
        if self._costs is not None:
            if self._first:
                self._first -= 1
            else:
                self._costs.append((self.spent, self.clock.marks))
        self.spent = self.clock.marks = 0
        self.ended = False

    def choose(self, clock: CpuClock | CudaClock, ns: float, reading: int, telling: int) -> None:
        """Choose for the steps to come. Since the last choice ``ns`` have passed, in ``reading`` of
        which the clock was read, and in ``telling`` lines were told."""
        steps, drawn, self._steps, self._drawn = self._steps, self._drawn, 0, 0
        if len(self._of_sampled) < _FEWEST or not steps:
            return
        sampled, marks = _usual(self._of_sampled)
        other, fewer = _usual(self._of_others or self._of_sampled)
        self._cost += drawn * sampled + (steps - drawn) * other + reading + telling
        self._ns += ns
        self._reading.append(reading / (steps + drawn * marks + (steps - drawn) * fewer))
        mark = _mean(self._reading)
        told = mark + telling / steps
        room = BUDGET * ns / steps
        if sampled + marks * mark + told <= room:
            self._share, clock.ends = 1.0, True
            return
        if len(self._of_others) < _FEWEST:
            self._share = 0.5
            return
        recording = max(0.0, sampled - other) / max(1.0, marks - fewer)
        mark += recording
        left = room - told - max(0.0, other - fewer * recording)
        clock.ends = 2 * mark <= left
        left = max(left - clock.ends * mark, _LEAST * ns / steps)
        # Others are left to be timed: what they cost may have been learnt in the first, slow steps.
        self._share = min(1 - _TIMED, left / max(marks * mark, 1e-9))


def _usual(costs: Iterable[tuple[int, int]]) -> tuple[float, float]:
    return _mean(cost for cost, _ in costs), _mean(marks for _, marks in costs)


def _mean(values: Iterable[float]) -> float:
    """Without the highest tenth: a step may be counted again, or end an epoch."""
    ordered = sorted(values)
    kept = ordered[: len(ordered) - len(ordered) // 10]
    return sum(kept) / len(kept)
