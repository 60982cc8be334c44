"""The processes of a Slurm job, which real processes claim to be in."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from gpuwatch.telemetry.nvml.errors import NO_LIBRARY
from gpuwatch.telemetry.process.job import JobSource, processes_of

JOB = f"9{os.getpid()}"
SLEEP = "print(flush=True); import time; time.sleep(600)"

Start = Callable[[str], int]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a process of the job with this number."""
    started = []

    def start_(job: str) -> int:
        variables = {**os.environ, "SLURM_JOB_ID": job}
        process = subprocess.Popen(
            [sys.executable, "-c", SLEEP], env=variables, stdout=subprocess.PIPE
        )
        started.append(process)
        assert process.stdout is not None
        process.stdout.readline()
        return process.pid

    yield start_
    for process in started:
        process.kill()
        process.communicate()


def test_a_process_is_known_by_its_environment(start: Start) -> None:
    mine, other = start(JOB), start(f"{JOB}0")
    found = processes_of(JOB)
    assert mine in found
    assert other not in found
    assert processes_of(JOB, known={mine}) == []


def test_later_steps_are_found_and_totals_never_fall(start: Start) -> None:
    now = 0.0
    source = JobSource(JOB, NO_LIBRARY, clock=lambda: now)
    first = start(JOB)
    before = source.sample()[0]
    assert source.pids == {first}
    second = start(JOB)
    now = 10.0
    after = source.sample()[0]
    pids = source.pids
    source.close()
    assert pids == {first, second}
    assert isinstance(before, float) and isinstance(after, float)
    assert after >= before


def test_none_are_there_without_the_job() -> None:
    source = JobSource(f"{JOB}1", NO_LIBRARY)
    assert source.sample()[0] is None
    source.close()
