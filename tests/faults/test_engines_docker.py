"""Docker fails under a run, or somebody else takes its container in hand."""

from __future__ import annotations

import contextlib
import re
import signal
import time
from collections.abc import Callable, Iterator

import docker
import pytest

from gpuwatch.session.reading.status import State
from tests.engines.daemon import DockerDaemon
from tests.waiting import until

from .aftermath import PATIENCE, Kept, complete, in_order, running
from .environments import Place, containers, goes_on, marked, python, stepping_program, whole
from .table import Row

pytestmark = pytest.mark.docker

NoteFault = Callable[[Row], None]
Times = Callable[[int, int], int]

FOREVER = 10**6


@pytest.fixture
def api(public: Place) -> Iterator[docker.APIClient]:
    """That daemon, for whoever else uses it."""
    with contextlib.closing(docker.from_env()) as client:
        yield client.api


def the_container(api: docker.APIClient, place: Place) -> str:
    (name,) = containers(api, place.cli.home)
    return name


def said_of(found: Kept) -> str:
    """All that a session says of its run, without what is different in each."""
    texts = dict.fromkeys([found.status.text, *(text for _, text in found.events)])
    return re.sub(r"gpuwatch-[0-9a-f]{12}", "NAME", "; ".join(texts))


def test_a_killed_daemon_leaves_the_run_lost_until_it_is_back(
    private: Place, docker_daemon: DockerDaemon, mark: str, note_fault: NoteFault, times: Times
) -> None:
    tried = times(1, 5)
    for number in range(tried):
        place = Place(private.cli, "docker", private.env, private.out / str(number))
        home = place.cli.home / str(number)
        home.mkdir()
        recorder = place.cli.start(*place.arguments(*goes_on(mark, home, 100, 5)))
        place.wait_for_line("log line 20")
        docker_daemon.kill()
        place.happened("run-lost")
        away = place.kept().status
        assert away.state is State.LOST and away.live
        docker_daemon.start()
        place.happened("run-back")
        (home / "go").touch()
        assert recorder.wait(PATIENCE) == 1
        recorder.communicate()
        found = place.kept()
        whole(found, 100)
        assert (found.status.state, found.status.exit_code) == (State.FAILED, 5)
        left = place.nothing_left(mark)
    said = f"{away.text}; {said_of(found)}"
    note_fault(Row("engine", "dockerd killed, started again", tried, "nothing", left, said))


def test_a_run_that_ended_while_its_daemon_was_away_keeps_its_exit_code(
    private: Place, docker_daemon: DockerDaemon, mark: str, note_fault: NoteFault
) -> None:
    go, steps = private.cli.home / "go", 150
    body = f"""
for n in range(1, {steps + 1}):
    step(n)
    time.sleep(0.02)
    while n == 1 and not os.path.exists({str(go)!r}):
        time.sleep(0.02)
sys.exit(6)
"""
    recorder = private.cli.start(*private.arguments(*python(mark, body)))
    private.wait_for_line("log line 1")
    docker_daemon.kill()
    go.touch()
    until(lambda: not marked(mark))
    sampled = len(private.kept().ticks)
    until(lambda: len(private.kept().ticks) > sampled + 1)
    back = time.monotonic_ns()
    docker_daemon.start()
    assert recorder.wait(PATIENCE) == 1
    recorder.communicate()
    found = private.kept()
    in_order(found)
    assert found.steps and found.status.exit_code == 6
    assert "what it wrote meanwhile is not in its log" in found.status.text
    ended = found.meta["clock"]["monotonic_ns"] + found.meta["result"]["t"]
    assert found.meta["result"]["real_seconds"] > 3 and ended < back, "to its end, not the return"
    lost = f"what it wrote while the daemon was away: {steps - len(found.steps)} of {steps} steps"
    left = private.nothing_left(mark)
    fault = "dockerd killed, started again after the workload's end"
    note_fault(Row("engine", fault, 1, lost, left, said_of(found)))


def test_a_run_is_stopped_while_its_daemon_is_away(
    private: Place, docker_daemon: DockerDaemon, mark: str, note_fault: NoteFault
) -> None:
    recorder = private.cli.start(*private.arguments(*stepping_program(mark, FOREVER)))
    private.wait_for_line("log line 1")
    docker_daemon.kill()
    private.happened("run-lost")
    recorder.send_signal(signal.SIGTERM)
    until(lambda: not marked(mark))
    docker_daemon.start()
    assert recorder.wait(PATIENCE) == 0
    recorder.communicate()
    found = private.kept()
    in_order(found)
    assert found.status.state is State.STOPPED
    left = private.nothing_left(mark)
    fault = "dockerd killed, the run stopped, dockerd started again"
    note_fault(
        Row("engine", fault, 1, "what it wrote while the daemon was away", left, said_of(found))
    )


