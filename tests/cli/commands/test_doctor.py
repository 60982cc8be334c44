"""``gpuwatch doctor``: what can run here, what is missing, and the command that fixes it."""

from __future__ import annotations

import ast
import asyncio
import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.cli import main
from gpuwatch.cli.commands import doctor
from gpuwatch.cli.doctor import counters
from gpuwatch.tui import machine
from gpuwatch.tui.home import rows
from tests.conftest import Cli
from tests.engines.daemon import DockerDaemon, import_root
from tests.fake_nvml import DRIVER_NOT_LOADED, FakeDriver, uuid
from tests.runners.packages import installed
from tests.test_architecture import loaded

from ..test_errors import one_line


@pytest.fixture
def driver(driver: FakeDriver) -> FakeDriver:
    """Two GPUs, whatever this machine has."""
    driver.resize(2)
    return driver


@pytest.fixture
def without_torch(tmp_path: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "v"], check=True)
    return tmp_path / "v/bin/python"


def asked(cli: Cli, *arguments: object, code: int | None = None) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        cli("doctor", "--format", "json", *arguments, code=code).stdout
    )
    assert found["schema"] == 2
    return found


def row(found: dict[str, Any], kind: str) -> dict[str, Any]:
    (one,) = [each for each in found["environments"] if each["kind"] == kind]
    return dict(one)


@pytest.mark.torch
def test_every_runner_is_a_row_and_bare_decides(cli: Cli) -> None:
    found = asked(cli, code=0)
    kinds = [each["kind"] for each in found["environments"]]
    assert kinds[0] == "bare" and sorted(kinds) == ["apptainer", "bare", "charliecloud", "docker"]
    bare = row(found, "bare")
    assert bare["ready"] and bare["without_gpu"] == {"ready": True, "problems": []}
    assert bare["engine"].startswith("Linux")
    assert found["ready"] is True
    assert found["python"]["torch"] and found["python"]["version"]


def test_what_is_not_ready_says_why_and_what_mends_it(cli: Cli) -> None:
    for each in asked(cli)["environments"]:
        for answer in (each["without_gpu"], each["with_gpu"]):
            assert answer["ready"] is (None if answer.get("reason") else not answer["problems"])
            for problem in answer["problems"]:
                assert problem["code"] and problem["text"] and problem["hint"]


def test_the_table_fits_80_columns_and_needs_no_colour(cli: Cli) -> None:
    long = "docker=registry.example:5000/a/very/long/name/of/an/image@sha256:" + "0" * 64
    lines = cli("doctor", "--env", "bare", "--env", long, code=None).stdout.splitlines()
    assert lines[2].split() == ["environment", "engine", "without", "GPU", "with", "GPU"]
    assert "\x1b" not in "".join(lines)
    for line in lines:
        command = line.startswith(("    Fix: ", "next: "))  # stays whole to be copied
        assert len(line) <= 80 or command or len(line.split()) == 1, line
    assert lines[-1].startswith("next: ")


def test_nothing_is_written_and_nothing_heavy_is_loaded(cli: Cli) -> None:
    cli("doctor", code=None)
    assert list(cli.home.rglob("*")) == []
    assert not loaded("doctor", "--env", "bare") & {"torch", "textual", "numpy", "scipy", "docker"}


@pytest.mark.torch
def test_without_a_gpu_the_second_column_gives_the_reason_and_is_no_no(
    cli: Cli, driver: FakeDriver
) -> None:
    driver.init(DRIVER_NOT_LOADED)
    found = asked(cli, "--env", "bare", code=0)
    with_gpu = row(found, "bare")["with_gpu"]
    assert with_gpu["ready"] is None and "driver is not loaded" in with_gpu["reason"]
    assert found["gpus"] == [] and found["driver"] is None
    assert found["gpu_unavailable"]["code"] == "no-gpu" and found["gpu_unavailable"]["hint"]
    told = cli("doctor", "--env", "bare").stdout
    assert "  no GPU" in told and "modprobe nvidia" in told


STAND_IN = """
from pathlib import Path
from types import SimpleNamespace
Path(__file__).with_name("imported").touch()
__version__ = {version!r}
version = SimpleNamespace(cuda={cuda!r})
def init():
    if {refusal!r}:
        raise RuntimeError({refusal!r})
cuda = SimpleNamespace(init=init, get_arch_list=lambda: {architectures!r})
"""

VERSION = """
from typing import Optional
__version__ = {version!r}
debug = False
cuda: Optional[str] = {cuda!r}
hip: Optional[str] = None
"""
"""As torch's build writes it."""


