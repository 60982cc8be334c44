"""A workload that prints nothing and notes when each of its steps ended.

    python workload.py loop|matmul|launches DEVICE OUT

A step takes about a millisecond. ``OUT.ready`` is there, with its PID, once it is warm; on SIGTERM
it writes OUT: the nanoseconds of CLOCK_MONOTONIC at which each step ended, as 64-bit numbers.
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
    ends = array("q")
    while not asked:
        step()
        ends.append(now())
    with partial.open("wb") as file:
        ends.tofile(file)
    partial.rename(out)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
