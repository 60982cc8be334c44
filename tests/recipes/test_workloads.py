"""What the recipes make runs gpuwatch's workloads, in every engine, without being named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.engines.daemon import DockerDaemon


@pytest.mark.docker
@pytest.mark.apptainer
@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_built_images_run_a_workload_without_being_named(
    builder: Cli, docker_daemon: DockerDaemon, torch_root: Path
) -> None:
    # A daemon of its own: the image has the default's name, which is the user's in any other.
    builder.variables["DOCKER_HOST"] = docker_daemon.host
    base = docker_daemon.import_root(torch_root)
    builder("build", "docker", "--base", base)
    quick = ("--compress", "none")
    builder("build", "apptainer", "--base", torch_root, *quick, timeout=300)
    environments = ("--env", "docker", "--env", "apptainer")
    short = ("--steps", "2", "--warmup", "0", "--profile", "0")
    builder("--record", "mnist-cnn", *short, *environments, "--out", "studies")
    sessions = sorted((builder.home / "studies").glob("*/*.gpuwatch"))
    shown = [json.loads(builder("show", path, "--format", "json").stdout) for path in sessions]
    assert len(shown) == 2
    for each in shown:
        facts = each["environment"]
        assert facts["image_id"], facts
        assert facts["image_build_seconds"] > 0
