"""A folder, a stand-in driver at work and an environment of its own for each run."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.tui.weather import change_each_second
from tests.fake_nvml import FakeDriver

GPM = {2: 80.0, 3: 40.5, 5: 30.0, 10: 45.5, 11: 1.0, 12: 12.0, 13: 3.0, 20: 100.0, 21: 200.5}
"""What the GPUs' counters run at where GPM is offered: percent, and MiB/s from 20 on."""
_DROPPED = ("COLUMNS", "LINES", "NO_COLOR", "COLORFGBG")
"""Of the terminal in which the benchmark itself runs."""


@dataclass(frozen=True)
class Place:
    """Where one run of one program takes place."""

    folder: Path
    env: dict[str, str]
    _calls: Path

    def calls(self) -> int:
        """Calls of the driver library that ask a device, so far."""
        return int.from_bytes(self._calls.read_bytes(), sys.byteorder)


@contextlib.contextmanager
def place(library: Path, gpus: int, latency_us: int | str, *, gpm: bool = False) -> Iterator[Place]:
    """GPUs whose readings change each second; each call that asks one takes ``latency_us``, as
    ``card`` the processor time of an H200's. The same terminal and an empty home for all."""
    folder = Path(tempfile.mkdtemp(prefix="gpuwatch-bench-"))
    driver = FakeDriver(folder, gpus)
    if gpm:
        driver.gpm(GPM)
    change_each_second(driver, gpus)
    calls = folder / "calls"
    calls.write_bytes(bytes(8))
    kept = {k: v for k, v in driver.env.items() if not k.startswith("XDG_") and k not in _DROPPED}
    env = kept | {
        "LD_LIBRARY_PATH": str(library),
        "FAKE_NVML_LATENCY_US": str(latency_us),
        "FAKE_NVML_CALLS": str(calls),
        "HOME": str(folder),
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "LANG": "C.UTF-8",
        "TZ": time.tzname[0],
    }
    try:
        yield Place(folder, env, calls)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def busy_cores() -> Iterator[None]:
    """A process that computes without end for each core, as a workload on all cores does."""
    spin = [sys.executable, "-c", "while True: pass"]
    spinning = [subprocess.Popen(spin) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()
