"""A program that reports as the hook does, and prints what it finds of the hook."""

from __future__ import annotations

import json
import os
import sys
import time

found = {
    "path": sys.path,
    "variables": {
        name: os.environ.get(name)
        for name in ("PYTHONPATH", "GPUWATCH_HOOK", "GPUWATCH_HOOK_OPTIONS")
    },
}
print(json.dumps(found), flush=True)


def steps(rank: int | None, ranks: int, count: int = 6) -> None:
    """Report ``count`` steps of 20 ms."""
    name = f"{os.getpid()}-{time.monotonic_ns()}.jsonl"
    file = os.open(
        os.path.join(os.environ["GPUWATCH_HOOK"], name), os.O_CREAT | os.O_EXCL | os.O_WRONLY
    )
    world = {} if rank is None else {"rank": rank, "world_size": ranks, "local_world_size": ranks}

    def tell(**keys: object) -> None:
        os.write(file, json.dumps(keys).encode() + b"\n")

    tell(event="hook", version=1, pid=os.getpid(), **world)
    tell(event="count", flop_per_step=1000, bytes_per_step=10, samples=4)
    for step in range(1, count + 1):
        time.sleep(0.02)
        tell(
            event="step",
            step=step,
            seconds=0.02,
            samples=4,
            warmup=step == 1,
            monotonic_ns=time.monotonic_ns(),
        )


ranks = int(sys.argv[1]) if len(sys.argv) > 1 else 0
if os.environ.get("GPUWATCH_HOOK"):
    for rank in range(1, ranks):
        if os.fork() == 0:
            steps(rank, ranks)
            os._exit(0)
    steps(0 if ranks else None, ranks)
    for _ in range(1, ranks):
        os.wait()
