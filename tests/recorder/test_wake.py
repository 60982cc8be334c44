"""A stop arrives in a signal handler, wherever the sampler is at that moment."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import signal, time
from queue import SimpleQueue
from gpuwatch.recorder.sampling import Sampler

class Writer:
    def tick(self, *_): pass
    def put(self, *_): pass

wake, asked = SimpleQueue(), 0

def stop(*_):
    global asked
    asked += 1
    wake.put(None)

signal.signal(signal.SIGALRM, stop)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
sampler = Sampler([], 20e-6, time.monotonic_ns())
sampler.columns([])
end = time.monotonic() + 60
sampler.run(Writer(), wake, lambda: asked > 1000 or time.monotonic() > end)
signal.setitimer(signal.ITIMER_REAL, 0)
assert asked > 50, asked
"""


def test_a_stop_never_waits_for_what_it_interrupts() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=120)
