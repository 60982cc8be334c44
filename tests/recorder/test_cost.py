"""What a recorder costs whatever else the machine does; benchmarks/recorder measures the rest."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpuwatch.session.reading.reader import SessionReader
from tests.conftest import Cli
from tests.fake_nvml import FakeDriver
from tests.reading import events, sessions
from tests.session.samples import times_of
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("programs")

GPUS = 8


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
        return times_of(reader)


def test_a_recorder_of_eight_gpus_takes_little_memory_and_loads_nothing_heavy(
    cli: Cli, driver: FakeDriver, tmp_path: Path
) -> None:
    with recording(cli, driver, tmp_path / "out", 0.5) as (pid, session):
        until(lambda: len(_ticks(session)) > 3)
        bare = "print(*[l for l in open('/proc/self/status') if l.startswith('VmHWM')])"
        told = subprocess.run([sys.executable, "-c", bare], capture_output=True, text=True).stdout
        assert _resident(pid) < 4.5 * int(told.split()[1]), "the interpreter alone has a third"
        maps = Path(f"/proc/{pid}/maps").read_text()
        heavy = ("numpy", "scipy", "textual", "docker", "pandas")
        assert not [name for name in heavy if name in maps]


def test_an_interval_that_a_slow_driver_cannot_hold_is_said_in_the_session_and_by_show(
    cli: Cli, driver: FakeDriver, tmp_path: Path
) -> None:
    driver.delay("nvmlDeviceGetUtilizationRates", 0.1)
    with recording(cli, driver, tmp_path / "out", 0.02) as (_, session):
        until(lambda: events(session, "interval-missed"))
        until(lambda: len(events(session, "interval-missed")) > 1)
    text = events(session, "interval-missed")[-1].text
    told = r"\d+ of the first \d+ samples came too late for an interval of 0.02 s and are missing"
    assert re.fullmatch(told, text)
    ticks = _ticks(session)
    assert len(ticks) < ticks[-1] / 0.02e9, (
        "a missed tick is a gap, never a late one under its number"
    )
    assert "came too late" in cli.read("show", session).stdout
