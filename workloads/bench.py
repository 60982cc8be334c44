"""A stopwatch for torch operations: the best median of several sets of samples."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Pace:
    """Duration of a benchmark."""

    seconds: float
    """Approximate limit for each copy or matrix size."""
    sets: int
    """Minimum number of sets; also the number of sets without a better median that ends it."""
    samples: int
    """Samples per set."""
    sample_seconds: float
    """Approximate duration of a sample, which repeats the operation."""
    product_seconds: float
    """Longest duration of one matrix product; decides the size of the matrices."""


@dataclass(frozen=True)
class Measured:
    """Seconds of one operation."""

    seconds: float
    """The best median of a set, in seconds."""
    spread: float
    """Distance of the slowest set's median from it, relative to it."""
    sets: int


@dataclass(frozen=True)
class Bench:
    """A device with a suitable stopwatch."""

    device: torch.device
    pace: Pace

    def time(self, operation: Callable[[], object], repeats: int) -> float:
        """Seconds per operation, mean over ``repeats`` of them without a pause."""
        if self.device.type == "cuda":
            start = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
            end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
            start.record()
            for _ in range(repeats):
                operation()
            end.record()
            end.synchronize()
            return float(start.elapsed_time(end)) / 1e3 / repeats
        begin = time.perf_counter()
        for _ in range(repeats):
            operation()
        return (time.perf_counter() - begin) / repeats

    def best(self, operation: Callable[[], object]) -> Measured:
        """Measure sets of samples until none improves, or time is up."""
        pace = self.pace
        self.time(operation, 2)  # lets the library choose its kernel and the clock rise
        repeats = max(1, round(pace.sample_seconds / max(1e-9, self.time(operation, 1))))
        deadline = time.perf_counter() + pace.seconds
        medians: list[float] = []
        since_best = 0
        while len(medians) < pace.sets or since_best < pace.sets:
            median = statistics.median(self.time(operation, repeats) for _ in range(pace.samples))
            better = not medians or median < min(medians) * 0.995
            since_best = 0 if better else since_best + 1
            medians.append(median)
            if time.perf_counter() > deadline:
                break
        best = min(medians)
        return Measured(best, max(medians) / best - 1, len(medians))
