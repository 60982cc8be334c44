"""Workloads that are not built in: a file, and a package with an entry point."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("torch")

from gpuwatch.core.models import Environment, LaunchSpec, Workload
from gpuwatch.runners.container_launch import command, mounts
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.workloads import names
from gpuwatch.workloads.failures import UsageFailure
from gpuwatch.workloads.tasks import foreign
from tests.conftest import Cli
from tests.reading import sessions
from tests.workloads.test_failures import Run
from tests.workloads.test_runs import the_guides

pytestmark = pytest.mark.torch


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(the_guides("# mine.py"))
    return path


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder of installed packages with one of somebody else's, of two modules."""
    site = tmp_path / "site"
    code = the_guides("# mine.py").replace("nn.Linear(16, 10)", "network()")
    folder = site / "foreign_models"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "mine.py").write_text(f"from .parts import network\n{code}")
    (folder / "parts.py").write_text(
        "from torch import nn\n\ndef network():\n    return nn.Linear(16, 10)\n"
    )
    info = site / "foreign_models-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: foreign-models\nVersion: 1.0\n")
    entry = "[gpuwatch.workloads]\nforeign-linear = foreign_models.mine:linear\n"
    (info / "entry_points.txt").write_text(entry)
    return site


def test_the_guide_needs_few_lines() -> None:
    assert len([line for line in the_guides("# mine.py").splitlines() if line]) <= 21


def test_a_file_is_a_workload_with_all_that_comes_with_one(cli: Cli, file: Path) -> None:
    out = file.parent / "out"
    cli(
        *("--record", "--quiet", "--out", out, f"{file.name}:linear", "--steps", 5),
        *("--profile", 0, "--device", "cpu"),
        folder=file.parent,
    )
    (path,) = sessions(out)
    with SessionReader(path) as reader:
        meta = reader.meta()
    assert meta["workload"]["name"] == meta["run"]["workload"] == "mine.py:linear"
    assert meta["end"]["steps"] == 5
    assert meta["count"]["flop_forward_per_sample"] == 2 * 16 * 10


def test_a_package_adds_a_workload_by_its_name(cli: Cli, package: Path) -> None:
    out = package.parent / "out"
    cli.variables["PYTHONPATH"] = f"{package}:{os.environ.get('PYTHONPATH', '')}"
    cli(
        *("--record", "--quiet", "--out", out, "foreign-linear", "--steps", 5),
        *("--profile", 0, "--device", "cpu"),
    )
    (path,) = sessions(out)
    with SessionReader(path) as reader:
        assert reader.meta()["workload"]["name"] == "foreign-linear"
        assert reader.meta()["end"]["steps"] == 5


def test_containers_see_the_file_or_its_package_at_its_own_path(file: Path, package: Path) -> None:
    for path, seen in ((file, file), (package / "foreign_models" / "mine.py", None)):
        place = f"{path}:linear"
        workload = Workload(names.short(place), "workload", program=names.program(place))
        spec = LaunchSpec(workload, Environment("docker", "docker"), None, "/", {})
        (mount,) = mounts(spec)
        assert mount.source == mount.target == str(seen or package / "foreign_models")
        assert not mount.writable
        assert command(spec, "/w.pyz")[-2:] == ("/w.pyz", place)


@pytest.mark.docker
@pytest.mark.apptainer
@pytest.mark.timeout(600)
def test_a_file_and_a_package_run_in_real_containers(
    cli: Cli, file: Path, package: Path, torch_root: Path, torch_image: str
) -> None:
    out = file.parent / "out"
    cli.variables["PYTHONPATH"] = f"{package}:{os.environ.get('PYTHONPATH', '')}"
    for name in (f"{file}:linear", "foreign-linear"):
        cli(
            *("--record", "--quiet", "--out", out, name, "--steps", 3, "--profile", 0),
            *("--env", f"docker={torch_image}", "--env", f"apptainer={torch_root}"),
            timeout=500,
        )
    losses, kinds = [], []
    for path in sessions(out):
        with SessionReader(path) as reader:
            meta = reader.meta()
            losses.append([value for row in reader.all_steps() for value in row.loss or ()])
        assert meta["end"]["steps"] == 3 and meta["result"]["code"] == 0
        assert meta["count"]["flop_forward_per_sample"] == 2 * 16 * 10
        kinds.append((meta["environment"]["kind"], meta["workload"]["name"]))
    assert sorted(kinds) == [
        *(("apptainer", "foreign-linear"), ("apptainer", "mine.py:linear")),
        *(("docker", "foreign-linear"), ("docker", "mine.py:linear")),
    ]
    assert len(losses[0]) > 3 and all(each == losses[0] for each in losses)


def test_what_is_no_workload_is_refused_with_a_fix(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no file"):
        names.check(str(tmp_path / "none.py:linear"))
    (tmp_path / "broken.py").write_text("import no_such_module")
    (tmp_path / "empty.py").touch()
    for name, word in (("broken.py:x", "no_such_module"), ("empty.py:y", "no workload 'y'")):
        with pytest.raises(UsageFailure, match=word):
            foreign.definition(f"{tmp_path}/{name}")


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        (("--image-size", 64), "mine.py:linear has no images"),
        (("--data", "nowhere"), "mine.py:linear makes its own data"),
        (("--data", "nowhere", "--download"), "cannot fetch data for mine.py:linear"),
    ],
)
def test_flags_that_a_workload_elsewhere_lacks_are_refused_in_its_run(
    fork_workload: Run, file: Path, flags: tuple[str, ...], word: str
) -> None:
    refused = fork_workload(f"{file}:linear", *flags)
    assert refused.code == 2 and word in refused.one("error")["message"]
    assert "Traceback" not in refused.stderr
