"""A training loop in miniature, without torch: prints a step line every PERIOD seconds.

python steps.py STEPS PERIOD [EXIT_CODE]
"""

import json
import sys
import time

steps, period = int(sys.argv[1]), float(sys.argv[2])
print(":::GPUWATCH", json.dumps({"event": "count", "flop_per_step": 2e9, "bytes_per_step": 1e8}))
for step in range(1, steps + 1):
    start = time.perf_counter()
    time.sleep(period)
    print(
        ":::GPUWATCH",
        json.dumps(
            {
                "event": "step",
                "step": step,
                "samples": 64,
                "seconds": time.perf_counter() - start,
                "loss": 1 / step,
                "total_steps": steps,
            }
        ),
        flush=True,
    )
    print(f"log line {step}", flush=True)
sys.exit(int(sys.argv[3]) if len(sys.argv) > 3 else 0)
