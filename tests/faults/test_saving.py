"""A workload that saves for seconds when it is asked to end: all requests of a second are one."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpuwatch.recorder.control import ONE_REQUEST_SECONDS
from gpuwatch.session.reading.status import State
from tests.conftest import Cli

from .aftermath import PATIENCE
from .environments import Place, python
from .table import Row
from .test_engines_local import holder, tree

NoteFault = Callable[[Row], None]
Times = Callable[[int, int], int]

SAVE_SECONDS = 3.0
AT_ONCE = 5
"""Runs beside each other; a save only waits."""


def saving(save: str) -> str:
    """A program that saves so when it is asked to end."""
    return f"""
import signal
def save(*_):
    print("saving", flush=True)
    {save}
    print("saved", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
for n in range(1, 10**6):
    step(n)
    time.sleep(0.02)
"""


SAVES = saving(f"time.sleep({SAVE_SECONDS})")

APPTAINER = pytest.param("apptainer", marks=pytest.mark.apptainer)
CHARLIECLOUD = pytest.param("charliecloud", marks=pytest.mark.charliecloud)
DOCKER = pytest.param("docker", marks=pytest.mark.docker)


@dataclass(frozen=True)
class Try:
    """One recording whose workload saves when it is asked to end."""

    place: Place
    recorder: subprocess.Popen[str]


@pytest.fixture
def kind(request: pytest.FixtureRequest, cli: Cli) -> tuple[str, str]:
    """A kind of environment, and what ``--env`` is given for it."""
    name = str(request.param)
    if name == "bare":
        return name, name
    image = request.getfixturevalue("small_image" if name == "docker" else "small_root")
    if name == "charliecloud":
        (image / cli.home.relative_to("/")).mkdir(parents=True, exist_ok=True)
    return name, f"{name}={image}"


def begin(cli: Cli, kind: tuple[str, str], out: Path, program: Sequence[str]) -> Try:
    place = Place(cli, *kind, out)
    return Try(place, cli.start(*place.arguments(*program)))


def recorder_and_shim(each: Try) -> list[int]:
    found = [each.recorder.pid, holder(each.place)]
    return random.Random(each.place.out.name).sample(found, 2)


def recorder_twice(each: Try) -> list[int]:
    # Another signal: of two that are alike the kernel makes one.
    os.kill(each.recorder.pid, signal.SIGHUP)
    return [each.recorder.pid]


def control_group(each: Try) -> list[int]:
    """Recorder, shim, launcher and workload: all that a scheduler finds in the job's group."""
    return tree(each.recorder.pid)


LOCAL = pytest.mark.parametrize("kind", ["bare", APPTAINER, CHARLIECLOUD], indirect=True)
EVERYWHERE = pytest.mark.parametrize(
    "kind", ["bare", APPTAINER, CHARLIECLOUD, DOCKER], indirect=True
)


@LOCAL
def test_recorder_and_shim_asked_at_once_are_one_request(
    cli: Cli, tmp_path: Path, kind: tuple[str, str], mark: str, note_fault: NoteFault, times: Times
) -> None:
    saves(cli, tmp_path, kind, mark, note_fault, times, "recorder and shim", recorder_and_shim)


@LOCAL
def test_a_whole_control_group_asked_at_once_is_one_request(
    cli: Cli, tmp_path: Path, kind: tuple[str, str], mark: str, note_fault: NoteFault, times: Times
) -> None:
    saves(cli, tmp_path, kind, mark, note_fault, times, "the whole control group", control_group)


@EVERYWHERE
def test_a_recorder_asked_twice_within_a_second_is_asked_once(
    cli: Cli, tmp_path: Path, kind: tuple[str, str], mark: str, note_fault: NoteFault, times: Times
) -> None:
    saves(cli, tmp_path, kind, mark, note_fault, times, "the recorder, twice", recorder_twice)


def saves(
    cli: Cli,
    folder: Path,
    kind: tuple[str, str],
    mark: str,
    note_fault: NoteFault,
    times: Times,
    whom: str,
    processes: Callable[[Try], Iterable[int]],
) -> None:
    """Every save is whole when SIGTERM goes to ``processes`` at once; note it for the table."""
    tried, lost = times(2, 20), 0
    for first in range(0, tried, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, tried))
        tries = [begin(cli, kind, folder / f"out-{n}", python(mark, SAVES)) for n in numbers]
        for each in tries:
            each.place.wait_for_line("log line 3")
        for each in tries:
            for pid in processes(each):
                os.kill(pid, signal.SIGTERM)
        for each in tries:
            _, talk = each.recorder.communicate(timeout=PATIENCE)
            assert each.recorder.returncode == 0, talk
            found = each.place.kept()
            assert found.status.state is State.STOPPED
            lost += "saved" not in found.log
        for each in tries:
            left = each.place.nothing_left(mark)
    assert not lost, f"{lost} of {tried} saves were lost"
    fault = f"SIGTERM to {whom}, at once; the workload saves for {SAVE_SECONDS:g} s ({kind[0]})"
    note_fault(Row("recorder", fault, tried, "nothing", left, found.status.text))