def with_torch(
    python: Path,
    version: str = "2.15.0",
    cuda: str | None = "13.2",
    architectures: tuple[str, ...] = ("sm_75", "sm_80", "sm_90", "sm_120"),
    refusal: str | None = None,
) -> tuple[str, str]:
    """Give an interpreter a torch that answers as one on a GPU does; its ``--env``."""
    (packages,) = python.parents[1].glob("lib/python*/site-packages")
    text = STAND_IN.format(version=version, cuda=cuda, architectures=architectures, refusal=refusal)
    for name in ("torch", "torchvision"):
        (packages / name).mkdir(exist_ok=True)
        (packages / name / "__init__.py").write_text(text)
        (packages / name / "version.py").write_text(VERSION.format(version=version, cuda=cuda))
        info = packages / f"{name}-1.dist-info"
        info.mkdir(exist_ok=True)
        meta = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (info / "METADATA").write_text(meta)
    return "--env", f"bare,python={python}"


def imported(python: Path) -> bool:
    """Whether anybody imported the torch that :func:`with_torch` made."""
    return any(python.parents[1].glob("lib/python*/site-packages/torch/imported"))


def test_a_quick_look_imports_no_torch_and_claims_nothing_that_needs_it(
    cli: Cli, driver: FakeDriver, without_torch: Path
) -> None:
    driver.set_machine(driver="580.65.06")
    driver.set(gpu=1, compute_capability="7.0", name="Tesla V100-SXM2-16GB")
    bare = with_torch(without_torch, refusal="the driver is asleep")
    found = asked(cli, *bare, "--quick", code=0)
    python = found["python"]
    assert (python["torch"], python["torch_build"]) == ("2.15.0", "CUDA 13.2")
    assert python["torch_tried"] is False and [gpu["torch"] for gpu in found["gpus"]] == [None] * 2
    with_gpu = row(found, "bare")["with_gpu"]
    assert with_gpu["ready"] is None and "not tried" in with_gpu["reason"]
    told = cli("doctor", *bare, "--quick").stdout
    assert "not tried" in told and "torch 2.15.0 (CUDA 13.2 build)" in " ".join(told.split())
    assert not imported(without_torch)
    assert asked(cli, *bare, code=3)["python"]["torch_tried"] is True
    assert imported(without_torch)


@pytest.mark.parametrize(
    ("cuda", "code"), [(None, "torch-without-cuda"), ("13.2", "driver-too-old")]
)
def test_a_quick_look_tells_what_torchs_files_tell(
    cli: Cli, driver: FakeDriver, without_torch: Path, cuda: str | None, code: str
) -> None:
    found = asked(cli, *with_torch(without_torch, cuda=cuda), "--quick", code=3)
    assert [gpu["torch"]["code"] for gpu in found["gpus"]] == [code] * 2
    assert row(found, "bare")["with_gpu"]["ready"] is False
    assert not imported(without_torch)


@pytest.mark.parametrize(("cuda", "code"), [(None, "CPU alone"), ("13.2", "needs driver 580")])
def test_a_run_on_a_gpu_that_its_torch_cannot_use_is_refused_before_it_starts(
    cli: Cli, driver: FakeDriver, without_torch: Path, tmp_path: Path, cuda: str | None, code: str
) -> None:
    bare = with_torch(without_torch, cuda=cuda)
    known = asked(cli, *bare, "--quick", code=3)["gpus"][0]["torch"]
    out = tmp_path / "out"
    told = cli("--record", "--out", out, *bare, "mnist-cnn", code=3).stderr
    assert code in told and known["text"] in told and known["hint"] in told
    assert "--device cpu" in known["hint"]
    assert not out.exists() and not imported(without_torch)


@pytest.mark.parametrize("text", ["", "cuda = 'never ends", "__version__ = '2'\nhip = '6.2'\n"])
def test_of_a_torch_whose_files_do_not_tell_the_build_none_is_told(
    cli: Cli, driver: FakeDriver, without_torch: Path, text: str
) -> None:
    bare = with_torch(without_torch)
    (version,) = without_torch.parents[1].glob("lib/python*/site-packages/torch/version.py")
    version.write_text(text)
    found = asked(cli, *bare, "--quick", code=0)
    assert found["python"]["torch"] == "2.15.0" and found["python"]["torch_build"] is None
    assert [gpu["torch"] for gpu in found["gpus"]] == [None, None]


