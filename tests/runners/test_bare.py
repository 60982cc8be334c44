"""The interpreter of a bare run: whatever environment it is in, activated or not. Real ones."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from gpuwatch.core.models import Environment, LaunchSpec, Workload
from gpuwatch.runners.bare import BareRunner
from gpuwatch.runners.interpreter import activation, probe
from tests.conftest import Cli

from .recorded import finish

TELLS = """
import os, shutil, sys
print(sys.prefix)
print(os.environ.get("VIRTUAL_ENV"), os.environ.get("CONDA_PREFIX"))
print(shutil.which("own-tool"))
"""


def pretend_torch(packages: Path) -> None:
    packages.mkdir(parents=True, exist_ok=True)
    for name in ("torch", "torchvision"):
        (packages / f"{name}.py").touch()


def own_tool(prefix: Path) -> Path:
    tool = prefix / "bin" / "own-tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    return tool


@pytest.fixture
def virtual(tmp_path: Path) -> Path:
    """A venv with what passes for torch."""
    prefix = tmp_path / "a venv"
    venv.create(prefix, symlinks=True, with_pip=False)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    pretend_torch(prefix / "lib" / version / "site-packages")
    own_tool(prefix)
    return prefix


@pytest.fixture
def conda(tmp_path: Path) -> Path:
    """A folder as conda lays an environment out: an interpreter of its own below the prefix."""
    prefix = tmp_path / "miniconda" / "envs" / "train"
    stdlib = Path(sysconfig.get_path("stdlib"))
    for name in ("bin", "conda-meta", "lib"):
        (prefix / name).mkdir(parents=True)
    (prefix / "conda-meta/history").touch()
    inner = prefix / "lib" / stdlib.name
    inner.mkdir()
    for entry in stdlib.iterdir():
        if entry.name not in ("site-packages", "dist-packages"):
            (inner / entry.name).symlink_to(entry)
    pretend_torch(inner / "site-packages")
    for library in Path(sysconfig.get_config_var("LIBDIR")).glob("libpython3*.so*"):
        (prefix / "lib" / library.name).symlink_to(library)
    # Copied: an interpreter that is a link looks for its library where the link leads.
    program = prefix / "bin" / "python"
    program.write_bytes(Path(os.path.realpath(sys.executable)).read_bytes())
    program.chmod(0o755)
    own_tool(prefix)
    return prefix


def told(tmp_path: Path, python: Path, **variables: str) -> list[str]:
    """What a workload that runs with ``--python`` finds."""
    script = tmp_path / "tells.py"
    script.write_text(TELLS)
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONHOME", "PYTHONPATH")
    }
    spec = LaunchSpec(
        Workload("tells", "workload"),
        Environment("bare", "bare", python=str(python)),
        str(script),
        str(tmp_path),
        {**kept, **variables},
    )
    runner = BareRunner()
    assert runner.preflight(spec) == []
    prepared = runner.prepare(spec, lambda line: None)
    (tmp_path / "run").mkdir()
    ended = finish(runner.start(spec, prepared, tmp_path / "run"))
    assert ended.result.code == 0, ended.err
    return ended.lines


@pytest.mark.parametrize("named", ["bin/python", "."])
def test_a_venv_works_by_its_interpreter_and_by_its_folder(
    tmp_path: Path, virtual: Path, named: str
) -> None:
    assert told(tmp_path, virtual / named) == [
        str(virtual),
        f"{virtual} None",
        str(virtual / "bin/own-tool"),
    ]


@pytest.mark.parametrize("named", ["bin/python", "."])
def test_a_conda_environment_works_without_being_activated(
    tmp_path: Path, conda: Path, named: str
) -> None:
    done = subprocess.run([conda / "bin/python", "-c", ""], capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"this Python cannot be copied: {done.stderr.decode().strip()}")
    assert told(tmp_path, conda / named) == [
        str(conda),
        f"None {conda}",
        str(conda / "bin/own-tool"),
    ]


def test_an_environment_that_is_active_already_is_left_as_it_is(
    tmp_path: Path, virtual: Path
) -> None:
    path = f"{virtual}/bin:/usr/bin:/bin"
    assert "PATH" not in activation(str(virtual / "bin/python"), {"PATH": path})
    assert activation("/usr/bin/python3", {"PATH": path}) == {}


def test_a_venv_in_front_of_another_environment_wins(tmp_path: Path, virtual: Path) -> None:
    lines = told(
        tmp_path, virtual / "bin/python", VIRTUAL_ENV="/elsewhere", PATH="/elsewhere/bin:/usr/bin"
    )
    assert lines[1:] == [f"{virtual} None", str(virtual / "bin/own-tool")]


def test_in_a_pod_its_image_is_told(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    venv.create(empty, symlinks=True, with_pip=False)
    environment = Environment("bare", "bare", python=str(empty))
    workload = Workload("mnist-cnn", "workload")
    variables = {"GPUWATCH_POD_IMAGE": "my/image:1"}
    spec = LaunchSpec(workload, environment, None, str(tmp_path), variables)
    (problem,) = BareRunner().preflight(spec)
    assert problem.text == "the image my/image:1 has no torch torchvision"
    assert problem.hint == "name another: --on kubernetes,image=IMAGE"


def test_an_interpreter_without_torch_is_told_with_the_mend(cli: Cli, tmp_path: Path) -> None:
    bare = tmp_path / "empty"
    venv.create(bare, symlinks=True, with_pip=False)
    assert probe(str(bare / "bin/python")) == ("torch", "torchvision")
    done = cli("--record", "--python", bare, "mnist-cnn", code=3)
    assert f"{bare}/bin/python -m pip install torch" in done.stderr
