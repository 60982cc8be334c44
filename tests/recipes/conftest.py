"""Bases for builds: one with torch in name only, quick to build on, and what it leaves behind."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.engines.daemon import import_root, remove_image
from tests.engines.root import PREFIX, VERSION


def put_package(root: Path, name: str, text: str) -> None:
    """A Python package of one line, where the root's Python finds it."""
    for site in (root / PREFIX / "lib" / VERSION).glob("*-packages"):
        (site / name).mkdir(exist_ok=True)
        (site / name / "__init__.py").write_text(text)


@pytest.fixture(scope="session")
def nominal_root(tmp_path_factory: pytest.TempPathFactory, small_root: Path) -> Path:
    """``small_root`` with a torch and a torchvision that are nothing but a version."""
    root = tmp_path_factory.mktemp("nominal") / "root"
    shutil.copytree(small_root, root, symlinks=True)
    put_package(root, "torch", "__version__ = '2.6'\n")
    put_package(root, "torchvision", "__version__ = '0.21'\n")
    return root


@pytest.fixture(scope="session")
def nominal_image(nominal_root: Path) -> Iterator[str]:
    """A Docker image of it."""
    image = import_root(None, nominal_root, f"gpuwatch-test-nominal-{uuid.uuid4().hex[:8]}")
    yield image
    remove_image(None, image)


@pytest.fixture
def tag() -> Iterator[str]:
    """A name for an image of the test's own."""
    name = f"gpuwatch-test-built-{uuid.uuid4().hex[:8]}"
    yield name
    remove_image(None, name)


class Builder(Cli):
    """Builds as root of a user namespace, which has every capability in it."""

    def argv(self, *arguments: object) -> list[str]:
        command = super().argv(*arguments)
        return ["unshare", "--map-root-user", *command] if "build" in command else command


@pytest.fixture
def builder(cli: Cli) -> Cli:
    """The command line where root has every capability, as Apptainer's build wants it."""
    status = Path("/proc/self/status").read_text().splitlines()
    has = int(next(line.split()[1] for line in status if line.startswith("CapPrm")), 16)
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
    if os.geteuid() == 0 and has != (2 << last) - 1:
        return Builder(cli.home, cli.variables)
    return cli


@pytest.fixture(autouse=True)
def _programs(programs: None) -> None:
    """Every test of this folder starts programs."""