def test_a_torch_that_cannot_be_imported_is_no_torch_that_can_use_the_gpu(
    cli: Cli, driver: FakeDriver, without_torch: Path
) -> None:
    bare = with_torch(without_torch)
    (module,) = without_torch.parents[1].glob("lib/python*/site-packages/torch/__init__.py")
    module.write_text("raise ImportError('libcudart.so.13: cannot open shared object file')")
    found = asked(cli, *bare, code=3)
    problem = found["gpus"][0]["torch"]
    assert problem["code"] == "torch-fails" and "cannot be imported" in problem["text"]
    assert str(without_torch) in problem["hint"]


def test_neither_the_home_screen_nor_the_form_for_a_run_imports_torch(
    cli: Cli, driver: FakeDriver, without_torch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.set_machine(driver="580.65.06")
    with_torch(without_torch)
    for name, value in (cli.env | {"VIRTUAL_ENV": str(without_torch.parents[1])}).items():
        monkeypatch.setenv(name, value)
    found = {each.name: each for each in asyncio.run(rows.look())}
    assert len(asyncio.run(machine.ask_doctor("--format", "json")).gpus) == 2
    assert not imported(without_torch)
    assert found["torch"].good and found["bare"].good
    assert found["torch"].text == f"2.15.0 (CUDA 13.2 build), not tried, in {without_torch}"
    driver.set_machine(driver="575.57.08")
    torch = {each.name: each for each in asyncio.run(rows.look())}["torch"]
    assert not torch.good and "needs driver 580" in torch.text and torch.hint


def test_gpus_are_named_and_asked_for(cli: Cli, driver: FakeDriver, without_torch: Path) -> None:
    bare = with_torch(without_torch)
    found = asked(cli, *bare, code=3)
    assert [gpu["uuid"] for gpu in found["gpus"]] == [uuid(0), uuid(1)]
    assert found["gpus"][0]["name"] == "NVIDIA H100 80GB HBM3"
    assert found["gpus"][0]["memory_bytes"] == pytest.approx(85520809984)
    assert found["driver"] == "575.57.08" and found["gpu_unavailable"] is None
    assert found["gpus"][0]["capability"] == "9.0" and found["gpus"][0]["torch"] is not None
    driver.set_machine(driver="580.65.06")
    found = asked(cli, *bare, code=0)
    with_gpu = row(found, "bare")["with_gpu"]
    assert with_gpu == {"ready": True, "problems": [], "reason": None}
    assert [gpu["torch"] for gpu in found["gpus"]] == [None, None]
    told = cli("doctor", *bare).stdout
    assert "NVIDIA H100 80GB HBM3" in told and "driver 580.65.06" in told


def test_only_the_gpus_that_are_named_are_asked_for(
    cli: Cli, driver: FakeDriver, without_torch: Path
) -> None:
    bare = with_torch(without_torch, cuda="12.6")
    chosen = asked(cli, *bare, "--gpus", "1", code=0)
    assert [gpu["uuid"] for gpu in chosen["gpus"]] == [uuid(1)]
    none = asked(cli, *bare, "--gpus", "none", code=0)
    assert row(none, "bare")["with_gpu"]["ready"] is None
    assert none["gpu_unavailable"]["code"] == "gpus-none"
    told = cli("doctor", *bare, "--gpus", "none").stdout
    next_ = f"next: gpuwatch run mnist-cnn {shlex.join(bare)} --gpus none\n"
    assert "not asked" in told and told.endswith(next_)


def test_gpus_that_are_not_there_are_an_error(cli: Cli, driver: FakeDriver) -> None:
    assert "'7' matches no GPU" in one_line(cli("doctor", "--gpus", "7", code=3).stderr)


GPU_SHY = """
from gpuwatch.core.models import Problem

class Runner:
    kind = "shy"
    contained = False

    def engine(self):
        print("I am no answer of gpuwatch's")
        return "Shy 1.0"

    def preflight(self, spec):
        assert spec.workload.kind == "workload" and spec.archive is None
        return [Problem("shy", f"{gpu} frightens it", "shy --grow-up") for gpu in spec.gpus]
"""


def test_a_run_that_works_without_gpus_alone_is_told_apart(
    cli: Cli, driver: FakeDriver, tmp_path: Path
) -> None:
    cli.variables["PYTHONPATH"] = str(installed(tmp_path / "site", "shy", "gw_shy:Runner", GPU_SHY))
    found = asked(cli, "--env", "shy", code=3)
    shy = row(found, "shy")
    assert shy["engine"] == "Shy 1.0" and shy["without_gpu"]["ready"] is True
    assert shy["with_gpu"]["ready"] is False and shy["ready"] is False
    assert uuid(0) in shy["with_gpu"]["problems"][0]["text"]
    done = cli("doctor", "--env", "shy", code=3)
    assert "Fix: shy --grow-up" in done.stdout
    assert done.stdout.endswith("next: gpuwatch run mnist-cnn --env shy --gpus none\n")
    assert asked(cli, "--env", "shy", "--gpus", "none", code=0)["ready"] is True


def test_an_engine_that_is_away_names_the_command_that_mends_it(cli: Cli) -> None:
    cli.variables["DOCKER_HOST"] = "unix:///no/such/docker.sock"
    found = asked(cli, "--env", "docker=x", code=3)
    docker = row(found, "docker")
    assert found["ready"] is False and docker["engine"] is None
    assert [problem["code"] for problem in docker["without_gpu"]["problems"]] == ["docker-absent"]
    done = cli("doctor", "--env", "docker=x", code=3)
    assert "  no answer  " in done.stdout and "not here" not in done.stdout
    assert "    Fix: " in done.stdout
    hint = docker["without_gpu"]["problems"][0]["hint"]
    assert done.stdout.endswith(f"next: {hint}\n")


@pytest.mark.docker
def test_an_engine_that_answers_is_named_although_an_image_is_missing(cli: Cli) -> None:
    docker = row(asked(cli, "--env", "docker=gpuwatch-no-such-image:1", code=3), "docker")
    assert docker["engine"].startswith("Docker ")
    (problem,) = docker["without_gpu"]["problems"]
    assert problem["code"] == "image-missing"
    assert "docker pull gpuwatch-no-such-image:1" in problem["hint"]
    assert (
        "  no image  " in cli("doctor", "--env", "docker=gpuwatch-no-such-image:1", code=3).stdout
    )


@pytest.mark.docker
def test_an_image_that_is_here_is_ready(cli: Cli, small_image: str) -> None:
    found = asked(cli, "--env", f"docker={small_image}", "--gpus", "none", code=0)
    assert found["ready"] and row(found, "docker")["image"] == small_image
    told = cli("doctor", "--env", f"docker={small_image}", "--gpus", "none").stdout
    assert "  image is here  " in told and "were not checked" in told
    last = told.splitlines()[-1]
    assert last.startswith(f"next: gpuwatch --record --env docker={small_image} ")
    assert last.endswith(" -- python3 -c 'import torch, torchvision'")


@pytest.mark.docker
@pytest.mark.apptainer
def test_apptainers_image_is_made_of_dockers_where_that_is(
    cli: Cli, docker_daemon: DockerDaemon, small_root: Path
) -> None:
    def hint() -> str:
        apptainer = row(asked(cli, "--gpus", "none"), "apptainer")
        (problem,) = apptainer["without_gpu"]["problems"]
        assert problem["code"] == "image-missing"
        return str(problem["hint"])

    cli.variables["DOCKER_HOST"] = docker_daemon.host
    docker = row(asked(cli, "--gpus", "none"), "docker")
    assert "gpuwatch build docker --pull" in docker["without_gpu"]["problems"][0]["hint"]
    assert hint().startswith("gpuwatch build apptainer --pull, or ")
    import_root(docker_daemon.host, small_root, "gpuwatch-workloads")
    assert hint().startswith("gpuwatch build apptainer --base docker-daemon:gpuwatch-workloads")


@pytest.mark.docker
@pytest.mark.apptainer
@pytest.mark.charliecloud
@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="this machine has a GPU of its own")
def test_engines_that_cannot_give_gpus_are_ready_without_them_alone(
    cli: Cli, driver: FakeDriver, small_image: str, small_root: Path
) -> None:
    named = (f"docker={small_image}", f"apptainer={small_root}", f"charliecloud={small_root}")
    found = asked(cli, *(part for text in named for part in ("--env", text)), code=3)
    codes = {
        each["kind"]: [problem["code"] for problem in each["with_gpu"]["problems"]]
        for each in found["environments"]
    }
    assert codes == {
        "docker": ["gpu-runtime-missing"],
        "apptainer": ["gpu-driver-missing"],
        "charliecloud": ["gpu-driver-missing"],
    }
    assert all(each["without_gpu"]["ready"] for each in found["environments"])


