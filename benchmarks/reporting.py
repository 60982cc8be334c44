"""What reporting costs a training step: its phases, scores and step lines, per step of 5 ms.

    python benchmarks/reporting.py [--seconds 20]

A step of a fixed 5 ms is taken bare, and with everything that a workload reports of it (five
marks, loss, top-1 and top-5 accuracy of 64 samples with 10 classes, a line five times a second).
Bare and reported windows of one second take turns in one process, each with the order of the
two reversed, and the medians over the windows are compared, so drift of the machine falls on both
alike. Exit code 1 if the cost is above the target of 0.5 %.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import statistics
import sys
import time

import torch

from gpuwatch.workloads.clock import clock_for
from gpuwatch.workloads.reporter import Reporter, Result, ScoreReader, Step

STEP_SECONDS = 0.005
WINDOW_STEPS = 200
TARGET = 0.005


def work() -> None:
    """Keep the processor busy for the length of a step, as a step's own work does."""
    end = time.perf_counter() + STEP_SECONDS
    while time.perf_counter() < end:
        pass


def bare_window() -> float:
    """Seconds per step of a window without reporting."""
    start = time.perf_counter()
    for _ in range(WINDOW_STEPS):
        work()
    return (time.perf_counter() - start) / WINDOW_STEPS


def reported_window() -> float:
    """Seconds per step of a window in which every step is reported."""
    device = torch.device("cpu")
    clock = clock_for(device)
    reporter = Reporter(clock, ScoreReader(device), WINDOW_STEPS, warmup=False)
    loss, scores, labels = torch.rand(()), torch.randn(64, 10), torch.randint(10, (64,))
    start = time.perf_counter()
    clock.start()
    for _ in range(WINDOW_STEPS):
        clock.mark()
        clock.mark()
        clock.mark()
        work()
        clock.mark()
        clock.mark()
        reporter.step(Step(64, False, Result(loss.detach(), scores.detach(), labels)))
    return (time.perf_counter() - start) / WINDOW_STEPS


def main() -> int:
    """Measure, print the table, compare with the target."""
    parser = argparse.ArgumentParser(description="The cost of reporting a training step.")
    parser.add_argument("--seconds", type=float, default=20, help="how long to measure")
    pairs = max(4, round(parser.parse_args().seconds / (2 * WINDOW_STEPS * STEP_SECONDS)))
    bare: list[float] = []
    reported: list[float] = []
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        bare_window()
        reported_window()
        for pair in range(pairs):
            windows = [(bare, bare_window), (reported, reported_window)]
            for seconds, window in windows if pair % 2 == 0 else reversed(windows):
                seconds.append(window())
    costs = [with_ - without for with_, without in zip(reported, bare, strict=True)]
    cost = statistics.median(costs)
    share = cost / statistics.median(bare)
    print(f"{platform.processor() or platform.machine()}, torch {torch.__version__}, {pairs} pairs")
    print(f"{'bare step':<16}{statistics.median(bare) * 1e3:10.4f} ms")
    print(f"{'reported step':<16}{statistics.median(reported) * 1e3:10.4f} ms")
    print(f"{'cost':<16}{cost * 1e6:10.1f} us  {share:.3%} of a step, target {TARGET:.1%}")
    return 0 if share < TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
