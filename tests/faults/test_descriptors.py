"""Few file descriptors: a run is recorded as ever, or does not begin and says why."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from errno import EMFILE
from os import strerror
from pathlib import Path

import pytest

from gpuwatch.analysis.summary.summary import summarise
from gpuwatch.core.errors import REFUSED
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.status import State
from tests.conftest import Cli
from tests.waiting import until

from .aftermath import (
    complete,
    kept,
    left_behind,
    nothing_left,
    running,
    sessions,
    stepping,
    workload,
)
from .table import Row

STEPS = 5
ENOUGH = 60
"""Descriptors with which a run on the machine alone is recorded for certain."""


def most_open(most: int) -> tuple[str, ...]:
    """A command whose program may have so many files open at once."""
    return ("sh", "-c", 'ulimit -n "$0" && exec "$@"', str(most))


def limited(cli: Cli, most: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    return cli(*arguments, code=None, through=most_open(most))


def test_with_few_descriptors_a_run_is_recorded_or_refused(
    cli: Cli, tmp_path: Path, note_fault: Callable[[Row], None], times: Callable[[int, int], int]
) -> None:
    limits = range(5, ENOUGH + 1, times(7, 1))
    recorded = []
    for most in limits:
        out = tmp_path / f"out-{most}"
        done = limited(cli, most, "--record", "--quiet", "--out", out, *workload(STEPS, 0.01))
        said = done.stderr.strip()
        if done.returncode == 0:
            recorded.append(most)
            (path,) = sessions(out)
            complete(kept(path), STEPS)
            assert kept(path).status.state is State.FINISHED
        else:
            assert done.returncode == 1
            assert said.endswith("; allow more: ulimit -n 4096") and "Too many open files" in said
            assert sessions(out) == []
        until(lambda: not running(cli))
        # Where even to remove takes more than there are, the next recorder does it.
        assert all(each.startswith("run .going-") for each in left_behind(cli, out))
    assert recorded and recorded == [each for each in limits if each >= min(recorded)]
    left = nothing_left(cli, out)
    what = f"gpuwatch --record allowed {limits[0]} to {limits[-1]} open files"
    lost = f"runs with fewer than {min(recorded)}, which do not start"
    said = "cannot start the run: Too many open files; allow more: ulimit -n 4096"
    note_fault(Row("recorder", what, len(limits), lost, left, said))


CROWD = """
import os, sys, time
count = int(sys.argv[1])
(burnt, tell), (going, hold) = os.pipe(), os.pipe()
for _ in range(count):
    if os.fork() == 0:
        os.close(hold)
        while time.process_time() < 0.05:
            pass
        os.write(tell, b".")
        os.read(going, 1)  # until the parent has ended
        os._exit(0)
while count:
    count -= len(os.read(burnt, count))
print(':::GPUWATCH {"event": "step", "step": 1, "seconds": 0.1}', flush=True)
while not os.path.exists("seen"):
    time.sleep(0.05)
"""
LEAST_SEEN = 0.03
"""Seconds of each: the kernel tells user and system time in whole hundredths."""


def test_a_workload_of_more_processes_than_descriptors_is_recorded_whole(
    cli: Cli, tmp_path: Path, note_fault: Callable[[Row], None], times: Callable[[int, int], int]
) -> None:
    count, most, out = times(60, 400), times(128, 1024), tmp_path / "out"
    crowd = tmp_path / "crowd.py"
    crowd.write_text(CROWD)
    recorder = cli.start(
        *("--record", "--quiet", "--interval", "0.1", "--out", out),
        *("--", sys.executable, crowd, count),
        through=most_open(most),
    )
    path = stepping(out)

    def seen() -> float:
        with SessionReader(path) as reader:
            return summarise(reader).metrics["process.cpu.time"].max or 0.0

    until(lambda: seen() >= count * LEAST_SEEN, "the processor time of all was not seen")
    (cli.home / "seen").touch()
    said = recorder.communicate()[1]
    assert (recorder.returncode, said) == (0, "")
    assert len(kept(path).steps) == 1 and kept(path).status.state is State.FINISHED
    what = f"a workload of {count} processes, {most} open files allowed"
    note_fault(Row("workload", what, 1, "nothing", nothing_left(cli, out), "-"))


def lasting(text: str) -> str:
    """What other tests do not change meanwhile, as they do free space and images."""
    text = re.sub(r"[\d.]+ [KMG]iB free", "", text)
    kinds = "apptainer|charliecloud|docker"
    return re.sub(rf"^((?:{kinds})( +\S+ \S+|:)).*(\n +Fix:.*)?", r"\1", text, flags=re.M)


@pytest.mark.parametrize("command", ["sessions", "doctor", "study"])
def test_a_command_without_descriptors_says_how_to_have_more(cli: Cli, command: str) -> None:
    arguments = (command, "--list") if command == "study" else (command,)
    whole = limited(cli, 256, *arguments)
    answered = []
    for most in (*range(5, 24), *range(24, 70, 4)):
        done = limited(cli, most, *arguments)
        if done.returncode == 1:
            assert done.stdout == ""
            assert done.stderr == f"gpuwatch: error: {strerror(EMFILE)}; {REFUSED[EMFILE]}\n"
        else:
            answered.append(most)
            assert done.returncode == whole.returncode
            assert lasting(done.stdout) == lasting(whole.stdout)
    assert answered and answered[0] > 12, "with so few, what cannot be opened counts as missing"
    assert left_behind(cli, cli.home / "none") == []
