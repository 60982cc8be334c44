"""Prints finished steps as step lines, at most about ten a second, at low cost."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from .clock import Clock, Timing
from .lines import emit
from .scores import Result, Score, ScoreReader

INTERVAL = 0.2
"""Interval between step lines, in seconds; the first, the last and slow steps are exempt."""

SLOW = 0.1
"""A step of at least this many seconds is reported as soon as it ends."""

EPOCH_INTERVAL = 1.0
"""Interval between epoch lines, in seconds; the last is exempt. An epoch can be one short step."""


class Step(NamedTuple):
    """A step from the training loop. ``epoch`` is set only on an epoch's last step."""

    samples: int
    partial: bool
    result: Result
    epoch: int | None = None


class Epoch:
    """Sums over the current epoch, weighted by samples."""

    def __init__(self) -> None:
        self.samples = 0
        self.sums: dict[str, float] = {}

    def add(self, samples: int, score: Score) -> None:
        self.samples += samples
        for key, value in zip(score._fields, score, strict=True):
            if value is not None:
                self.sums[key] = self.sums.get(key, 0.0) + value * samples

    def means(self) -> dict[str, float]:
        return {key: value / self.samples for key, value in self.sums.items()}


class Reporter:
    """Reports the steps of one window: the warm-up, or the timed steps.

    ``before`` is the number of the step before the first. ``seconds`` is the time spent on
    reporting so far, including formatting and writing.
    """

    def __init__(
        self, clock: Clock, reader: ScoreReader, total: int, warmup: bool, before: int = 0
    ) -> None:
        self.seconds = 0.0
        self.reported = 0
        self._clock = clock
        self._reader = reader
        self._total = total
        self._warmup = warmup
        self._before = before
        self._waiting: deque[Step] = deque()
        self._taken = 0
        self._next_line = 0.0
        self._last_step = 0.0
        self._next_epoch = 0.0
        self._epoch = Epoch()

    def step(self, step: Step) -> None:
        """Take a step whose last phase is marked; print the lines that are due."""
        now = time.perf_counter()
        self._waiting.append(step)
        self._taken += 1
        edge = self._taken == 1 or self._taken == self._total
        slow = now - self._last_step >= SLOW
        self._last_step = now
        if edge or slow or now >= self._next_line:
            self._report(now, wait=edge)
            self.seconds += time.perf_counter() - now

    def flush(self) -> None:
        """Report the finished steps that are not reported yet, without waiting."""
        now = time.perf_counter()
        self._report(now, wait=False)
        self.seconds += time.perf_counter() - now

    def _report(self, now: float, wait: bool) -> None:
        timings = self._clock.finished(wait)[: len(self._waiting)]
        if not timings:
            return
        self._next_line = now + INTERVAL
        steps = [self._waiting.popleft() for _ in timings]
        scores = self._reader.read([step.result for step in steps])
        first = self._before + self.reported + 1
        self.reported += len(steps)
        emit("step", **self._line(first, steps, timings, scores))
        if not self._warmup:
            self._report_epochs(now, steps, scores)

    def _line(
        self, first: int, steps: Sequence[Step], timings: Sequence[Timing], scores: Sequence[Score]
    ) -> dict[str, Any]:
        line: dict[str, Any] = {
            "step": self._before + self.reported,
            "count": len(steps),
            "samples": sum(step.samples for step in steps),
            "seconds": [round(timing.seconds, 9) for timing in timings],
        }
        if scores and scores[0].loss is not None:
            line["loss"] = [score.loss for score in scores]
        for key in ("acc1", "acc5"):
            values = [getattr(score, key) for score in scores]
            if None not in values:
                line[key] = [round(value, 6) for value in values]
        phases: dict[str, float] = {}
        for i, phase in enumerate(self._clock.phases):
            phases[phase] = phases.get(phase, 0.0) + sum(timing.phases[i] for timing in timings)
        line["phases"] = {phase: round(seconds, 9) for phase, seconds in phases.items()}
        if self._warmup:
            line["warmup"] = True
        else:
            line["total_steps"] = self._before + self._total
        partial = [first + i for i, step in enumerate(steps) if step.partial]
        if partial:
            line["partial"] = partial
        line["monotonic_ns"] = timings[-1].end_ns
        return line

    def _report_epochs(self, now: float, steps: Sequence[Step], scores: Sequence[Score]) -> None:
        for place, (step, score) in enumerate(zip(steps, scores, strict=True), 1):
            self._epoch.add(step.samples, score)
            if step.epoch is None:
                continue
            last = self.reported == self._total and place == len(steps)
            if last or now >= self._next_epoch:
                self._next_epoch = now + EPOCH_INTERVAL
                emit("epoch", epoch=step.epoch, **self._epoch.means())
            self._epoch = Epoch()
