"""A program without torch that reports steps of pure arithmetic; starts at once.

gpuwatch --record -- python benchmarks/arithmetic.py [STEPS [SIZE]]
"""

from __future__ import annotations

import json
import sys
import time


def product(left: list[list[float]], right: list[list[float]]) -> list[list[float]]:
    """Of two square matrices."""
    columns = list(zip(*right, strict=True))
    return [[sum(map(float.__mul__, row, column)) for column in columns] for row in left]


def main(steps: int = 60, size: int = 40, wait_ms: int = 0) -> None:
    """``steps`` products of matrices of ``size``, after a tenth as many to warm up."""
    matrix = [[1.0 / (1 + row + column) for column in range(size)] for row in range(size)]
    before = time.perf_counter()
    for step in range(1 - steps // 10, steps + 1):
        product(matrix, matrix)
        time.sleep(wait_ms / 1000)
        now = time.perf_counter()
        told = {"event": "step", "step": step, "samples": 1, "seconds": now - before}
        if step < 1:
            told |= {"step": step + steps // 10, "warmup": True}
        print(":::GPUWATCH", json.dumps(told), flush=True)
        before = time.perf_counter()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