def test_a_python_without_torch_is_told_and_is_the_next_thing_to_mend(
    cli: Cli, without_torch: Path
) -> None:
    found = asked(cli, "--env", f"bare,python={without_torch}", code=3)
    assert found["python"]["path"] == str(without_torch) and found["python"]["torch"] is None
    done = cli("doctor", "--env", f"bare,python={without_torch}", code=3)
    assert "no torch" in done.stdout
    assert f"next: {without_torch} -m pip install torch torchvision" in done.stdout


@pytest.mark.parametrize(
    ("gpu", "torch", "code", "told", "hint"),
    [
        ({}, {"version": "2.9.0+cpu", "cuda": None}, "torch-without-cuda", "CPU alone", "default"),
        (
            {"compute_capability": "7.0", "name": "Tesla V100-SXM2-16GB"},
            {},
            "torch-without-architecture",
            "no code for compute capability 7.0",
            "torch before 2.15, built for CUDA 12.6",
        ),
        ({"driver": "535.54.03"}, {}, "driver-too-old", "needs driver 580", "580 or later, or"),
        (
            {"compute_capability": "12.0"},
            {"version": "2.6.0", "cuda": "12.4", "architectures": ("sm_80", "sm_90")},
            "torch-without-architecture",
            "compute capability 12.0",
            "CUDA 12.8 or later",
        ),
        ({}, {"refusal": "Unexpected error\nmore"}, "cuda-refused", "Unexpected error", "smi"),
    ],
)
def test_a_torch_that_cannot_use_the_gpu_is_told_and_the_build_that_can(
    cli: Cli,
    driver: FakeDriver,
    without_torch: Path,
    gpu: dict[str, str],
    torch: dict[str, Any],
    code: str,
    told: str,
    hint: str,
) -> None:
    driver.set_machine(driver=gpu.pop("driver", "580.65.06"))
    driver.set(gpu=1, **gpu)
    bare = with_torch(without_torch, **torch)
    problem = asked(cli, *bare, code=3)["gpus"][1]["torch"]
    assert problem["code"] == code and told in problem["text"] and "more" not in problem["text"]
    assert hint in problem["hint"]
    assert "with GPU" in cli("doctor", *bare, code=3).stdout
    assert cli("doctor", *bare, "--gpus", "none", code=0).stdout.endswith("--gpus none\n")


