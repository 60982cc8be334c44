"""What the caller was given is what every environment gets: processors, GPUs, time and memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpuwatch.session.reader import SessionReader
from tests.conftest import Cli
from tests.fake_nvml import FakeDriver, uuid

from .test_four_environments import KINDS, environments
from .test_record import sessions

ONE_CORE = ("taskset", "-c", "0")
CORES = "import os, time; print(sorted(os.sched_getaffinity(0)), flush=True); time.sleep(1)"


@pytest.fixture
def project(cli: Cli, small_root: Path) -> Path:
    """A folder of the user's, which Charliecloud's image has too: it mounts only onto such."""
    folder = cli.home / "project"
    folder.mkdir()
    (small_root / folder.relative_to("/")).mkdir(parents=True, exist_ok=True)
    return folder


def said(path: Path) -> list[str]:
    with SessionReader(path) as reader:
        return [row.text for row in reader.log(limit=100)]


def facts(path: Path, scope: str) -> dict[str, Any]:
    with SessionReader(path) as reader:
        return dict(reader.facts().get(scope, {}))


@pytest.mark.docker
@pytest.mark.apptainer
@pytest.mark.charliecloud
def test_all_environments_have_the_cores_that_their_caller_has(
    cli: Cli, tmp_path: Path, project: Path, small_root: Path, small_image: str
) -> None:
    out = tmp_path / "out"
    cli(
        "--record", "--out", out, *environments(small_image, small_root),
        "--", "python3", "-c", CORES, folder=project, through=ONE_CORE,
    )  # fmt: skip
    paths = sessions(out)
    assert [said(path) for path in paths] == [["[0]"]] * len(KINDS)
    assert [facts(path, "process")["process.cpu.affinity"] for path in paths] == ["0"] * len(KINDS)


@pytest.mark.charliecloud
def test_a_container_has_the_gpu_that_its_caller_has(
    cli: Cli, driver: FakeDriver, tmp_path: Path, project: Path, small_root: Path
) -> None:
    driver.resize(4)
    (small_root / "usr/lib/libcuda.so.1").touch()
    cli.variables |= {"CUDA_VISIBLE_DEVICES": "2", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    out = tmp_path / "out"
    cli(
        "--record", "--out", out, "--env", "bare", "--env", f"charliecloud={small_root}",
        "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES", folder=project,
    )  # fmt: skip
    assert [said(path) for path in sessions(out)] == [[uuid(2)]] * 2
    for path in sessions(out):
        with SessionReader(path) as reader:
            assert reader.meta()["environment"]["gpus"] == [uuid(2)]
