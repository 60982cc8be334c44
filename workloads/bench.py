"""A stopwatch for operations of torch: the best median of several sets of samples."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Pace:
    """How long to look."""

    seconds: float
    """For each copy or size of matrix, about at most."""
    sets: int
    """At least so many; as soon as so many in a row gave no better median, no more."""
    samples: int
    """In a set."""
    sample_seconds: float
    """A sample repeats the operation for about so long."""
    product_seconds: float
    """The largest matrices whose product takes no longer than this are multiplied."""


@dataclass(frozen=True)
class Measured:
    """Seconds of one operation."""

    seconds: float
    """The best median of a set."""
    spread: float
    """How far the slowest set's median lies above it, as a share of it."""
    sets: int


@dataclass(frozen=True)
class Bench:
    """A device, and the stopwatch that is right for it."""

    device: torch.device
    pace: Pace

    def time(self, operation: Callable[[], object], repeats: int) -> float:
        """Seconds of one operation, mean over ``repeats`` of them without a pause."""
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
        """Sets of samples until none gets better, or time is up."""
        pace = self.pace
        self.time(operation, 2)  # the library chooses its kernel, the clock rises
        repeats = max(1, round(pace.sample_seconds / max(1e-9, self.time(operation, 1))))
        deadline = time.perf_counter() + pace.seconds
        medians: list[float] = []
        since_best = 0
        while len(medians) < pace.sets or since_best < pace.sets:
            found = statistics.median(self.time(operation, repeats) for _ in range(pace.samples))
            better = not medians or found < min(medians) * 0.995
            since_best = 0 if better else since_best + 1
            medians.append(found)
            if time.perf_counter() > deadline:
                break
        best = min(medians)
        return Measured(best, max(medians) / best - 1, len(medians))
