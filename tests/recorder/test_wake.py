"""A stop arrives in a signal handler, wherever the sampler is; every sample is a row or told."""

from __future__ import annotations

import subprocess
import sys
import time
from queue import SimpleQueue
from typing import Any

from gpuwatch.recorder.sampling import Sampler

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


class Source:
    """Counts how often it was sampled, and is late once."""

    channels = ()
    taken = 0

    def sample(self) -> list[None]:
        self.taken += 1
        if self.taken == 5:
            time.sleep(0.02)  # several intervals
        return []

    def drain(self) -> tuple[list[Any], list[Any]]:
        return [], []


class Rows:
    def __init__(self) -> None:
        self.ticks: list[int] = []
        self.told: list[tuple[str, tuple[Any, ...]]] = []

    def tick(self, number: int, *_: object) -> None:
        self.ticks.append(number)

    def put(self, row: tuple[str, tuple[Any, ...]]) -> None:
        self.told.append(row)


def test_every_sample_is_a_row_and_a_gap_between_two_is_told() -> None:
    source, rows = Source(), Rows()
    sampler = Sampler([source], 0.002, time.monotonic_ns())  # type: ignore[list-item]
    sampler.columns([])
    sampler.run(rows, SimpleQueue(), lambda: source.taken >= 40)  # type: ignore[arg-type]
    assert len(rows.ticks) == source.taken
    assert rows.ticks == sorted(set(rows.ticks))
    (first, *_) = [values for _, values in rows.told if "interval-missed" in values]
    assert "came too late" in first[-1]
