"""The engines that other tests stand on do what those tests take for granted."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from pathlib import Path

import docker
import pytest

from .daemon import DockerDaemon, import_root

HELLO = "import ctypes, hashlib, json, socket, sqlite3, ssl; print('hello')"


@pytest.mark.docker
def test_the_small_image_runs_python_in_docker(small_image: str) -> None:
    with contextlib.closing(docker.from_env()) as client:
        told = client.containers.run(
            small_image, ["python3", "-c", HELLO], network_mode="none", remove=True
        )
    assert told == b"hello\n"


@pytest.mark.apptainer
def test_the_small_root_runs_python_in_apptainer(small_root: Path) -> None:
    engine = shutil.which("apptainer") or "singularity"
    command = [engine, "--silent", "exec", "--contain", str(small_root), "python3", "-c", HELLO]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"hello\n"


@pytest.mark.charliecloud
def test_the_small_root_runs_python_in_charliecloud(small_root: Path) -> None:
    command = ["env", "USER=root", "ch-run", str(small_root), "--", "python3", "-c", HELLO]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"hello\n"


@pytest.mark.docker
def test_a_container_outlives_its_killed_daemon(
    docker_daemon: DockerDaemon, small_root: Path
) -> None:
    image = docker_daemon.import_root(small_root)
    with contextlib.closing(docker_daemon.client()) as client:
        started = client.containers.run(
            image, ["sleep", "60"], detach=True, init=True, network_mode="none"
        )
        started.reload()
        pid = started.attrs["State"]["Pid"]
        docker_daemon.kill()
        assert not docker_daemon.answers()
        assert Path(f"/proc/{pid}").exists()
        docker_daemon.start()
        again = client.containers.get(started.id)
        assert (again.status, again.attrs["State"]["Pid"]) == ("running", pid)
    docker_daemon.remove()
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.docker
def test_an_image_comes_back_from_the_registry(registry: str, small_root: Path) -> None:
    name = f"{registry}/small"
    import_root(None, small_root, name)
    with contextlib.closing(docker.from_env()) as client:
        client.images.push(name, tag="latest")
        client.images.remove(f"{name}:latest")
        digests = client.images.pull(name, tag="latest").attrs["RepoDigests"]
        client.images.remove(f"{name}:latest")
    assert digests[0].startswith(f"{name}@sha256:")
