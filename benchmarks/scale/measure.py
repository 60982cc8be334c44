"""What a session of so many hours costs to keep, to read and to write."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.opening import command_seconds
from tests.analysis.recorded_studies import APPTAINER, BARE, DOCKER, blocks_of, recorded

LISTED = (10, 100, 1000)
BLOCKS = (1, 3, 7)
_DATA = Path(__file__).resolve().parents[2] / "tests/data"
_OLD = _DATA / "kept-0.1.0/study/01-bare-1.gpuwatch"
_GPUWATCH = [sys.executable, "-m", "gpuwatch"]


@dataclass(frozen=True)
class Cost:
    """Seconds and MiB of one length."""

    gpus: int
    hours: float
    file_mib: float
    writer_mib: float
    show: float
    compare: float
    screen: float
    compare_mib: float


@dataclass(frozen=True)
class Listing:
    """Seconds of ``gpuwatch sessions FOLDER``."""

    count: int
    first: float
    again: float


@dataclass(frozen=True)
class Report:
    """Seconds of ``gpuwatch report`` of a study of so many runs, all formats."""

    runs: int
    seconds: float


def cost(path: Path, gpus: int, hours: float, repeat: int) -> Cost:
    """Medians of fresh processes; the session is compared with a second name of the same file."""
    other = path.with_name(f"{path.stem}-again.gpuwatch")
    other.unlink(missing_ok=True)
    os.link(path, other)
    try:
        both = [_run("compare", path, other, "--format", "table") for _ in range(repeat)]
    finally:
        other.unlink()
    return Cost(
        gpus,
        hours,
        path.stat().st_size / 2**20,
        writer_mib(gpus, hours),
        statistics.median(_run("show", path)[0] for _ in range(repeat)),
        statistics.median(seconds for seconds, _ in both),
        statistics.median(command_seconds(path) for _ in range(repeat)),
        max(mib for _, mib in both),
    )


def listing(count: int, repeat: int) -> Listing:
    with tempfile.TemporaryDirectory(prefix="gpuwatch-scale-") as name:
        folder, home = Path(name) / "out", Path(name) / "home"
        home.mkdir()
        for n in range(count):
            study = folder / f"study-{n // 2:04d}"
            study.mkdir(parents=True, exist_ok=True)
            shutil.copy(_OLD, study / f"{n % 2 + 1:02d}-bare.gpuwatch")
        env = {"HOME": str(home)}
        first, _ = _run("sessions", folder, env=env)
        again = [_run("sessions", folder, env=env)[0] for _ in range(max(3, repeat))]
        return Listing(count, first, statistics.median(again))


def report(blocks: int, repeat: int) -> Report:
    with tempfile.TemporaryDirectory(prefix="gpuwatch-scale-") as name:
        part = blocks_of(blocks, BARE, DOCKER, APPTAINER)
        effects = {BARE.label: 1.0, DOCKER.label: 1.03, APPTAINER.label: 1.001}
        plan = recorded(Path(name), [part], effects)
        seconds = [_run("report", name)[0] for _ in range(repeat)]
        return Report(len(plan.runs), statistics.median(seconds))


def _run(*arguments: object, env: dict[str, str] | None = None) -> tuple[float, float]:
    """Seconds, and the most memory that it had, MiB."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    begin = time.perf_counter()
    process = subprocess.Popen(
        [*_GPUWATCH, *map(str, arguments)],
        env={**kept, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"gpuwatch {arguments[0]} ended with {process.returncode}")
    return seconds, usage.ru_maxrss / 1024


def writer_mib(gpus: int, hours: float) -> float:
    """Memory of a process in which the recorder's own writer took the ticks of so many hours."""
    made = subprocess.run(
        [sys.executable, "-m", "benchmarks.scale.feed", str(gpus), str(hours)],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(made.stdout)
