"""Apptainer, Charliecloud and the shim that holds a local workload: killed under a run."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuwatch.core.processes import start_time
from gpuwatch.session.reading.status import State
from tests.conftest import Cli
from tests.waiting import until

from .aftermath import PATIENCE, in_order
from .environments import Place, marked, python, stepping_program, words
from .table import Row

NoteFault = Callable[[Row], None]
Times = Callable[[int, int], int]

FOREVER = 10**6


def tree(pid: int) -> list[int]:
    """A process and all below it, parents first."""
    found = [pid]
    for each in found:
        listed = subprocess.run(
            ["ps", "--ppid", str(each), "-o", "pid="], capture_output=True, text=True, check=False
        )
        found += [int(number) for number in listed.stdout.split()]
    return found


def holder(place: Place) -> int:
    """The shim."""
    number: int = place.kept().meta["handle"]["holder"]["pid"]
    return number


@pytest.fixture
def apptainer(cli: Cli, small_root: Path, tmp_path: Path) -> Place:
    return Place(cli, "apptainer", f"apptainer={small_root}", tmp_path / "out")


@pytest.mark.apptainer
@pytest.mark.parametrize("victim", ["starter", "workload"])
def test_a_kill_of_apptainers_starter_or_of_its_workload_ends_both_and_is_told(
    apptainer: Place, mark: str, note_fault: NoteFault, victim: str
) -> None:
    recorder = apptainer.cli.start(*apptainer.arguments(*stepping_program(mark, FOREVER)))
    apptainer.wait_for_line("log line 10")
    starter, *below = tree(holder(apptainer))[1:]
    assert below, "the starter stays, the workload is below it"
    os.kill(starter if victim == "starter" else below[-1], signal.SIGKILL)
    assert recorder.wait(PATIENCE) == 1
    _, said = recorder.communicate()
    until(lambda: all(start_time(pid) is None for pid in (starter, *below)))
    found = apptainer.kept()
    in_order(found)
    assert (found.status.state, found.status.exit_code) == (State.KILLED, 128 + signal.SIGKILL)
    left = apptainer.nothing_left(mark)
    fault = f"apptainer's {victim} killed"
    note_fault(
        Row(
            "engine",
            fault,
            1,
            "nothing",
            left,
            f"{found.status.text}; {words(said.splitlines()[0])}",
        )
    )


@pytest.mark.charliecloud
def test_a_kill_of_what_charliecloud_became_is_told(
    cli: Cli, small_root: Path, tmp_path: Path, mark: str, note_fault: NoteFault
) -> None:
    (small_root / cli.home.relative_to("/")).mkdir(parents=True, exist_ok=True)
    place = Place(cli, "charliecloud", f"charliecloud={small_root}", tmp_path / "out")
    recorder = cli.start(*place.arguments(*stepping_program(mark, FOREVER)))
    place.wait_for_line("log line 10")
    (workload,) = tree(holder(place))[1:]
    os.kill(workload, signal.SIGKILL)
    assert recorder.wait(PATIENCE) == 1
    _, said = recorder.communicate()
    found = place.kept()
    in_order(found)
    assert (found.status.state, found.status.exit_code) == (State.KILLED, 128 + signal.SIGKILL)
    left = place.nothing_left(mark)
    fault = "charliecloud's process killed"
    note_fault(
        Row(
            "engine",
            fault,
            1,
            "nothing",
            left,
            f"{found.status.text}; {words(said.splitlines()[0])}",
        )
    )


@pytest.mark.parametrize("place", ["bare"], indirect=True)
@pytest.mark.parametrize("writes", [True, False])
def test_a_killed_shim_is_a_lost_run_whose_workload_can_still_be_ended(
    place: Place, mark: str, note_fault: NoteFault, writes: bool
) -> None:
    silent = python(mark, "for n in range(1, 11):\n    step(n)\ntime.sleep(600)\n")
    program = stepping_program(mark, FOREVER) if writes else silent
    recorder = place.cli.start(*place.arguments(*program))
    place.wait_for_line("log line 10")
    os.kill(holder(place), signal.SIGKILL)
    assert recorder.wait(PATIENCE) == 1
    _, said = recorder.communicate()
    found = place.kept()
    in_order(found)
    assert found.status.state is State.LOST and "its shim is gone" in said
    assert writes or "`gpuwatch stop SESSION` ends it" in said
    if writes:  # into a pipe that nobody reads: SIGPIPE
        until(lambda: not marked(mark))
    else:
        assert len(marked(mark)) == 1
    ended = place.cli("stop", place.path).stderr.strip()
    left = place.nothing_left(mark)
    fault = f"shim killed, the workload {'writes' if writes else 'is silent'}"
    how = "ends by itself (SIGPIPE)" if writes else "goes on until `gpuwatch stop`"
    note_fault(Row("engine", fault, 1, "nothing", f"{left}; the workload {how}", found.status.text))
    assert writes or "stopped" in ended
