"""Recorders and daemons die; containers go on, and nothing of what they do is lost."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import docker
import pytest
from docker.errors import NotFound

from gpuwatch.core.models import RunState
from gpuwatch.runners.docker import container
from gpuwatch.runners.docker import run as docker_run
from gpuwatch.runners.docker.client import connect
from gpuwatch.runners.docker.run import DockerRun
from gpuwatch.runners.docker.runner import DockerRunner
from gpuwatch.session.reading.status import State
from tests.engines.daemon import DockerDaemon
from tests.waiting import until

from .conftest import Lab, Launched, containers, launch_spec

pytestmark = pytest.mark.docker

TOLD = "until [ -e go ]; do sleep 0.05; done; exit"
"""Lives on until there is a file in the home."""


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


@pytest.mark.parametrize("seed", range(3))
def test_a_killed_recorder_harms_nothing_and_another_takes_the_run_up(lab: Lab, seed: int) -> None:
    total = 300
    recorder = lab.cli.start(*lab.arguments("sh", "-c", f"python3 steps.py {total} 0.01; {TOLD} 7"))
    lab.until_step(random.Random(seed).randint(1, total // 3))
    kill(recorder)
    lost = lab.seen()
    assert lost.status.state is State.LOST and "attach --record" in lost.status.text
    (lab.cli.home / "go").touch()
    lab.cli("attach", "--record", lab.path, code=1)
    seen = lab.seen()
    assert (seen.status.state, seen.status.exit_code) == (State.FAILED, 7)
    assert seen.steps == list(range(1, total + 1))
    assert [text for _, text in seen.log] == [f"log line {step}" for step in range(1, total + 1)]
    assert "resumed" in seen.events and seen.result["real_seconds"] > 3.0
    assert lab.run_folders == []


def test_an_end_that_nobody_recorded_is_found(lab: Lab, api: docker.APIClient) -> None:
    recorder = lab.cli.start(*lab.arguments("sh", "-c", f"python3 steps.py 200 0.02; {TOLD} 9"))
    lab.until_step()
    kill(recorder)
    (lab.cli.home / "go").touch()
    (name,) = containers(api, lab.cli.home)
    api.wait(name)
    lab.cli("attach", "--record", lab.path, code=1)
    seen = lab.seen()
    assert seen.status.exit_code == 9 and seen.steps == list(range(1, 201))


def test_stop_all_ends_a_container_whose_recorder_is_dead(lab: Lab, api: docker.APIClient) -> None:
    recorder = lab.cli.start(*lab.arguments("python3", "steps.py", 10_000, 0.01))
    lab.until_step()
    kill(recorder)
    (name,) = containers(api, lab.cli.home)
    assert "stopped" in lab.cli("stop", "--all").stderr
    with pytest.raises(NotFound):
        api.inspect_container(name)
    result = lab.seen().result
    assert (result["code"], result["stopped"]) == (143, "stop")


def test_a_handle_with_the_folder_alone_finds_the_run(launch: Callable[..., Launched]) -> None:
    launched = launch("sh", "-c", "trap 'exit 4' TERM; echo here; while :; do sleep 0.05; done")
    until(lambda: launched.so_far("stdout"))
    whole = launched.run.handle()
    handle = {"kind": "docker", "folder": whole["folder"], "holder": None}
    run = DockerRunner().attach(handle, None)
    assert run.handle() == whole and run.pids() == launched.run.pids()
    again = Launched(run)  # type: ignore[arg-type]
    run.stop()
    assert again.to_end().code == 4 and again.data("stdout") == b"here\n"


def test_a_container_that_is_gone_is_a_lost_run(
    launch: Callable[..., Launched], api: docker.APIClient
) -> None:
    launched = launch("sleep", "600")
    handle = launched.run.handle()
    api.remove_container(handle["name"], force=True)
    result = launched.to_end()
    assert result.lost and "is gone" in str(result.text)
    nothing = {"kind": "docker", "folder": handle["folder"] + "x"}
    result = Launched(DockerRun.attach(nothing, None, connect().url)).to_end()
    assert result.lost and result.code is None


def test_a_sweep_ends_what_no_session_leads_to(
    launch: Callable[..., Launched], tmp_path: Path, api: docker.APIClient
) -> None:
    forgotten, kept = launch("sleep", "300"), launch("sleep", "300")
    name = forgotten.run.handle()["name"]
    shutil.rmtree(forgotten.run.handle()["folder"])
    assert container.remove_leftovers(connect(), running=True) == [], "its recorder lives"
    # The labels name this process as the recorder: a copy names one that is dead.
    dead = subprocess.run(["sh", "-c", "echo $$"], capture_output=True, text=True, check=True)
    labels = api.inspect_container(name)["Config"]["Labels"]
    labels |= {"io.gpuwatch.recorder": f"{dead.stdout.strip()} 1"}
    spec = api.inspect_container(name)

    def create(state: str) -> str:
        return api.create_container(
            spec["Image"], ["sleep", "300"], labels=labels, name=f"{name}-{state}",
            host_config=api.create_host_config(network_mode="none"),
        )["Id"]  # fmt: skip

    def started() -> bool:
        try:
            api.start(create("running"))
        except NotFound:  # another gpuwatch of this user swept what did not run yet
            return False
        return True

    until(started)
    create("created")
    # Another gpuwatch of this user may sweep first: then that one tells of it.
    told = container.remove_leftovers(connect(), running=False)
    assert set(told) <= {f"removed container {name}-created (created): its run is gone"}
    assert f"{name}-created" not in containers(api, tmp_path)
    told = DockerRunner().sweep()
    assert set(told) <= {f"removed container {name}-running (running): its run is gone"}
    assert sorted(containers(api, tmp_path)) == sorted([name, kept.run.handle()["name"]])


def test_a_run_that_ended_while_its_daemon_stays_away_is_given_up(
    docker_daemon: DockerDaemon, small_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", docker_daemon.host)
    monkeypatch.setattr(docker_run, "GIVE_UP_SECONDS", 0.0)
    spec = launch_spec(docker_daemon.import_root(small_root), "sh", "-c", "echo said; sleep 300")
    folder = tmp_path / "run"
    folder.mkdir()
    runner = DockerRunner()
    run = runner.start(spec, runner.prepare(spec, print), folder)
    launched = Launched(run)  # type: ignore[arg-type]
    until(lambda: launched.so_far("stdout"))
    docker_daemon.kill()
    until(lambda: run.result() or run.state() is RunState.LOST)
    assert run.result() is None, "its process lives: it may come back"
    os.kill(run.pids()[0], signal.SIGKILL)
    result = launched.to_end()
    assert result.lost and "did not come back" in str(result.text)
    docker_daemon.start()
    name = run.handle()["name"]
    assert docker_daemon.client().api.inspect_container(name)["State"]["Status"] == "exited"
