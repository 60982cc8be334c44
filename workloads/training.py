"""The loop of a run: warm-up, then the timed steps."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from .clock import clock_for
from .data.batches import Batch, Batches
from .ranks import Rank
from .reporter import Reporter, Result, ScoreReader, Step
from .stopping import Stop
from .task import Settings, Task
from .ways import FORMATS, way_of

BRACKET = "GPUWATCH_WORKLOAD_BRACKET"
"""Environment variable; if set, the timed steps on a GPU are enclosed by ``cudaProfilerStart`` and
``cudaProfilerStop``, for a profiler that waits for these (ncu, nsys)."""


@dataclass(frozen=True)
class Plan:
    """Number of timed steps, and of warm-up steps before them."""

    total: int
    warmup: int


def plan(settings: Settings, steps_per_epoch: int) -> Plan:
    """Timed steps from ``--steps``, else from the epochs; a fifth of them as warm-up, 1 to 10."""
    total = settings.steps or settings.epochs * steps_per_epoch
    warmup = min(10, math.ceil(total / 5)) if settings.warmup is None else settings.warmup
    return Plan(total, warmup)


class Training:
    """A task on a device, ready to take steps.

    ``seconds_reporting`` and ``steps`` are the current cost of reporting and number of reported
    timed steps; ``first_step_seconds`` is set after the first step, ``step_seconds``, the mean of
    the timed steps, after the last.
    """

    def __init__(
        self,
        task: Task,
        batches: Batches,
        settings: Settings,
        device: torch.device,
        stop: Stop,
        rank: Rank,
    ) -> None:
        self.first_step_seconds: float | None = None
        self.step_seconds = 0.0
        self._batches = batches
        self._device = device
        self._numbers_go_on = rank.size > 1
        self._stop = stop
        self._way = way_of(task, settings, device, rank)
        self._format = FORMATS[settings.memory_format]
        self._clock = clock_for(device, ("data", "copy", *self._way.phases))
        self._reader = ScoreReader(device)
        self._reporters: list[Reporter] = []
        self._bracketed = device.type == "cuda" and bool(os.environ.get(BRACKET))

    @property
    def seconds_reporting(self) -> float:
        return sum(reporter.seconds for reporter in self._reporters)

    @property
    def steps(self) -> int:
        return self._reporters[-1].reported if self._reporters else 0

    def first_step(self, plan: Plan) -> None:
        """Take the first window's first step, wait for it and report it."""
        self._warming = plan.warmup > 0
        self._open(plan.warmup or plan.total, self._warming)
        start = time.perf_counter()
        self._step()
        self.first_step_seconds = time.perf_counter() - start

    def rest(self, plan: Plan) -> None:
        """Take all remaining steps of the plan, after `first_step`."""
        if self._warming:
            self._clock.start()
            for _ in range(plan.warmup - 1):
                self._step()
            self._open(plan.total, warmup=False)
            self._step()
        for _ in range(plan.total - 1):
            self._step()
        self.step_seconds = (time.perf_counter() - self._opened) / plan.total
        if self._bracketed:
            torch.cuda.synchronize(self._device)
            _cudart().cudaProfilerStop()

    def unreported_step(self) -> None:
        """Take a step like the others that is neither timed nor reported."""
        self._work(self._batches.next(), lambda: None)

    def flush(self) -> None:
        """Report the finished steps of a run that ends early."""
        if self._reporters:
            self._reporters[-1].flush()

    def _open(self, total: int, warmup: bool) -> None:
        """Begin a window at the first epoch's first batch, with the loader started."""
        self._batches.begin()
        self._warmup = warmup
        before = self.steps if self._numbers_go_on else 0
        self._reporters.append(Reporter(self._clock, self._reader, total, warmup, before))
        if self._bracketed and not warmup:
            torch.cuda.synchronize(self._device)
            _cudart().cudaProfilerStart()
        self._clock.start()
        self._opened = time.perf_counter()

    def _step(self) -> None:
        mark = self._clock.mark
        batch = self._batches.next()
        mark()
        self._report(batch, self._work(batch, mark))

    def _work(self, batch: Batch, mark: Callable[[], None]) -> Result:
        """Take a step on a batch, marking the end of each phase after ``data``."""
        inputs = tuple(self._to_device(t) for t in batch.inputs)
        target = self._to_device(batch.target)
        mark()
        return self._way.step(inputs, target, mark)

    def _to_device(self, tensor: torch.Tensor) -> torch.Tensor:
        moved = tensor.to(self._device, non_blocking=True)
        return moved.contiguous(memory_format=self._format) if moved.dim() == 4 else moved

    def _report(self, batch: Batch, result: Result) -> None:
        if batch.epoch is not None and not self._warmup:
            self._way.end_epoch()
        partial = batch.samples < self._batches.batch_size
        self._stop.shielded = True
        self._reporters[-1].step(Step(batch.samples, partial, result, batch.epoch))
        self._stop.unshield()


def _cudart() -> Any:
    return torch.cuda.cudart()  # type: ignore[no-untyped-call]
