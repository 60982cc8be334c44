"""Fewer file descriptors than a workload has processes: the run is recorded as ever."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from gpuwatch.analysis.summary.summary import summarise
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.status import State
from tests.conftest import Cli
from tests.waiting import until

from .aftermath import kept, nothing_left, stepping
from .table import Row


def most_open(most: int) -> tuple[str, ...]:
    """A command whose program may have so many files open at once."""
    return ("sh", "-c", 'ulimit -n "$0" && exec "$@"', str(most))


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
