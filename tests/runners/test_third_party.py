"""Runners of other packages: the example of CONTRIBUTING.md, and packages that are broken."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gpuwatch import runners
from gpuwatch.core.errors import NotAvailable
from gpuwatch.core.models import Environment, LaunchSpec, Workload
from gpuwatch.session.reading.reader import SessionReader
from tests.cli.test_errors import one_line
from tests.conftest import HAS_TORCH, Cli
from tests.reading import log, sessions, show

from .packages import installed

CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"


def example(language: str) -> str:
    """The block of this language in the section on runners."""
    _, _, section = CONTRIBUTING.read_text().partition("\n## Add a runner\n")
    found = re.search(rf"```{language}\n(.*?)```", section.partition("\n## ")[0], re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def nice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which pip built and installed the example."""
    source = tmp_path_factory.mktemp("gpuwatch-nice")
    (source / "gpuwatch_nice.py").write_text(example("python"))
    (source / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
        '[project]\nname = "gpuwatch-nice"\nversion = "1.0"\n'
        f"{example('toml')}\n"
        '[tool.setuptools]\npy-modules = ["gpuwatch_nice"]\n'
    )
    target = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    offline = ["--no-index", "--no-deps", "--no-build-isolation"]
    done = subprocess.run(
        [*pip, *offline, "--target", str(target), str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return target


def test_the_example_of_contributing_runs_a_workload(cli: Cli, tmp_path: Path, nice: Path) -> None:
    cli.variables["PYTHONPATH"] = str(nice)
    cli("--record", "--quiet", "--env", "nice", "--out", tmp_path, "--", "sh", "-c", "nice")
    (path,) = sessions(tmp_path)
    assert log(path) == [str(min(19, os.nice(0) + 10))]
    environment = show(cli, path)["environment"]
    assert environment["kind"] == "nice" and environment["nice"] == 10
    assert environment["engine"] == "nice"


def test_the_example_stands_beside_the_others(cli: Cli, tmp_path: Path, nice: Path) -> None:
    cli.variables["PYTHONPATH"] = str(nice)
    done = cli(
        "--record", "--env", "bare", "--env", "nice", "--out", tmp_path, "--", "sh", "-c", "nice"
    )
    assert "bare" in done.stdout and "nice" in done.stdout
    asked = json.loads(cli("doctor", "--env", "nice", "--format", "json").stdout)
    assert [(each["kind"], each["ready"]) for each in asked["environments"]] == [("nice", True)]


@pytest.mark.usefixtures("programs")
def test_the_example_keeps_to_the_protocol(tmp_path: Path) -> None:
    """A type checker compares it with ``Runner``, member by member."""
    (tmp_path / "gpuwatch_nice.py").write_text(
        f"{example('python')}\n\n"
        "from gpuwatch.runners.base import Runner\n\nrunner: Runner = NiceRunner()\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "gpuwatch_nice.py"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(CONTRIBUTING.parent / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


BROKEN = {
    "cannot be imported": None,
    "fails at its import": "raise RuntimeError('too old a driver\\nand more')",
    "ends the interpreter at its import": "raise SystemExit(3)",
    "has no such class": "class Other: ...",
    "is no class that can be made": "class Runner:\n    def __init__(self, x): ...",
}


@pytest.mark.parametrize("module", BROKEN.values(), ids=BROKEN)
def test_a_broken_package_is_told_of_by_name_and_breaks_nothing_else(
    cli: Cli, tmp_path: Path, module: str | None
) -> None:
    cli.variables["PYTHONPATH"] = str(
        installed(tmp_path / "site", "broken", "gw_broken:Runner", module)
    )
    out = tmp_path / "out"
    cli("--help")
    cli("--record", "--quiet", "--out", out, "--", "true")
    told = one_line(cli("--record", "--env", "broken", "--", "true", code=3).stderr)
    assert "'broken' cannot be loaded" in told and "pip uninstall gw_broken" in told
    # Without torch even bare cannot run gpuwatch's own workloads.
    found = json.loads(cli("doctor", "--format", "json", code=0 if HAS_TORCH else 3).stdout)
    rows = {each["kind"]: each for each in found["environments"]}
    assert rows["bare"]["engine"] and rows["broken"]["engine"] is None
    (problem,) = rows["broken"]["without_gpu"]["problems"]
    assert problem["code"] == "runner-broken"


RAISES = """
class Runner:
    kind = "raises"
    contained = False

    def engine(self):
        raise KeyError("engine")

    def preflight(self, spec):
        {preflight}

    def prepare(self, spec, say):
        {prepare}

    def start(self, spec, prepared, folder):
        raise AttributeError("start")
"""


@pytest.mark.parametrize(
    ("preflight", "prepare"),
    [
        ("raise ValueError('in preflight')", "pass"),
        ("raise SystemExit(1)", "pass"),
        ("return None", "pass"),
        ("return []", "raise ZeroDivisionError"),
        ("return []", "from gpuwatch.core.models import Prepared; return Prepared(('true',))"),
    ],
    ids=["preflight", "exit in preflight", "nothing from preflight", "prepare", "start and engine"],
)
def test_a_runner_that_raises_costs_its_own_run_alone(
    cli: Cli, tmp_path: Path, preflight: str, prepare: str
) -> None:
    module = RAISES.format(preflight=preflight, prepare=prepare)
    cli.variables["PYTHONPATH"] = str(
        installed(tmp_path / "site", "raises", "gw_raises:Runner", module)
    )
    out = tmp_path / "out"
    done = cli(
        "--record", "--env", "raises", "--env", "bare", "--out", out, "--", "true", code=3
    )  # fmt: skip
    assert "raises: the runner of 'raises' failed: " in done.stderr
    good = [path for path in sessions(out) if show(cli, path)["session"]["status"] == "finished"]
    assert [path.name for path in good] == ["02-bare.gpuwatch"]
    for path in sessions(out):
        with SessionReader(path) as reader:
            assert reader.notice is None and "closed" in reader.meta()


def test_another_package_cannot_take_over_a_kind_of_gpuwatchs_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(
        str(installed(tmp_path, "bare", "gw_taker:Runner", "raise SystemExit(1)"))
    )
    assert type(runners.load("bare")).__module__ == "gpuwatch.runners.bare"


def test_what_cannot_be_loaded_is_a_problem_of_its_spec(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(installed(tmp_path, "broken", "gw_gone:Runner")))
    with pytest.raises(NotAvailable, match="gw_gone:Runner of the package gw_gone"):
        runners.load("broken")
    environment = Environment("broken", "broken")
    spec = LaunchSpec(Workload("true", "command", ("true",)), environment, None, "/", {})
    assert [problem.code for problem in runners.check(spec)] == ["runner-broken"]


def test_an_alias_is_accepted_and_listed_once() -> None:
    assert {"apptainer", "singularity"} <= set(runners.kinds())
    assert "singularity" not in runners.kinds(aliases=False)
    assert "apptainer" in runners.kinds(aliases=False)
