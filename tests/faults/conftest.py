from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.engines.daemon import DockerDaemon
from tests.faults.environments import KINDS, Place
from tests.faults.table import Row, note

_ROWS = "GPUWATCH_FAULT_ROWS"
"""A folder for the rows; where it is set every fault is tried as often as the page tells."""


@pytest.fixture
def times() -> Callable[[int, int], int]:
    """``times(quick, full)``: how often to try, in an ordinary run and in ``make faults``."""
    return lambda quick, full: full if os.environ.get(_ROWS) else quick


@pytest.fixture
def dice() -> random.Random:
    """Chance: the same in every ordinary run, another one in each `make faults`."""
    return random.Random() if os.environ.get(_ROWS) else random.Random(1)


@pytest.fixture
def note_fault(tmp_path: Path) -> Callable[[Row], None]:
    """Keep what a fault did for the table of docs/reliability.md."""
    return lambda row: note(row, Path(os.environ.get(_ROWS) or tmp_path / "fault-rows"))


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, cli: Cli, tmp_path: Path) -> Place:
    """Bare, in a Docker container, in Apptainer: one after the other."""
    kind = str(request.param)
    image = {"docker": "small_image", "apptainer": "small_root"}.get(kind)
    env = kind if image is None else f"{kind}={request.getfixturevalue(image)}"
    return Place(cli, kind, env, tmp_path / "out")


@pytest.fixture
def private(docker_daemon: DockerDaemon, cli: Cli, small_root: Path, tmp_path: Path) -> Place:
    """The command line with a daemon that may be killed."""
    cli.variables["DOCKER_HOST"] = docker_daemon.host
    image = docker_daemon.import_root(small_root)
    return Place(cli, "docker", f"docker={image}", tmp_path / "out")


@pytest.fixture
def public(cli: Cli, small_image: str, tmp_path: Path) -> Place:
    """The command line with the daemon that tests share."""
    return Place(cli, "docker", f"docker={small_image}", tmp_path / "out")


@pytest.fixture
def mark(tmp_path: Path) -> str:
    """What is in the command line of every process of this test's workload."""
    return f"gw-{os.getpid()}-{tmp_path.name[-40:]}"


@pytest.fixture(autouse=True)
def _programs(programs: None) -> None:
    """Every test of this folder starts programs."""
