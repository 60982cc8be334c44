"""Work whose bytes and FLOP are known, reported by step lines: ``python known_work.py copy``.

``copy`` writes the negative of one large tensor into another: it reads and writes ``--mib`` MiB
each, per copy, by a kernel of its own, since ``ncu`` does not see the driver's copies.
``product`` multiplies square matrices of ``--size``: 2 n^3 FLOP each. A step takes a tenth
of a second; its samples are the calls in it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable

import torch

STEP_SECONDS = 0.1

Work = tuple[Callable[[], object], float, float]
"""What to call, its FLOP, its bytes read plus written."""


def copy(mib: int, device: torch.device) -> Work:
    source = torch.rand(mib << 18, device=device)
    target = torch.empty_like(source)
    return lambda: torch.neg(source, out=target), 0.0, 2.0 * source.numel() * 4


def product(size: int, dtype: torch.dtype, device: torch.device) -> Work:
    left, right = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    out = torch.empty(size, size, device=device, dtype=dtype)
    least = 3.0 * size * size * left.element_size()
    return lambda: torch.mm(left, right, out=out), 2.0 * size**3, least


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", choices=("copy", "product"))
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--size", type=int, help="edge of the matrices (default: 8192, CPU 1024)")
    parser.add_argument("--dtype", default="bfloat16", choices=("float32", "bfloat16", "float16"))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    flags = parser.parse_args()
    device = torch.device(flags.device)
    if flags.work == "copy":
        call, flop, size = copy(flags.mib, device)
    else:
        edge = flags.size or (8192 if device.type == "cuda" else 1024)
        call, flop, size = product(edge, getattr(torch, flags.dtype), device)

    def steps(times: int) -> float:
        start = time.perf_counter()
        for _ in range(times):
            call()
        if device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - start

    steps(2)
    times = max(1, round(STEP_SECONDS / steps(1)))
    times = max(1, round(STEP_SECONDS * times / steps(times)))
    until, step = time.perf_counter() + flags.seconds, 0
    while time.perf_counter() < until:
        step += 1
        line = {
            "event": "step",
            "step": step,
            "seconds": steps(times),
            "flop": flop * times,
            "bytes": size * times,
            "samples": times,
            "monotonic_ns": time.monotonic_ns(),
        }
        print(":::GPUWATCH", json.dumps(line), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