@pytest.mark.parametrize("kind", ["bare", CHARLIECLOUD], indirect=True)
def test_what_a_shell_started_saves_after_the_shell_has_ended(
    cli: Cli, tmp_path: Path, kind: tuple[str, str], mark: str
) -> None:
    """A container of its own PID namespace ends with its first process."""
    program = ["sh", "-c", '"$@"; true', mark, *python(mark, SAVES)]
    started = begin(cli, kind, tmp_path / "out", program)
    started.place.wait_for_line("log line 3")
    started.recorder.send_signal(signal.SIGTERM)
    started.recorder.communicate(timeout=PATIENCE)
    log = started.place.kept().log
    assert log.count("saving") == log.count("saved") == 1
    started.place.nothing_left(mark)


@pytest.mark.parametrize("kind", ["bare", DOCKER], indirect=True)
def test_a_time_limit_is_no_second_request(
    cli: Cli, tmp_path: Path, kind: tuple[str, str], mark: str
) -> None:
    place = Place(cli, *kind, tmp_path / "out")
    go = cli.home / "go"
    save = f"while not os.path.exists({str(go)!r}): time.sleep(0.02)"
    head, *rest = place.arguments(*python(mark, saving(save)))
    limit = 20.0
    recorder = cli.start(head, "--duration", f"{limit:g}s", *rest)
    place.wait_for_line("log line 3")
    # So that the limit falls into the save, which may take ten seconds.
    passed = place.kept().meta["clock"]["monotonic_ns"] / 1e9 + limit
    time.sleep(max(0.0, passed - 3 - time.monotonic()))
    recorder.send_signal(signal.SIGTERM)
    time.sleep(max(0.0, passed + 1 - time.monotonic()))
    go.touch()
    recorder.communicate(timeout=PATIENCE)
    found = place.kept()
    assert found.status.text == "stopped by SIGTERM" and "saved" in found.log
    assert found.meta["result"]["t"] / 1e9 > limit
    place.nothing_left(mark)


@EVERYWHERE
def test_a_second_request_later_than_a_second_kills_at_once(
    cli: Cli, tmp_path: Path, kind: tuple[str, str], mark: str, note_fault: NoteFault, times: Times
) -> None:
    tried = times(1, 5)
    for number in range(tried):
        started = begin(
            cli, kind, tmp_path / f"out-{number}", python(mark, saving("time.sleep(600)"))
        )
        started.place.wait_for_line("log line 3")
        started.recorder.send_signal(signal.SIGTERM)
        started.place.wait_for_line("saving")
        time.sleep(1.1 * ONE_REQUEST_SECONDS)
        started.recorder.send_signal(signal.SIGTERM)
        started.recorder.communicate(timeout=PATIENCE)
        found = started.place.kept()
        assert "saving" in found.log and "saved" not in found.log
        assert (found.status.state, found.status.exit_code) == (State.STOPPED, 128 + signal.SIGKILL)
        left = started.place.nothing_left(mark)
    fault = f"SIGTERM again after {ONE_REQUEST_SECONDS:g} s; the workload saves ({kind[0]})"
    note_fault(Row("recorder", fault, tried, "the save, as asked", left, found.status.text))
