"""``--dry-run``: how each run would be launched, and nothing started."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.session.reading.reader import SessionReader
from tests.conftest import Cli


def launches(cli: Cli, *arguments: object) -> list[dict[str, Any]]:
    found = json.loads(cli("--record", "--dry-run", "--format", "json", *arguments).stdout)
    assert found["schema"] == 2
    return list(found["launches"])


def command(path: Path) -> list[str]:
    with SessionReader(path) as reader:
        return list(reader.meta()["launch"]["command"])


def test_a_bare_run_is_shown_as_it_is_then_started(cli: Cli, tmp_path: Path) -> None:
    work = ("--", "sh", "-c", "exit 0", "a b")
    text = cli("--record", "--dry-run", "--out", tmp_path / "out", *work).stdout
    assert "command: sh -c 'exit 0' 'a b'" in text
    assert not (tmp_path / "out").exists()
    (launch,) = launches(cli, *work)
    cli("--record", "--out", tmp_path / "out", *work)
    (session,) = (tmp_path / "out").glob("*/*.gpuwatch")
    assert launch["command"] == command(session) == ["sh", "-c", "exit 0", "a b"]
    assert launch["working_directory"] == str(cli.home)
    assert (launch["runs"], launch["problems"]) == ([1], [])


def test_each_way_of_launching_stands_once_with_its_runs(cli: Cli) -> None:
    flags = ("--quick", "--order-seed", 1, "--env", "bare", "--env", "docker=no/such")
    bare, docker = launches(cli, *flags, "--", "true")
    assert len(bare["runs"]) == len(docker["runs"]) == 4
    assert sorted([*bare["runs"], *docker["runs"]]) == [*range(1, 9)]
    assert docker["command"] is None and docker["problems"][0]["text"]


def test_a_folder_of_missing_runs_is_shown_too(cli: Cli, tmp_path: Path) -> None:
    flags = ("--quick", "--out", tmp_path / "out", "--env", "bare")
    cli("--record", *flags, "--", "true")
    (study,) = (tmp_path / "out").iterdir()
    (study / "02-bare.gpuwatch").unlink()
    text = cli("resume", "--dry-run", study).stdout
    assert "bare (1 run)" in text and "command: true" in text


@pytest.mark.docker
def test_dockers_container_is_created_with_the_settings_that_were_shown(
    cli: Cli, small_image: str
) -> None:
    from gpuwatch.runners.docker.client import connect

    work = ("--env", f"docker={small_image},memory=64m", "--", "sleep", "300")
    (launch,) = launches(cli, *work)
    session = Path(cli("--record", "--detach", *work).stdout.strip())
    with SessionReader(session) as reader:
        run = reader.meta()["session"]["id"]
    with connect().client() as api:
        found = api.inspect_container(f"gpuwatch-{run}")
    cli("stop", session)
    container, host = launch["settings"]["container"], launch["settings"]["host_config"]
    assert found["Config"]["Entrypoint"] == container["entrypoint"] == ["sleep"]
    assert found["Config"]["Cmd"] == container["command"] == ["300"]
    assert found["Image"] == container["image"]
    variables = {f"{name}={value}" for name, value in container["environment"].items()}
    assert variables <= set(found["Config"]["Env"])
    assert found["HostConfig"]["Memory"] == host["mem_limit"] == 64 << 20
    assert found["HostConfig"]["CapDrop"] == host["cap_drop"] == ["ALL"]
    mounts = [mount["Source"].replace("/RUN/", f"/{run}/") for mount in host["mounts"]]
    assert [mount["Source"] for mount in found["HostConfig"]["Mounts"]] == mounts
