"""``python -m benchmarks.scale.feed GPUS HOURS``: feeds the recorder's writer and step intake with
so many hours at 10 Hz by a simulated clock, and prints the memory of its process at the end, MiB.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import psutil

from gpuwatch.core.metrics import CATALOGUE, Method
from gpuwatch.core.models import Output
from gpuwatch.recorder.output.intake import Intake
from gpuwatch.session.writing.store import Durability, SessionStore
from gpuwatch.session.writing.writer import SessionWriter
from gpuwatch.telemetry.base import Channel

NS = 1_000_000_000
TICKS_PER_COMMIT = 5
_METRICS = [name for name in CATALOGUE if name.startswith("hw.gpu.")][:9]


def feed(gpus: int, hours: float) -> list[float]:
    """Resident memory, MiB, at each twentieth of the time."""
    names = [(f"gpu{gpu}", metric) for gpu in range(gpus) for metric in _METRICS]
    channels = [
        (Channel(device, metric, Method.MEASURED, "simulated", None), CATALOGUE[metric].unit,
         CATALOGUE[metric].kind.value)
        for device, metric in names
    ]  # fmt: skip
    found, own = [], psutil.Process()
    with tempfile.TemporaryDirectory(prefix="gpuwatch-scale-") as folder:
        store = SessionStore.create(
            Path(folder) / "fed.gpuwatch", channels, safety=Durability.RECORDER
        )
        writer = SessionWriter(store, len(channels), base_ns=0)
        intake = Intake(0)
        ticks = int(hours * 36_000)
        for n in range(ticks):
            t = n * NS // 10
            writer.tick(n, t, [0.5 + (n + place) % 100 / 200 for place in range(len(channels))])
            if n % TICKS_PER_COMMIT == 0:
                writer.put(*intake.take([Output(t, "stdout", _line(n, t))]))
                writer.commit()
            if (n + 1) % max(1, ticks // 20) == 0:
                found.append(own.memory_info().rss / 2**20)
        writer.start()
        writer.close()
    return found


def _line(n: int, t: int) -> bytes:
    seconds = [0.005 + (n % 7) * 1e-5] * 100
    body = {
        "event": "step", "step": n * 20 + 100, "count": 100, "monotonic_ns": t, "samples": 6400,
        "seconds": seconds, "loss": [0.5],
    }  # fmt: skip
    return f":::GPUWATCH {json.dumps(body)}\nepoch {n}\n".encode()


if __name__ == "__main__":
    print(feed(int(sys.argv[1]), float(sys.argv[2]))[-1])