def test_a_command_of_ones_own_is_not_held_to_the_torch_of_workloads(
    cli: Cli, driver: FakeDriver, without_torch: Path
) -> None:
    bare = with_torch(without_torch, version="2.9.0+cpu", cuda=None)
    found = asked(cli, *bare, "--", "true", code=0)
    assert row(found, "bare")["with_gpu"]["ready"] is True
    assert [gpu["torch"] for gpu in found["gpus"]] == [None, None], "torch is not even asked"


def test_what_measures_bandwidth_is_told_and_what_would(
    cli: Cli, driver: FakeDriver, without_torch: Path
) -> None:
    driver.set_machine(driver="580.65.06")
    told = cli("doctor", *with_torch(without_torch)).stdout
    assert "GPU: gpu0, gpu1: 2 x NVIDIA " in told and told.count("capability 9.0") == 1
    driver.set(gpu=1, compute_capability="8.0", name="NVIDIA A100-SXM4-40GB")
    gpu = asked(cli, *with_torch(without_torch), code=0)["gpus"][1]
    assert gpu["bandwidth_by"] is None and gpu["bandwidth"]["code"] == "no-counters"
    assert "--dcgm" in gpu["bandwidth"]["hint"]
    told = " ".join(cli("doctor", *with_torch(without_torch)).stdout.split())
    assert "memory bandwidth of gpu1: not measured: " in told


@pytest.mark.parametrize(
    ("gpu", "version", "hint", "never"),
    [
        (
            {"compute_capability": "8.9", "name": "NVIDIA GeForce RTX 4090"},
            "580.65.06",
            "none on this GPU",
            "dcgm",
        ),
        (
            {"compute_capability": "13.7", "name": "NVIDIA Z999"},
            "580.65.06",
            "none on this GPU",
            "525",
        ),
        ({}, "515.65.01", "update the driver to 525 or later", "dcgm"),
    ],
)
def test_the_mend_for_no_counters_is_one_that_works_and_is_not_fulfilled(
    cli: Cli, driver: FakeDriver, gpu: dict[str, str], version: str, hint: str, never: str
) -> None:
    driver.set_machine(driver=version)
    driver.set(gpm=0, **gpu)
    told = asked(cli)["gpus"][0]["bandwidth"]
    assert hint in told["hint"] and never not in told["hint"]
    assert f"run --{never}" not in told["text"]


