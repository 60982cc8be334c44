"""No more processes or threads, as in a container or a Slurm job at its limit."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpuwatch.session.reading.status import State
from tests.conftest import Cli
from tests.fake_nvml import FakeDriver
from tests.waiting import until

from .aftermath import complete, kept, log, nothing_left, sessions, stepping, workload
from .table import Row

STEPS = 5
ENOUGH = 24
MEND = "; end other programs, or allow more processes and threads: ulimit -u"
INTO = 'echo $$ > "$0" && exec "$@"'
"""A shell's: into a control group, and there run the rest."""

HOG = """
import os, signal, sys, time
children = []
def say(step):
    print(':::GPUWATCH {"event": "step", "step": %d, "seconds": 0.1}' % step, flush=True)
def told(what):
    time.sleep(0.05)
    return os.path.exists(what)
say(1)
while not told("begin"):
    pass
try:
    while True:
        pid = os.fork()
        if pid == 0:
            signal.pause()
        children.append(pid)
except OSError:
    print("no more processes", flush=True)
step = 1
while not told("over"):
    step += 1
    say(step)
for pid in children:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
print("as before", flush=True)
"""


class Limit:
    """A control group of this test, whose processes and threads are limited together."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def through(self, most: int) -> tuple[str, ...]:
        """A command that runs its program in it, with all that it starts."""
        (self.folder / "pids.max").write_text(str(most))
        return ("sh", "-c", INTO, str(self.folder / "cgroup.procs"))


@pytest.fixture
def limit() -> Iterator[Limit]:
    for root in (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup")):
        folder = root / f"gpuwatch-test-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            if (folder / "pids.max").exists():
                yield Limit(folder)
                return
        finally:
            folder.rmdir()
    pytest.skip("no control group that limits processes can be made here")


def test_with_few_processes_and_threads_a_run_is_recorded_or_refused(
    cli: Cli,
    tmp_path: Path,
    limit: Limit,
    note_fault: Callable[[Row], None],
    times: Callable[[int, int], int],
) -> None:
    limits = range(2, ENOUGH + 1, times(4, 1))
    recorded = []
    for most in limits:
        out = tmp_path / f"out-{most}"
        command = ("--record", "--quiet", "--out", out, *workload(STEPS, 0.01))
        done = cli(*command, code=None, through=limit.through(most))
        if done.returncode == 0:
            recorded.append(most)
            (path,) = sessions(out)
            complete(kept(path), STEPS)
            assert kept(path).status.state is State.FINISHED
        else:
            said = done.stderr.strip()
            assert "cannot start the run: " in said and said.endswith(MEND)
    assert recorded and recorded == [each for each in limits if each >= min(recorded)]
    what = f"gpuwatch --record allowed {limits[0]} to {limits[-1]} processes and threads"
    lost = f"runs with fewer than {min(recorded)}, which do not start"
    note_fault(Row("recorder", what, len(limits), lost, nothing_left(cli, tmp_path / "out"), said))


def test_a_workload_that_leaves_no_process_to_anybody_is_recorded_whole(
    cli: Cli, tmp_path: Path, limit: Limit, note_fault: Callable[[Row], None]
) -> None:
    driver = FakeDriver(tmp_path, 2)
    cli.variables |= driver.variables
    out, hog = tmp_path / "out", tmp_path / "hog.py"
    hog.write_text(HOG)
    command = ("--interval", "0.1", "--out", out, "--", sys.executable, hog)
    recorder = cli.start("--record", "--quiet", *command, through=limit.through(60))
    path = stepping(out)
    sampled(path)
    (cli.home / "begin").touch()
    until(lambda: "no more processes" in log(path))
    sampled(path)
    (cli.home / "over").touch()
    said = recorder.communicate()[1]
    assert (recorder.returncode, said) == (0, "")
    found = kept(path)
    assert found.steps == list(range(1, len(found.steps) + 1))
    assert found.status.state is State.FINISHED
    assert found.log == ["no more processes", "as before"]
    what = "a workload that takes every process and thread of its control group"
    note_fault(Row("workload", what, 1, "nothing", nothing_left(cli, out), "-"))


def sampled(path: Path) -> None:
    """Wait for a few samples more."""
    before = len(kept(path).ticks)
    until(lambda: len(kept(path).ticks) > before + 3, "it is not sampled")
