"""A run that changed while nobody recorded it: who takes it up tells how it stands now."""

from __future__ import annotations

import contextlib
import json
import signal
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import docker
import pytest

from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.status import State
from tests.conftest import Cli
from tests.engines.daemon import DockerDaemon
from tests.fake_nvml import FakeDriver
from tests.waiting import until

from .aftermath import PATIENCE, complete, events, stepping, workload
from .environments import Place, goes_on, python, whole
from .table import Row
from .test_engines_docker import the_container

NoteFault = Callable[[Row], None]

APPTAINER = pytest.param("apptainer", marks=pytest.mark.apptainer)
CHARLIECLOUD = pytest.param("charliecloud", marks=pytest.mark.charliecloud)
DOCKER = pytest.param("docker", marks=pytest.mark.docker)


def until_told(mark: str, folder: Path, steps: int) -> list[str]:
    """A program that makes 10 steps, and the others only once a file is in the test's folder."""
    body = f"""
for n in range(1, {steps + 1}):
    step(n)
    time.sleep(0.02)
    while n == 10 and not os.path.exists({str(folder / "go")!r}):
        time.sleep(0.02)
"""
    return python(mark, body)


@pytest.fixture
def anywhere(request: pytest.FixtureRequest, cli: Cli, tmp_path: Path) -> Place:
    """Every kind of environment, each of which sees the test's home."""
    kind = str(request.param)
    if kind == "bare":
        return Place(cli, kind, kind, tmp_path / "out")
    image = request.getfixturevalue("small_image" if kind == "docker" else "small_root")
    if kind == "charliecloud":
        (image / cli.home.relative_to("/")).mkdir(parents=True, exist_ok=True)
    return Place(cli, kind, f"{kind}={image}", tmp_path / "out")


def die(recorder: subprocess.Popen[str]) -> None:
    recorder.kill()
    recorder.communicate()


def take_up(place: Place) -> subprocess.Popen[str]:
    """Another recorder, once it has written that it is one."""
    before = events(place.path).count("resumed")
    recorder = place.cli.start("attach", "--record", place.path)
    until(lambda: events(place.path).count("resumed") > before)
    return recorder


def died_while(state: str, path: Path) -> None:
    """Leave a session as a recorder does that is killed while the run is in that state."""
    with contextlib.closing(sqlite3.connect(path)) as session, session:
        value = json.dumps({"state": state, "t": 1})
        session.execute("UPDATE meta SET value = ? WHERE key = 'run_state'", (value,))


@pytest.mark.parametrize("anywhere", ["bare", APPTAINER, CHARLIECLOUD, DOCKER], indirect=True)
def test_a_state_that_a_dead_recorder_left_is_not_kept(
    anywhere: Place, mark: str, note_fault: NoteFault
) -> None:
    place, steps, told = anywhere, 20, {}
    recorder = place.cli.start(*place.arguments(*until_told(mark, place.cli.home, steps)))
    place.wait_for_line("log line 10")
    for state in ("queued", "starting", "paused", "lost"):
        die(recorder)
        died_while(state, place.path)
        recorder = take_up(place)
        until(lambda: place.kept().meta["run_state"]["state"] == "running")
        status = place.kept().status
        assert (status.state, status.text, status.live) == (State.RUNNING, "running", True), state
        told[state] = status.text
    (place.cli.home / "go").touch()
    assert recorder.wait(PATIENCE) == 0
    recorder.communicate()
    found = place.kept()
    complete(found, steps)
    left = place.nothing_left(mark)
    for state, text in told.items():
        fault = (
            f"recorder killed while the run was `{state}`, taken up while it runs ({place.kind})"
        )
        note_fault(Row("recorder", fault, 1, "nothing", left, f"{text}; {found.status.text}"))


@pytest.mark.docker
def test_a_container_that_goes_on_between_two_recorders_is_no_longer_paused(
    public: Place, mark: str, note_fault: NoteFault
) -> None:
    place = public
    recorder = place.cli.start(*place.arguments(*goes_on(mark, place.cli.home, 100)))
    place.wait_for_line("log line 10")
    with contextlib.closing(docker.from_env()) as client:
        name = the_container(client.api, place)
        client.api.pause(name)
        place.happened("run-paused")
        die(recorder)
        at = len(place.kept().steps)
        client.api.unpause(name)
    second = take_up(place)
    place.happened("run-unpaused")
    until(lambda: len(place.kept().steps) > at)
    status = place.kept().status
    assert status.text == "running"
    (place.cli.home / "go").touch()
    assert second.wait(PATIENCE) == 0
    second.communicate()
    found = place.kept()
    whole(found, 100)
    left = place.nothing_left(mark)
    fault = "docker pause, recorder killed, docker unpause, taken up"
    note_fault(Row("engine", fault, 1, "nothing", left, f"{status.text}; {found.status.text}"))


@pytest.mark.docker
def test_a_daemon_that_is_back_between_two_recorders_is_no_longer_away(
    private: Place, docker_daemon: DockerDaemon, mark: str, note_fault: NoteFault
) -> None:
    place, steps = private, 20
    recorder = place.cli.start(*place.arguments(*until_told(mark, place.cli.home, steps)))
    place.wait_for_line("log line 10")
    docker_daemon.kill()
    place.happened("run-lost")
    die(recorder)
    docker_daemon.start()
    second = take_up(place)
    place.happened("run-back")
    status = place.kept().status
    assert (status.text, status.live) == ("running", True)
    (place.cli.home / "go").touch()
    assert second.wait(PATIENCE) == 0
    second.communicate()
    found = place.kept()
    complete(found, steps)
    left = place.nothing_left(mark)
    fault = "dockerd killed, recorder killed, dockerd started again, taken up"
    note_fault(Row("engine", fault, 1, "nothing", left, f"{status.text}; {found.status.text}"))


def test_a_gpu_that_is_back_between_two_recorders_is_no_longer_unavailable(
    cli: Cli, driver: FakeDriver, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    recorder = cli.start("--record", "--quiet", "--out", out, *workload(100_000, 0.02))
    path = stepping(out)
    driver.lose(0)
    until(lambda: "gpu-lost" in events(path))
    assert reason(path) is not None
    die(recorder)
    driver.restore(0)
    second = cli.start("attach", "--record", path)
    until(lambda: "resumed" in events(path))
    until(lambda: reason(path) is None)
    second.send_signal(signal.SIGTERM)
    second.communicate(timeout=PATIENCE)


def test_a_gpu_that_is_gone_for_the_second_recorder_is_told_as_unavailable(
    cli: Cli, driver: FakeDriver, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    recorder = cli.start("--record", "--quiet", "--out", out, *workload(100_000, 0.02))
    path = stepping(out)
    assert reason(path) is None
    die(recorder)
    for name in driver.variables:
        cli.variables.pop(name)
    second = cli.start("attach", "--record", path)
    until(lambda: "resumed" in events(path))
    until(lambda: reason(path) == "the recorder that took over the run could not sample it")
    second.send_signal(signal.SIGTERM)
    second.communicate(timeout=PATIENCE)


def reason(path: Path) -> str | None:
    """Why the GPU's utilization is not known now; ``None``: it is."""
    with SessionReader(path) as reader:
        (found,) = [
            each.reason
            for each in reader.channels()
            if (each.device, each.metric) == ("gpu0", "hw.gpu.utilization")
        ]
        return found