def test_ncu_and_the_right_to_use_it_decide_about_executed_flop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parameters = tmp_path / "params"
    monkeypatch.setenv("PATH", str(tmp_path))
    missing = counters.executed_flop(parameters)
    assert missing is not None and missing.code == "ncu-missing"
    ncu = tmp_path / "ncu"
    ncu.write_text("#!/bin/sh\n")
    ncu.chmod(0o755)
    assert counters.executed_flop(parameters) is None
    parameters.write_text("EnableMSI: 1\nRmProfilingAdminOnly: 1\n")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    denied = counters.executed_flop(parameters)
    assert denied is not None and denied.code == "counters-restricted"
    assert "NVreg_RestrictProfilingToAdminUsers=0" in (denied.hint or "")
    parameters.write_text("RmProfilingAdminOnly: 0\n")
    assert counters.executed_flop(parameters) is None


def test_a_folder_that_cannot_be_written_is_told(cli: Cli) -> None:
    cli.variables["XDG_DATA_HOME"] = "/proc/1"
    found = asked(cli)
    assert found["studies"]["problem"]["code"] == "not-writable"
    assert "XDG_DATA_HOME" in found["studies"]["problem"]["hint"]
    assert found["runs"]["problem"] is None and found["runs"]["free_bytes"] > 0
    assert "/proc/1 is not writable" in " ".join(cli("doctor", code=None).stdout.split())


def test_an_unknown_environment_is_a_wrong_command_line(cli: Cli) -> None:
    assert "choose from" in one_line(cli("doctor", "--env", "podman", code=2).stderr)


def codes(path: Path) -> Iterator[str]:
    """The codes of the problems that a module makes; those put together while it runs left out."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            first = node.args[0]
            if node.func.id == "Problem" and isinstance(first, ast.Constant):
                yield str(first.value)


def test_every_code_of_a_problem_is_documented() -> None:
    root = Path(__file__).parents[3]
    documented = (root / "docs/environments.md").read_text() + (root / "docs/json.md").read_text()
    places = [*(root / "runners").rglob("*.py"), *(root / "src/gpuwatch/cli").rglob("doctor*/*.py")]
    places += [
        root / "src/gpuwatch/cli/commands/doctor.py",
        root / "src/gpuwatch/recorder/torch_builds.py",
    ]
    made = {code for path in places for code in codes(path)}
    assert len(made) > 20
    assert [code for code in sorted(made) if f"`{code}`" not in documented] == []


HANGS = """
import threading

class Runner:
    kind = "hangs"
    contained = False

    def engine(self):
        threading.Event().wait()
"""


def test_a_runner_that_hangs_is_a_row_and_holds_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(installed(tmp_path, "hangs", "gw_hangs:Runner", HANGS)))
    monkeypatch.setattr(doctor, "PATIENCE_SECONDS", 3.0)
    both = ("--env", "hangs", "--env", "bare")
    assert main(["doctor", "--format", "json", *both, "--", "true"]) == 3
    found = json.loads(capsys.readouterr().out)
    (problem,) = row(found, "hangs")["without_gpu"]["problems"]
    assert problem["code"] == "no-answer" and "3 s" in problem["text"]
    assert row(found, "bare")["engine"]


def test_images_that_are_here_are_asked_on_demand(cli: Cli) -> None:
    (cli.home / "mine.sif").write_bytes(b"no image")
    (cli.home / "a,b.sif").touch()
    for name in ("root/bin", "root/etc", "empty/etc"):
        (cli.home / name).mkdir(parents=True)
    (cli.home / "root/bin/sh").touch()
    named = [each["env"] for each in asked(cli, "--images")["environments"] if each["image"]]
    assert {"apptainer=mine.sif", "charliecloud=root"} <= set(named)
    assert not [text for text in named if "," in text or "empty" in text]
    assert not [each for each in asked(cli)["environments"] if each["image"]]


def test_a_command_is_asked_for_in_place_of_a_workload(cli: Cli, without_torch: Path) -> None:
    flags = ("--env", f"bare,python={without_torch}")
    assert not asked(cli, *flags, code=3)["ready"]
    assert asked(cli, "--env", "bare", "--", "true", code=0)["ready"]
    found = row(asked(cli, "--env", "bare", "--", "no-such", code=3), "bare")
    (problem,) = found["without_gpu"]["problems"]
    assert "no-such" in problem["text"] and problem["hint"]
