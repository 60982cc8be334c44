"""Forty minutes at 10 Hz of four GPUs: reading and writing it, by ratios within one run."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.opening import Long, write
from gpuwatch.analysis.read import Read, read, read_exactly

ROOT = Path(__file__).parents[2]


def _cpu(reading: Callable[[Path], Read], path: Path) -> float:
    begin = time.process_time()
    reading(path)
    return time.process_time() - begin


def test_reading_a_long_session_costs_a_part_of_reading_every_sample(tmp_path: Path) -> None:
    path = tmp_path / "long.gpuwatch"
    write(path, Long("long", 4, 24_000))
    fast = min(_cpu(read, path) for _ in range(2))
    assert fast < 0.6 * _cpu(read_exactly, path)


def test_the_recorders_writer_and_intake_do_not_grow_with_the_run() -> None:
    script = "import json; from benchmarks.scale.feed import feed; print(json.dumps(feed(8, 0.5)))"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    resident = json.loads(done.stdout)
    assert len(resident) == 20
    assert max(resident[4:]) - resident[3] < 2.0, resident
