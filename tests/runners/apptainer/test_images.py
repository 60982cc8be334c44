"""Fetching images, and what a session says of them. A real engine and a real registry."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

from gpuwatch.core.errors import NotAvailable
from gpuwatch.runners.apptainer import engine, images, spython_client
from gpuwatch.runners.apptainer.runner import ApptainerRunner
from gpuwatch.runners.docker.client import connect
from tests.conftest import Cli
from tests.reading import meta

from ..recorded import finish, specification, start

pytestmark = pytest.mark.apptainer


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))


@pytest.fixture
def pushed(registry: str, small_sif: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A URI that ``small_sif`` was pushed to."""
    monkeypatch.setenv("APPTAINER_NOHTTPS", "1")
    found = engine.find()
    assert found is not None
    uri = f"oras://{registry}/gpuwatch/small:1"
    command = [found.program, "push", "--allow-unsigned", str(small_sif), uri]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and "allow-unsigned" in done.stderr:
        done = subprocess.run([*command[:2], *command[3:]], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return uri


def test_the_header_says_what_the_engine_says(small_sif: Path) -> None:
    found = engine.find()
    assert found is not None
    said = subprocess.run(
        [found.program, "sif", "header", str(small_sif)], capture_output=True, text=True, check=True
    ).stdout
    header = images.read_header(small_sif)
    assert header is not None
    assert header.id in said


def test_a_file_is_read_for_its_digest_once(
    tmp_path: Path, small_sif: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = hashlib.sha256(small_sif.read_bytes()).hexdigest()
    assert images.sha256(small_sif, print) == wanted
    monkeypatch.setattr(hashlib, "sha256", lambda *_: pytest.fail("it was read again"))
    assert images.sha256(small_sif, print) == wanted


def test_an_image_is_fetched_once_and_what_that_took_is_kept(tmp_path: Path, pushed: str) -> None:
    runner, said = ApptainerRunner(), list[str]()
    spec = specification("apptainer", pushed, "echo", "here", where=tmp_path, pull=True)
    assert runner.preflight(spec) == []
    first = runner.prepare(spec, said.append).facts
    assert said[0] == f"fetching {pushed}"
    assert first["image"] == pushed
    assert first["image_pull_seconds"] > 0
    assert first["image_digest"].startswith("sha256:")
    assert first["image_bytes"] > 1 << 20
    later = specification("apptainer", pushed, "echo", "here", where=tmp_path)
    assert runner.preflight(later) == []
    assert dict(runner.prepare(later, said.append).facts) == dict(first)
    assert finish(start(runner, later, tmp_path / "run")).out == b"here\n"


def test_what_cannot_be_fetched_leaves_a_reason_and_nothing_else(
    tmp_path: Path, registry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APPTAINER_NOHTTPS", "1")
    uri = f"oras://{registry}/gpuwatch/none:1"
    said: list[str] = []
    spec = specification("apptainer", uri, "true", where=tmp_path, pull=True)
    with pytest.raises(NotAvailable, match="none:1") as caught:
        ApptainerRunner().prepare(spec, said.append)
    assert "\n" not in caught.value.message
    assert not any("FATAL" in line for line in said)  # the error tells it
    assert list((tmp_path / "share").rglob("*.sif*")) == []


def test_what_spython_would_exit_for_is_an_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(NotAvailable, match=r"no\.def"):
        spython_client.build(tmp_path / "no.def", tmp_path / "x.sif", lambda line: None)
    assert capfd.readouterr() == ("", "")


@pytest.mark.docker
def test_an_image_of_a_docker_registry_runs_once_it_may_be_fetched(
    cli: Cli, tmp_path: Path, registry: str, small_image: str
) -> None:
    name = f"{registry}/gpuwatch/small"
    with connect().client() as api:
        api.tag(small_image, name, "1")
        pushed = api.push(name, "1")
        api.remove_image(f"{name}:1")
    assert "digest" in str(pushed), pushed
    cli.variables = {"APPTAINER_NOHTTPS": "1"}
    out, env = tmp_path / "out", f"apptainer=docker://{name}:1"
    run = ("--record", "--quiet", "--out", out, "--env", env)
    assert "add --pull" in cli(*run, "--", "python3", "-V", code=3).stderr
    cli(*run, "--pull", "--", "python3", "-V")
    (path,) = out.glob("*/*.gpuwatch")
    environment = meta(path)["environment"]
    assert environment["image_pull_seconds"] > 0 and environment["image_bytes"] > 1 << 20
    assert environment["image_digest"].startswith("sha256:")
