"""A workload that prints nothing and notes when each of its steps ended.

    python workload.py loop|matmul|launches DEVICE OUT

A step takes about a millisecond. ``OUT.ready`` is there, with its PID, once it is warm; then it
waits for ``OUT.beside``, the PID of the process whose processor time it notes with each step. On
SIGTERM it writes OUT, two 64-bit numbers a step: the nanoseconds of CLOCK_MONOTONIC at which it
ended, and those of processor time that the process beside had used.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from array import array
from collections.abc import Callable
from pathlib import Path

_WARM_SECONDS = 2.0
_OPERATIONS = 200
"""Of a launch-bound step."""


def loop() -> Callable[[], object]:
    """Python alone, on one core."""

    def step() -> int:
        total = 0
        for number in range(20_000):
            total += number * number
        return total

    return step


def matmul(device: str) -> Callable[[], object]:
    """Products of matrices, on all cores or the GPU."""
    import torch

    size = 512 if device == "cpu" else 2048
    left, right = (torch.rand(size, size, device=device) for _ in range(2))
    into = torch.empty(size, size, device=device)

    def step() -> None:
        torch.mm(left, right, out=into)
        if device != "cpu":
            torch.cuda.synchronize()

    return step


def launches(device: str) -> Callable[[], object]:
    """Operations so small that starting them is all the work: several 100,000 a second."""
    import torch

    torch.set_num_threads(1)
    small = torch.zeros(16, device=device)

    def step() -> None:
        for _ in range(_OPERATIONS):
            small.add_(1.0)
        if device != "cpu":
            torch.cuda.synchronize()

    return step


def processor_clock(pid: int) -> int:
    """For ``time.clock_gettime``: of all threads of a process, CPUCLOCK_SCHED."""
    return (~pid << 3) | 2


def main(kind: str, device: str, out: Path) -> None:
    step = loop() if kind == "loop" else {"matmul": matmul, "launches": launches}[kind](device)
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: asked.append(number))
    now = time.monotonic_ns
    warm = now() + int(_WARM_SECONDS * 1e9)
    while now() < warm:
        step()
    partial = out.with_suffix(".partial")
    partial.write_text(str(os.getpid()))
    partial.rename(out.with_suffix(".ready"))
    beside = out.with_suffix(".beside")
    while not beside.exists() and not asked:
        time.sleep(0.01)
    clock = processor_clock(int(beside.read_text())) if not asked else 0
    used = time.clock_gettime_ns
    noted = array("q")
    while not asked:
        step()
        noted.append(now())
        noted.append(used(clock))
    with partial.open("wb") as file:
        noted.tofile(file)
    partial.rename(out)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
