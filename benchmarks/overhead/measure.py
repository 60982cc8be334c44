"""One row: a real workload under a real recorder, and one process switched on and off beside it."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.overhead.moments import Steps, beside_nobody, moments
from benchmarks.overhead.switch import switched, uninterrupted
from benchmarks.overhead.windows import Pairs, Window, pairs, plan
from tests.fake_nvml import FakeDriver

_HERE = Path(__file__).parent
_SETTLE_SECONDS = 3.0
_CPU_SECONDS = 15.0
"""For the processor time of a recorder that nobody stops."""
_PATIENCE_SECONDS = 60.0


@dataclass(frozen=True)
class Case:
    """What is measured."""

    load: str
    """``loop``, ``matmul`` or ``launches``."""
    hz: float
    """Of the recorder."""
    gpus: int
    """Of the stand-in driver; 0: this machine's own driver and GPUs."""
    instead: float | None = None
    """Of a control: the share of one core that a stand-in uses, which is switched in the recorder's
    place while the recorder runs on."""


@dataclass(frozen=True)
class Measured:
    """What a row is made of."""

    case: Case
    pairs: Pairs
    """By all steps."""
    moments: np.ndarray
    """By those in which the switched process ran: logarithms, one of each pair that tells it."""
    windows: tuple[Window, ...]
    step_s: float
    """Median length of a step."""
    cpu_share: float
    """Of one core, what the switched process uses when nobody stops it."""


class NoRun(RuntimeError):
    """The recorded workload did not do what it should; says what was printed."""


def measure(
    case: Case, *, seconds: float, window_s: float, device: str, env: Mapping[str, str], seed: int
) -> Measured:
    """Run and switch for ``seconds``; ``env`` finds the driver.

    Raises:
        NoRun: the recording ended early, or wrote no steps.
    """
    with tempfile.TemporaryDirectory(prefix="gpuwatch-overhead-") as temporary:
        folder = Path(temporary)
        # The stand-in ends last: a workload cannot note the time of a process that is gone.
        with _standin(case) as standin, _recorded(case, folder, device, env) as recorder:
            pid = recorder.pid if standin is None else standin.pid
            watch(folder / "steps", pid)
            time.sleep(_SETTLE_SECONDS)
            share = uninterrupted(pid, min(_CPU_SECONDS, seconds))
            windows = switched(pid, plan(seconds, window_s, random.Random(seed)))
        steps = folder / "steps"
        if not steps.exists() or recorder.returncode != 0:
            raise NoRun(f"exit code {recorder.returncode}: {(folder / 'said').read_text()}")
        noted = read(steps)
    if case.instead == 0:
        noted = beside_nobody(noted)
    step_s = float(np.median(np.diff(noted.ends))) / 1e9
    return Measured(
        case, pairs(noted.ends, windows), moments(noted, windows), tuple(windows), step_s, share
    )


def watch(steps: Path, pid: int) -> None:
    """Tell the workload that writes ``steps`` whose processor time it is to note."""
    partial = steps.with_suffix(".pid")
    partial.write_text(str(pid))
    partial.rename(steps.with_suffix(".beside"))


def read(steps: Path) -> Steps:
    """What the workload wrote."""
    return Steps(*np.fromfile(steps, dtype=np.int64).reshape(-1, 2).T)


@contextlib.contextmanager
def _recorded(
    case: Case, folder: Path, device: str, env: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """The recorder of a warm workload; both end with the block."""
    driver = FakeDriver(folder, case.gpus) if case.gpus else None
    where = {"FAKE_NVML_STATE": driver.variables["FAKE_NVML_STATE"]} if driver else {}
    steps, ready = folder / "steps", folder / "steps.ready"
    workload = (sys.executable, _HERE / "workload.py", case.load, device, steps)
    recorder = (sys.executable, "-m", "gpuwatch", "--record", "--quiet", "--interval")
    command = (*recorder, f"{1 / case.hz:g}", "--out", folder / "out", "--", *workload)
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(
            list(map(str, command)),
            env={**env, **where, "HOME": str(folder)},
            stdin=subprocess.DEVNULL, stdout=said, stderr=said,
        )  # fmt: skip
    try:
        until = time.monotonic() + _PATIENCE_SECONDS
        while not ready.exists():
            if process.poll() is not None or time.monotonic() > until:
                raise NoRun((folder / "said").read_text())
            time.sleep(0.05)
        if driver is not None:
            driver.processes(0, (int(ready.read_text()), 2**30, "compute"))
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(_PATIENCE_SECONDS)


@contextlib.contextmanager
def _standin(case: Case) -> Iterator[subprocess.Popen[bytes] | None]:
    if case.instead is None:
        yield None
        return
    process = subprocess.Popen([sys.executable, _HERE / "standin.py", str(case.instead)])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def environment(library: Path | None, latency_us: int) -> dict[str, str]:
    """The caller's, without what points to a home; ``library``: of the stand-in driver."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    if library is None:
        return kept
    return kept | {"LD_LIBRARY_PATH": str(library), "FAKE_NVML_LATENCY_US": str(latency_us)}
