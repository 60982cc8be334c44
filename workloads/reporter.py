"""Prints finished steps as step lines, at most about ten a second, at low cost."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .clock import SLOW_STEP_SECONDS, Clock, Timing
from .lines import emit

TOP5_CLASSES = 5
"""The fewest classes for which a top-5 accuracy makes sense."""


class Result(NamedTuple):
    """A step's result, detached and still on its device; see `task.Scored`.

    A step of inference has no loss.
    """

    loss: Tensor | None
    scores: Tensor | None
    labels: Tensor | None


class Score(NamedTuple):
    """A step's loss, if any, and the shares of correct top-1 and top-5 predictions (0 to 1)."""

    loss: float | None
    acc1: float | None
    acc5: float | None


class ScoreReader:
    """Converts the results of finished steps to numbers.

    Reading a number from a GPU stalls its queue. So the steps' results stay there until the step is
    known to be over. Then a separate stream computes and fetches them for many steps at once, while
    the training's stream continues.
    """

    def __init__(self, device: torch.device) -> None:
        self._stream: Any = None
        if device.type == "cuda":
            self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def read(self, results: Sequence[Result]) -> list[Score]:
        """The scores of steps, in order. All steps must be over."""
        if not results:
            return []
        context: contextlib.AbstractContextManager[object] = contextlib.nullcontext()
        if self._stream is not None:
            context = torch.cuda.stream(self._stream)
        with context, torch.no_grad():
            found = [result.loss for result in results if result.loss is not None]
            losses = torch.stack(found).tolist() if found else [None] * len(results)
            accuracies = accuracy(results)
        return [
            Score(loss, acc1, acc5) for loss, (acc1, acc5) in zip(losses, accuracies, strict=True)
        ]


def accuracy(results: Sequence[Result]) -> list[tuple[float | None, float | None]]:
    """Top-1 and top-5 accuracy of each step; None where it makes no sense.

    All steps have the same number of classes; their numbers of samples may differ.
    """
    scores = [result.scores for result in results if result.scores is not None]
    labels = [result.labels for result in results if result.labels is not None]
    if len(scores) < len(results) or len(labels) < len(results):
        return [(None, None)] * len(results)
    sizes = [len(label) for label in labels]
    places = hits(torch.cat(scores), torch.cat(labels))
    if len(set(sizes)) == 1:
        totals = places.view(len(sizes), sizes[0], -1).sum(1).tolist()
    else:
        totals = torch.stack([part.sum(0) for part in torch.split(places, sizes)]).tolist()
    top5 = scores[0].ndim > 1 and scores[0].shape[1] >= TOP5_CLASSES
    return [
        (total[0] / size, sum(total) / size if top5 else None)
        for size, total in zip(sizes, totals, strict=True)
    ]


def hits(scores: Tensor, labels: Tensor) -> Tensor:
    """Whether the correct class is the first, second, ... fifth prediction of a sample.

    ``scores`` is samples x classes, or for two classes each sample's logit of the second; the
    result is bool, samples x min(5, classes), or samples x 1.
    """
    if scores.ndim == 1:
        return ((scores > 0) == (labels > 0)).unsqueeze(1)
    best = scores.topk(min(TOP5_CLASSES, scores.shape[1])).indices
    return best == labels.unsqueeze(1)


INTERVAL = 0.2
"""Interval between step lines, in seconds; the first, the last and slow steps are exempt."""

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
        slow = now - self._last_step >= SLOW_STEP_SECONDS
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