def test_a_daemon_that_never_comes_back_ends_the_recording_half_a_minute_after_the_run(
    private: Place, docker_daemon: DockerDaemon, mark: str, note_fault: NoteFault, times: Times
) -> None:
    if not times(0, 1):
        pytest.skip("half a minute: make faults")
    recorder = private.cli.start(*private.arguments(*stepping_program(mark, 100)))
    private.wait_for_line("log line 1")
    docker_daemon.kill()
    until(lambda: not marked(mark))
    gone = time.monotonic()
    _, said = recorder.communicate(timeout=PATIENCE + 60)
    took = time.monotonic() - gone
    found = private.kept()
    in_order(found)
    assert recorder.returncode == 1 and found.status.state is State.LOST
    assert "did not come back" in found.status.text and "did not come back" in said
    assert running(private.cli) == []
    docker_daemon.start()  # the container is the daemon's to remove, once there is one
    private.cli("stop", "--all")
    left = private.nothing_left(mark)
    lost = f"what it wrote while the daemon was away: {100 - len(found.steps)} of 100 steps"
    text = f"{said_of(found)}; told {took:.0f} s after the workload's end"
    left = f"its container, until `gpuwatch stop --all` with a daemon; then {left}"
    note_fault(Row("engine", "dockerd killed, never started again", 1, lost, left, text))


def test_a_container_without_enough_memory_is_told_as_such(
    public: Place, mark: str, note_fault: NoteFault
) -> None:
    body = "step(1)\nstep(2)\nhoard = bytearray(200 << 20)\n"
    done = public.cli(*public.arguments(*python(mark, body), options=",memory=64m"), code=1)
    found = public.kept()
    complete(found, 2)
    assert found.status.state is State.KILLED and found.meta["result"]["out_of_memory"]
    assert "out of memory" in done.stderr
    left = public.nothing_left(mark)
    note_fault(Row("engine", "container out of memory", 1, "nothing", left, said_of(found)))


def test_a_container_that_somebody_pauses_is_told_and_goes_on(
    public: Place, api: docker.APIClient, mark: str, note_fault: NoteFault
) -> None:
    home = public.cli.home
    recorder = public.cli.start(*public.arguments(*goes_on(mark, home, 100)))
    public.wait_for_line("log line 10")
    name = the_container(api, public)
    api.pause(name)
    public.happened("run-paused")
    status = public.kept().status
    assert "paused" in status.text and status.live
    for _ in range(2):  # what was written before may come in the first time
        at = len(public.kept().steps)
        before = len(public.kept().ticks)
        until(lambda before=before: len(public.kept().ticks) > before + 3)
    assert len(public.kept().steps) == at, "it is still, and still sampled"
    api.unpause(name)
    public.happened("run-unpaused")
    (home / "go").touch()
    assert recorder.wait(PATIENCE) == 0
    recorder.communicate()
    found = public.kept()
    whole(found, 100)
    assert found.status.state is State.FINISHED
    left = public.nothing_left(mark)
    said = f"{status.text}; {said_of(found)}"
    note_fault(Row("engine", "docker pause, docker unpause", 1, "nothing", left, said))


def test_a_paused_container_is_stopped(
    public: Place, api: docker.APIClient, mark: str, note_fault: NoteFault
) -> None:
    recorder = public.cli.start(*public.arguments(*stepping_program(mark, FOREVER)))
    public.wait_for_line("log line 1")
    api.pause(the_container(api, public))
    public.happened("run-paused")
    public.cli("stop", public.path)
    assert recorder.wait(PATIENCE) == 0
    recorder.communicate()
    found = public.kept()
    in_order(found)
    assert (found.status.state, found.status.exit_code) == (State.STOPPED, 128 + signal.SIGTERM)
    left = public.nothing_left(mark)
    note_fault(Row("engine", "docker pause, gpuwatch stop", 1, "nothing", left, said_of(found)))


@pytest.mark.parametrize(
    ("fault", "state"),
    [("docker stop", State.KILLED), ("docker kill", State.KILLED), ("docker rm -f", State.LOST)],
)
def test_a_container_that_somebody_ends_is_told_with_what_is_known(
    public: Place, api: docker.APIClient, mark: str, note_fault: NoteFault, fault: str, state: State
) -> None:
    recorder = public.cli.start(*public.arguments(*stepping_program(mark, FOREVER)))
    public.wait_for_line("log line 10")
    name = the_container(api, public)
    if fault == "docker rm -f":
        api.remove_container(name, force=True)
    elif fault == "docker kill":
        api.kill(name)
    else:
        api.stop(name)
    _, said = recorder.communicate(timeout=PATIENCE)
    assert recorder.returncode == 1
    found = public.kept()
    in_order(found)
    assert found.status.state is state and len(found.steps) >= 10
    if state is State.LOST:
        assert "its container is gone" in found.status.text and "is gone" in said
        public.cli("stop", "--all")
    left = public.nothing_left(mark)
    note_fault(Row("engine", f"{fault} by somebody else", 1, "nothing", left, said_of(found)))
