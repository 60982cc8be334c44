"""A training loop in miniature, without torch: prints a step line every PERIOD seconds.

python steps.py STEPS PERIOD [EXIT_CODE]
"""

import json
import sys
import time

steps, period = int(sys.argv[1]), float(sys.argv[2])


def say(text: str) -> None:
    """A whole line in one piece, whatever ``PYTHONUNBUFFERED`` says."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def step_line(**keys: object) -> None:
    say(f":::GPUWATCH {json.dumps(keys)}")


step_line(event="count", flop_per_step=2e9, bytes_per_step=1e8)
for step in range(1, steps + 1):
    start = time.perf_counter()
    time.sleep(period)
    seconds = time.perf_counter() - start
    step_line(
        event="step", step=step, samples=64, seconds=seconds, loss=1 / step, total_steps=steps
    )
    say(f"log line {step}")
sys.exit(int(sys.argv[3]) if len(sys.argv) > 3 else 0)
