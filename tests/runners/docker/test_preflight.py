"""What stands against a run in a container is told before it, with how to fix it."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import pytest

from gpuwatch.core.errors import NotAvailable
from gpuwatch.core.models import Limits, Mount, Problem
from gpuwatch.runners.docker import client, container, gpus
from gpuwatch.runners.docker.client import Daemon
from gpuwatch.runners.docker.runner import DockerRunner
from tests.engines.daemon import DockerDaemon

from .conftest import Lab, containers, launch_spec

ROOT = Path(__file__).parents[3]

UUID = "GPU-00000000-1111-2222-3333-444444444444"


def problems(image: str, *, gpus: tuple[str, ...] = (), **options: Any) -> list[Problem]:
    return DockerRunner().preflight(launch_spec(image, "true", gpus=gpus, **options))


def codes(found: list[Problem]) -> list[str]:
    assert all(each.text and "\n" not in each.text and each.hint for each in found)
    return [each.code for each in found]


@pytest.mark.docker
def test_nothing_stands_against_a_run_that_can_be(small_image: str) -> None:
    assert problems(small_image) == []
    engine = DockerRunner().engine()
    assert engine is not None and engine.startswith("Docker ")


@pytest.mark.docker
def test_an_image_that_is_not_here_is_never_fetched_silently(lab: Lab) -> None:
    lab.image = "gpuwatch-no-such-image:7"
    done = lab.cli(*lab.arguments("true"), code=3)
    assert "has no image gpuwatch-no-such-image:7 here" in done.stderr
    assert "docker pull gpuwatch-no-such-image:7" in done.stderr and "--pull" in done.stderr
    assert codes(problems("gpuwatch-no-such-image")) == ["image-missing"]
    assert problems("gpuwatch-no-such-image", pull=True) == []


@pytest.mark.docker
@pytest.mark.parametrize(
    ("image", "text", "hint"),
    [
        ("MYLAB:1", "repository name must be lowercase", "write mylab:1"),
        ("/some/folder", "Docker runs images by name", "--env apptainer=DIR or charliecloud=DIR"),
        ("docker-daemon:x:1", "is not a Docker image name", "write x:1"),
        ("a b", "is not a Docker image name", "write NAME, NAME:TAG"),
    ],
)
def test_what_cannot_be_an_images_name_is_told(image: str, text: str, hint: str) -> None:
    (problem,) = problems(image, pull=True)
    assert problem.code == "image-invalid"
    assert text in problem.text and hint in str(problem.hint)


@pytest.mark.docker
def test_a_bridge_that_the_daemon_does_not_have_is_told(
    docker_daemon: DockerDaemon, small_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", docker_daemon.host)
    image = docker_daemon.import_root(small_root)
    assert codes(problems(image, network="bridge")) == ["network-missing"]
    assert problems(image, network="host") == problems(image, network="none") == []


@pytest.mark.docker
def test_a_limit_that_the_daemon_would_refuse_is_told(lab: Lab) -> None:
    assert codes(problems(lab.image, memory_bytes=1 << 20)) == ["memory-too-small"]
    lab.record("true", options=",memory=6m")


@pytest.mark.docker
def test_a_tmp_that_cannot_be_written_is_told(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    (tmp_path / "scratch").chmod(0o777)
    scratch = str(tmp_path / "scratch")
    found = problems(lab.image, mounts=(Mount(scratch, "/tmp"),), folder=Path("/opt"))
    assert codes(found) == ["mount-hides-tmp"] and f"mount={scratch}:/tmp:rw" in str(found[0].hint)
    # What else is in this machine's /tmp may be unreadable in the container.
    assert "mount-hides-tmp" in codes(problems(lab.image, folder=Path("/tmp")))
    writable = (Mount(scratch, "/tmp", writable=True),)
    assert problems(lab.image, mounts=writable, folder=Path("/opt")) == []


@pytest.mark.docker
def test_a_mount_over_the_images_own_folder_is_blamed_and_no_tini(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    option = f"mount={tmp_path}/data:/usr"
    done = lab.cli(*lab.arguments("true", options=f",{option}"), code=3)
    assert f"{option} hides the image's own /usr" in done.stderr
    assert f"such as mount={tmp_path}/data:/mnt" in done.stderr
    assert "tini" not in done.stderr and "OCI runtime" not in done.stderr


@pytest.mark.docker
def test_a_mount_that_is_not_there_is_not_made(small_image: str, tmp_path: Path) -> None:
    mount = Mount(str(tmp_path / "nowhere"), "/mnt/data")
    assert codes(problems(small_image, mounts=(mount,))) == ["mount-missing"]
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.docker
def test_a_mount_that_vanishes_before_the_start_leaves_nothing(
    small_image: str, tmp_path: Path, api: docker.APIClient
) -> None:
    mount = Mount(str(tmp_path / "nowhere"), "/mnt/data")
    spec = launch_spec(small_image, "true", mounts=(mount,))
    runner = DockerRunner()
    folder = tmp_path / "run"
    folder.mkdir()
    with pytest.raises(NotAvailable, match="bind source path does not exist"):
        runner.start(spec, runner.prepare(spec, print), folder)
    assert not (tmp_path / "nowhere").exists()
    assert containers(api, tmp_path) == []


@pytest.mark.docker
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_data_of_another_user_is_told_even_to_root(lab: Lab, tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    os.chown(private, 12345, 12345)
    options = f",mount={private}:/mnt/data"
    done = lab.cli(*lab.arguments("true", options=options), code=3)
    assert f"{private} cannot be read by user 0:0" in done.stderr
    assert f"chmod -R o+rX {private}" in done.stderr
    private.chmod(0o755)
    lab.record("ls", "/mnt/data", options=options)
    writable = launch_spec(lab.image, "true", mounts=(Mount(str(private), "/mnt/data", True),))
    assert codes(DockerRunner().preflight(writable)) == ["mount-unwritable"]


@pytest.mark.docker
def test_gpus_need_nvidias_runtime_or_cdi(small_image: str) -> None:
    with contextlib.closing(docker.from_env()) as engine:
        if gpus.problem((UUID,), engine.info()) is None:
            pytest.skip("this daemon can give GPUs")
    (problem,) = problems(small_image, gpus=(UUID,))
    assert problem.code == "gpu-runtime-missing"
    assert problem.hint and "nvidia-ctk runtime configure" in problem.hint
    assert "--gpus none" in problem.hint


def test_a_runtime_or_a_specification_of_cdi_gives_gpus(tmp_path: Path) -> None:
    assert gpus.problem((UUID,), {"Runtimes": {"nvidia": {}, "runc": {}}}) is None
    info = {"Runtimes": {"runc": {}}, "CDISpecDirs": [str(tmp_path), str(tmp_path / "none")]}
    spec = tmp_path / "nvidia.yaml"
    spec.write_text('kind: nvidia.com/gpu\ndevices:\n- name: "0"\n')
    problem = gpus.problem((UUID,), info)
    assert problem and problem.hint and "--device-name-strategy=uuid" in problem.hint
    spec.write_text(f"kind: nvidia.com/gpu\ndevices:\n- name: {UUID}\n")
    assert gpus.problem((UUID,), info) is None
    given = gpus.request_for((UUID,), info)
    assert given.requests[0]["Driver"] == "cdi" and given.text == f"cdi nvidia.com/gpu={UUID}"


@pytest.mark.docker
def test_only_the_runs_gpus_are_asked_for(small_image: str, api: docker.APIClient) -> None:
    spec = launch_spec(small_image, "true", gpus=(UUID,))
    config = api.create_host_config(**container.host_config(spec, Daemon("unix:///x")))
    made = api.create_container(small_image, command=["true"], host_config=config)["Id"]
    try:
        host = api.inspect_container(made)["HostConfig"]
    finally:
        api.remove_container(made)
    (request,) = host["DeviceRequests"]
    assert request["DeviceIDs"] == [UUID] and request["Capabilities"] == [["gpu"]]
    assert request["Count"] == 0 and host["Privileged"] is False
    assert gpus.variables(()) == {"NVIDIA_VISIBLE_DEVICES": "void"}


@pytest.mark.docker
def test_cuda_sees_the_gpus_that_were_chosen_in_their_order(small_image: str) -> None:
    every = launch_spec(small_image, "true", gpus=("GPU-2", "GPU-1"))
    for spec, order in ((every, None), (replace(every, gpus_chosen=True), "GPU-2,GPU-1")):
        prepared = DockerRunner().prepare(spec, print)
        assert prepared.variables.get("CUDA_VISIBLE_DEVICES") == order
    none = DockerRunner().prepare(launch_spec(small_image, "true"), print).variables
    assert (none["CUDA_VISIBLE_DEVICES"], none["NVIDIA_VISIBLE_DEVICES"]) == ("-1", "void")


def test_the_callers_limits_are_the_containers() -> None:
    daemon = Daemon("unix:///x")
    assert not {"cpuset_cpus", "cpuset_mems", "cpu_quota", "mem_limit"} & set(
        container.host_config(launch_spec("image", "true"), daemon)
    )
    own = Limits(cpus="0-3,8", memory_nodes="1", cpu_time=1.5, memory_bytes=8 << 30)
    made = container.host_config(replace(launch_spec("image", "true"), limits=own), daemon)
    assert (made["cpuset_cpus"], made["cpuset_mems"]) == ("0-3,8", "1")
    assert made["cpu_quota"] / made["cpu_period"] == own.cpu_time
    assert made["mem_limit"] == made["memswap_limit"] == own.memory_bytes


@pytest.mark.docker
def test_a_start_that_fails_leaves_no_container(
    small_image: str, tmp_path: Path, api: docker.APIClient
) -> None:
    if "nvidia" in api.info()["Runtimes"]:
        pytest.skip("this daemon can give GPUs")
    spec = launch_spec(small_image, "true", gpus=(UUID,))
    folder = tmp_path / "run"
    folder.mkdir()
    runner = DockerRunner()
    with pytest.raises(NotAvailable, match="could not select device driver") as caught:
        runner.start(spec, runner.prepare(spec, print), folder)
    assert "\n" not in str(caught.value) and "--gpus none" in str(caught.value)
    assert containers(api, tmp_path) == []


@pytest.mark.parametrize("host", ["tcp://127.0.0.1:2375", "ssh://user@elsewhere", "npipe:////x"])
def test_a_daemon_elsewhere_is_refused(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.setenv("DOCKER_HOST", host)
    (problem,) = problems("image")
    assert problem.code == "docker-remote" and host in problem.text
    assert "telemetry would watch this machine" in problem.text
    assert DockerRunner().engine() is None and DockerRunner().sweep() == []


def test_a_socket_that_leads_to_another_machine_is_told_by_its_name_and_kernel() -> None:
    info = {"Name": "here", "KernelVersion": "6.1"}
    assert client.foreign(info, "here", "6.1") is None
    assert "its host is here" in str(client.foreign(info, "there", "6.1"))
    assert "its kernel is 6.1" in str(client.foreign(info, "here", "6.2"))


def test_no_daemon_is_told_with_how_to_start_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    (problem,) = problems("image")
    assert problem.code == "docker-absent" and f"{tmp_path}/none.sock" in problem.text
    assert DockerRunner().engine() is None and DockerRunner().sweep() == []


def test_a_daemon_that_is_installed_is_to_be_started_also_where_the_path_has_only_its_client(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "docker").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setattr(client, "url", lambda: f"unix://{tmp_path}/none.sock")
    with pytest.raises(client.Refused) as refused:
        client.connect()
    hint = refused.value.problem.hint
    systemd = Path("/run/systemd/system").is_dir()
    assert hint == ("sudo systemctl start docker" if systemd else "start it as root: dockerd &")


@pytest.fixture
def silent_socket(tmp_path: Path) -> Iterator[Path]:
    """A socket that is there and refuses."""
    path = tmp_path / "dead.sock"
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))
        yield path


def test_a_dead_socket_is_no_daemon(monkeypatch: pytest.MonkeyPatch, silent_socket: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{silent_socket}")
    assert codes(problems("image")) == ["docker-absent"]


_AS_ANOTHER_USER = """
import os
from tests.runners.docker.test_preflight import problems
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
for problem in problems("image"):
    print(problem.code, problem.hint)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_socket_that_is_not_yours_names_the_group_to_join(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        path = Path(folder, "docker.sock")
        os.chmod(folder, 0o755)
        monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(path))
            path.chmod(0o660)
            told = subprocess.run(
                [sys.executable, "-c", _AS_ANOTHER_USER],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            ).stdout
    assert told == "docker-forbidden sudo usermod -aG docker $USER, then log in again\n"
