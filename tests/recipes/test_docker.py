"""Claims about ``gpuwatch build docker``, with a real daemon."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from gpuwatch.runners.docker.push import only_here
from tests.conftest import Cli
from tests.engines.daemon import DockerDaemon, import_root, remove_image
from tests.waiting import until

from .conftest import put_package

pytestmark = pytest.mark.docker


def containers_of(image: str) -> list[str]:
    with contextlib.closing(docker.from_env()) as client:
        found = client.containers.list(all=True, ignore_removed=True, filters={"ancestor": image})
        return [container.id for container in found]


def test_a_build_tells_image_layers_and_seconds_and_notes_them(
    cli: Cli, nominal_image: str, tag: str
) -> None:
    done = cli("build", "docker", "--base", nominal_image, "--tag", tag, "--format", "json")
    told = json.loads(done.stdout)
    with contextlib.closing(docker.from_env()) as client:
        image = client.images.get(tag)
    assert (told["image"], told["id"], told["layers"]) == (tag, image.id, 3)
    assert told["bytes"] == image.attrs["Size"]
    assert image.labels["org.opencontainers.image.base.name"] == nominal_image
    assert "torch 2.6, torchvision 0.21" in done.stderr
    notes = list((cli.home / ".local/share/gpuwatch/images").glob("*.json"))
    note = json.loads(notes[0].read_text())
    assert (note["image"], note["how"], note["seconds"]) == (image.id, "build", told["seconds"])


def test_a_build_from_the_cache_is_not_taken_for_what_a_build_costs(
    cli: Cli, nominal_image: str, tag: str
) -> None:
    options = ("--base", nominal_image, "--tag", tag, "--format", "json")
    first = json.loads(cli("build", "docker", "--no-cache", *options).stdout)
    again = json.loads(cli("build", "docker", *options).stdout)
    assert (first["cached"], again["cached"]) == (False, True)
    assert first["id"] == again["id"]
    notes = (cli.home / ".local/share/gpuwatch/images").glob("*.json")
    assert [json.loads(note.read_text())["seconds"] for note in notes] == [first["seconds"]]


def test_a_build_that_had_nothing_to_do_says_nothing_of_what_a_build_costs(
    cli: Cli, nominal_image: str, tag: str
) -> None:
    options = ("--base", nominal_image, "--tag", tag, "--format", "json")
    cli("build", "docker", *options)
    for note in (cli.home / ".local/share/gpuwatch/images").glob("*.json"):
        note.unlink()
    assert json.loads(cli("build", "docker", *options).stdout)["cached"] is True
    assert not list((cli.home / ".local/share/gpuwatch").rglob("*.json"))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--base", "MYLAB:1"), "MYLAB:1 is not a Docker image name: repository name must be"),
        (("--base", "/some/folder"), "/some/folder is a path, and Docker runs images by name"),
        (("--base", "docker-daemon:x:1"), "Docker needs no such prefix: write x:1"),
    ],
)
def test_a_name_that_can_be_none_is_told(cli: Cli, options: tuple[str, ...], told: str) -> None:
    assert told in cli("build", "docker", *options, code=3).stderr


def test_a_tag_that_can_be_none_is_told_before_the_build(cli: Cli, nominal_image: str) -> None:
    done = cli("build", "docker", "--base", nominal_image, "--tag", "UPPER", code=3)
    assert "UPPER is not a Docker image name" in done.stderr and "Step" not in done.stderr


def test_a_step_that_fails_is_told_by_its_last_words_and_leaves_no_container(
    cli: Cli, small_image: str, tag: str
) -> None:
    done = cli("build", "docker", "--base", small_image, "--tag", tag, code=1)
    last = done.stderr.splitlines()[-1]
    assert last.startswith("gpuwatch: error: the image could not be built in step 7/7: ")
    assert last.endswith("has no torch; choose a base with it")
    assert done.stdout == ""
    assert containers_of(small_image) == []


def test_a_base_that_is_not_here_is_not_fetched_unasked(cli: Cli) -> None:
    done = cli("build", "docker", "--base", "no-such-base:1", code=3)
    assert "Docker has no image no-such-base:1 here" in done.stderr
    assert "docker pull no-such-base:1, or let gpuwatch fetch it: add --pull" in done.stderr


def test_pull_fetches_the_base(cli: Cli, nominal_root: Path, registry: str, tag: str) -> None:
    base = f"{registry}/nominal:latest"
    import_root(None, nominal_root, base.removesuffix(":latest"))
    with contextlib.closing(docker.from_env()) as client:
        client.images.push(base)
        client.images.remove(base)
    done = cli("build", "docker", "--base", base, "--pull", "--tag", tag)
    remove_image(None, base)
    assert f"pulling {base}" in done.stderr
    assert done.stdout.startswith(f"{tag}  ")


def test_push_puts_it_into_a_registry_from_which_it_can_be_fetched(
    cli: Cli, nominal_image: str, registry: str, tag: str
) -> None:
    target = f"{registry}/pushed:1"
    options = ("--base", nominal_image, "--tag", tag, "--push", target)
    told = json.loads(cli("build", "docker", *options, "--format", "json").stdout)
    pushed = told["pushed"]
    assert pushed.startswith(f"{registry}/pushed@sha256:")
    again = cli("build", "docker", *options)
    assert again.stdout.splitlines()[-1] == f"pushed {pushed}"
    assert f"pushing {target}" in again.stderr
    with contextlib.closing(docker.from_env()) as client:
        assert client.images.get(target).id == told["id"]
        client.images.remove(target)
        client.images.remove(tag)
        assert client.images.pull(pushed).id == told["id"]
        client.images.remove(pushed)


@pytest.mark.parametrize(
    ("target", "code", "told"),
    [
        ("torch", 2, "torch names no registry to push to; write REGISTRY/NAME"),
        (f"127.0.0.1:1/torch@sha256:{'0' * 64}", 2, "which only the registry gives"),
        ("127.0.0.1:1/TORCH", 3, "127.0.0.1:1/TORCH is not a Docker image name"),
    ],
)
def test_a_name_that_cannot_be_pushed_to_is_told_before_the_build(
    cli: Cli, nominal_image: str, target: str, code: int, told: str
) -> None:
    done = cli("build", "docker", "--base", nominal_image, "--push", target, code=code)
    assert told in done.stderr and "Step" not in done.stderr


def test_a_registry_that_is_away_is_told_and_the_image_stays(
    cli: Cli, nominal_image: str, tag: str
) -> None:
    target = "127.0.0.1:1/torch"
    options = ("--base", nominal_image, "--tag", tag, "--push", target)
    done = cli("build", "docker", *options, code=3)
    remove_image(None, target)
    assert f"{tag} was built, but {target} could not be pushed" in done.stderr
    assert "docker login 127.0.0.1:1" in done.stderr
    with contextlib.closing(docker.from_env()) as client:
        assert client.images.get(tag)


def test_an_image_is_only_here_until_it_is_pushed_or_where_it_was_pulled(
    cli: Cli, nominal_image: str, registry: str, tag: str
) -> None:
    target = f"{registry}/known:1"
    cli("build", "docker", "--base", nominal_image, "--tag", tag, "--push", target)
    problem = only_here(tag)
    assert problem is not None
    assert f"gpuwatch build docker --base {tag} --push REGISTRY/NAME" in problem.hint
    assert only_here(target) is None
    assert only_here("no-such-image:1") is None
    remove_image(None, target)


def test_without_a_daemon_it_says_so(cli: Cli, tmp_path: Path) -> None:
    cli.variables["DOCKER_HOST"] = f"unix://{tmp_path}/none.sock"
    done = cli("build", "docker", code=3)
    assert "no Docker daemon answers at" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_build_leaves_no_container(
    cli: Cli, tag: str, slow_image: str, number: signal.Signals
) -> None:
    started = cli.start("build", "docker", "--base", slow_image, "--tag", tag)
    assert started.stderr is not None
    assert any("preparing" in line for line in started.stderr)
    assert containers_of(slow_image)
    started.send_signal(number)
    assert started.wait(60) == 130
    until(lambda: not containers_of(slow_image), "its container is still there")


@pytest.fixture(scope="module")
def slow_image(tmp_path_factory: pytest.TempPathFactory, nominal_root: Path) -> Iterator[str]:
    """A base whose torch is never imported."""
    root = tmp_path_factory.mktemp("slow") / "root"
    subprocess.run(["cp", "-a", str(nominal_root), str(root)], check=True)
    put_package(root, "torch", "import time; print('preparing', flush=True); time.sleep(3600)\n")
    image = import_root(None, root, "gpuwatch-test-slow")
    yield image
    remove_image(None, image)


def test_no_space_left_in_a_step_is_told_as_a_full_disk(
    cli: Cli, docker_daemon: DockerDaemon, nominal_root: Path, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    subprocess.run(["cp", "-a", str(nominal_root), str(root)], check=True)
    fill = "import errno; raise OSError(errno.ENOSPC, 'No space left on device')\n"
    put_package(root, "torch", fill)
    cli.variables["DOCKER_HOST"] = docker_daemon.host
    done = cli("build", "docker", "--base", docker_daemon.import_root(root), code=1)
    assert f"{docker_daemon.socket.parent}/data is full; docker system df" in done.stderr


def test_a_daemon_that_is_killed_fails_the_build(
    cli: Cli, docker_daemon: DockerDaemon, nominal_root: Path, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    subprocess.run(["cp", "-a", str(nominal_root), str(root)], check=True)
    put_package(root, "torch", "import time; print('preparing', flush=True); time.sleep(3600)\n")
    cli.variables["DOCKER_HOST"] = docker_daemon.host
    started = cli.start("build", "docker", "--base", docker_daemon.import_root(root))
    assert started.stderr is not None
    assert any("preparing" in line for line in started.stderr)
    docker_daemon.kill()
    told = started.stderr.read()
    assert started.wait(60) == 1, told
    assert "gpuwatch: error: the image could not be built" in told
    assert "Traceback" not in told
