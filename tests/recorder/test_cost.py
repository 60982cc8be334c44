"""What a recorder costs: bounds that hold on a busy machine; benchmarks/recorder measures."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpuwatch.session.reading.reader import SessionReader
from tests.cli.commands.test_record import sessions, until
from tests.conftest import Cli
from tests.fake_nvml import FakeDriver

pytestmark = pytest.mark.usefixtures("programs")

GPUS = 8


def _clock(pid: int) -> float:
    """Seconds of processor time of a process."""
    return time.clock_gettime((~pid << 3) | 2)


def _resident(pid: int | str) -> int:
    """The most memory that a process had, in KiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


@contextmanager
def recording(
    cli: Cli, driver: FakeDriver, out: Path, interval: float
) -> Iterator[tuple[int, Path]]:
    """The process of a recorder of eight GPUs that has sampled, and its session."""
    driver.resize(GPUS)
    process = cli.start("--record", "--quiet", "--interval", interval, "--out", out)
    try:
        until(lambda: sessions(out) and _ticks(sessions(out)[0]))
        yield process.pid, sessions(out)[0]
    finally:
        process.terminate()
        process.communicate(timeout=60)


def _ticks(session: Path) -> list[int]:
    with SessionReader(session) as reader:
        return [row[0] for row in reader.all_ticks([])]


def _missed(session: Path) -> list[str]:
    with SessionReader(session) as reader:
        return [event.text for event in reader.events() if event.kind == "interval-missed"]


def test_eight_gpus_at_2_hz_cost_little_and_ask_the_driver_rarely(
    cli: Cli, driver: FakeDriver, tmp_path: Path
) -> None:
    calls = tmp_path / "calls"
    calls.write_bytes(bytes(8))
    cli.variables["FAKE_NVML_CALLS"] = str(calls)

    def asked() -> int:
        return int.from_bytes(calls.read_bytes(), sys.byteorder)

    with recording(cli, driver, tmp_path / "out", 0.5) as (pid, session):
        until(lambda: len(_ticks(session)) > 3)
        begun, cpu, before, ticks = time.monotonic(), _clock(pid), asked(), len(_ticks(session))
        until(lambda: len(_ticks(session)) >= ticks + 12)
        took = time.monotonic() - begun
        assert (_clock(pid) - cpu) / took < 0.02, "of a core; a quiet machine shows 0.003"
        assert (asked() - before) / took < 25 * GPUS, "ten fast calls, and 7.6 slow ones, a second"
        bare = "print(*[l for l in open('/proc/self/status') if l.startswith('VmHWM')])"
        told = subprocess.run([sys.executable, "-c", bare], capture_output=True, text=True).stdout
        assert _resident(pid) < 4.5 * int(told.split()[1]), "the interpreter alone has a third"
        maps = Path(f"/proc/{pid}/maps").read_text()
        heavy = ("numpy", "scipy", "textual", "docker", "pandas")
        assert not [name for name in heavy if name in maps]


def test_eight_slow_gpus_are_read_side_by_side_where_one_after_the_other_is_too_slow(
    cli: Cli, driver: FakeDriver, tmp_path: Path
) -> None:
    driver.delay("nvmlDeviceGetUtilizationRates", 0.05)  # 0.4 s one after the other
    with recording(cli, driver, tmp_path / "out", 0.2) as (_, session):
        until(lambda: _most_of_20(_ticks(session)) > 13)  # one after the other it is a third


def _most_of_20(ticks: list[int]) -> int:
    """How many of 20 samples in a row were taken, where most were."""
    taken = set(ticks)
    begins = range(15, max(ticks) - 19)
    return max((len(taken & {*range(at, at + 20)}) for at in begins), default=0)


def test_an_interval_that_a_slow_driver_cannot_hold_is_said_in_the_session_and_by_show(
    cli: Cli, driver: FakeDriver, tmp_path: Path
) -> None:
    driver.delay("nvmlDeviceGetUtilizationRates", 0.1)
    with recording(cli, driver, tmp_path / "out", 0.02) as (_, session):
        until(lambda: _missed(session))
        until(lambda: len(_missed(session)) > 1)
    text = _missed(session)[-1]
    assert "came too late for an interval of 0.02 s and are missing" in text
    ticks = _ticks(session)
    assert len(ticks) < ticks[-1], "a missed tick is a gap, never a late one under its number"
    assert "came too late" in cli("show", session).stdout


def test_the_version_is_told_as_fast_as_argparse_is_loaded(cli: Cli) -> None:
    def seconds(*command: str) -> float:
        begun = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True, env=cli.env)
        return time.perf_counter() - begun

    program = str(Path(sys.executable).with_name("gpuwatch"))
    ratios = [
        seconds(program, "--version") / seconds(sys.executable, "-c", "import argparse")
        for _ in range(9)
    ]
    assert statistics.median(ratios) < 1.5


def test_the_first_sample_comes_soon(cli: Cli, driver: FakeDriver, tmp_path: Path) -> None:
    taken, bare = [], []
    for number in range(3):
        begun = time.monotonic_ns()
        subprocess.run([sys.executable, "-c", "import argparse"], check=True)
        bare.append(time.monotonic_ns() - begun)
        out = tmp_path / f"out{number}"
        begun = time.monotonic_ns()
        cli("--record", "--quiet", "--duration", "0.1s", "--out", out)
        with SessionReader(sessions(out)[0]) as reader:
            base = reader.meta()["clock"]["monotonic_ns"]
            taken.append(base + next(iter(reader.all_ticks([])))[1] - begun)
    assert min(taken) < 30 * min(bare), "0.2 s where the interpreter takes 0.015"
