"""What a workload finds inside a container: its command, its mounts, its variables."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.core.models import Environment, LaunchSpec, Limits, Mount, Workload
from gpuwatch.runners import container_launch

OURS = Workload("mnist-cnn", "workload", ("--steps", "5"))
THEIRS = Workload("train.py", "command", ("python", "train.py", "a b"))


def spec(workload: Workload, folder: Path | str = "/project", **environment: object) -> LaunchSpec:
    return LaunchSpec(
        workload=workload,
        environment=replace(Environment("docker", "docker=x", "x"), **environment),
        archive=None,
        working_directory=str(folder),
        variables={},
    )


def with_data(folder: Path | str, **more: object) -> Workload:
    return Workload("mnist-cnn", "workload", (), {"data": str(folder), **more})


def codes(spec: LaunchSpec) -> list[str]:
    return [problem.code for problem in container_launch.problems(spec)]


def test_a_command_of_the_users_is_run_as_it_was_written() -> None:
    assert container_launch.command(spec(THEIRS), "/w.pyz") == ("python", "train.py", "a b")


def test_a_workload_of_ours_runs_with_the_python_that_was_named() -> None:
    command = container_launch.command(spec(OURS, python="/opt/py/bin/python"), "/w.pyz")
    assert command == ("/opt/py/bin/python", "/w.pyz", "mnist-cnn", "--steps", "5")


@pytest.mark.parametrize(
    ("there", "found"), [(("python3", "python"), "python3"), (("python",), "python")]
)
def test_without_a_name_the_images_own_python_is_found_by_its_shell(
    tmp_path: Path, there: tuple[str, ...], found: str
) -> None:
    for name in there:
        (tmp_path / name).write_text(f'#!/bin/sh\necho {name} "$@"\n')
        (tmp_path / name).chmod(0o755)
    command = container_launch.command(
        spec(replace(OURS, arguments=("--x", "$HOME; 'a b'"))), "/w.pyz"
    )
    done = subprocess.run(
        command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{found} /w.pyz mnist-cnn --x $HOME; 'a b'\n"


def test_an_image_without_python_says_python3_is_not_found(tmp_path: Path) -> None:
    done = subprocess.run(
        container_launch.command(spec(OURS), "/w.pyz"),
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 127 and "python3" in done.stderr


def test_a_commands_working_directory_is_mounted_read_only_at_its_own_path() -> None:
    assert container_launch.mounts(spec(THEIRS)) == (Mount("/project", "/project"),)
    assert container_launch.mounts(spec(OURS)) == ()


def test_the_data_of_our_workloads_is_mounted_read_only_at_its_own_path() -> None:
    assert container_launch.mounts(spec(with_data("/data"))) == (Mount("/data", "/data"),)


def test_what_env_mounts_comes_first_and_is_not_mounted_twice() -> None:
    named = (Mount("/elsewhere", "/in"), Mount("/project", "/project", True))
    assert container_launch.mounts(spec(THEIRS, "/project", mounts=named)) == named
    assert container_launch.mounts(spec(THEIRS, "/project/sub", mounts=named)) == named
    # A neighbour with the same beginning is another folder; so is one that appears elsewhere.
    assert container_launch.mounts(spec(THEIRS, "/projects", mounts=named))[-1] == Mount(
        "/projects", "/projects"
    )
    moved = (Mount("/project", "/code"),)
    assert container_launch.mounts(spec(THEIRS, "/project", mounts=moved))[-1] == Mount(
        "/project", "/project"
    )


def test_a_mount_of_everything_covers_everything() -> None:
    everything = (Mount("/", "/"),)
    assert container_launch.mounts(spec(THEIRS, "/project", mounts=everything)) == everything


def test_only_variables_that_decide_speed_and_the_locale_are_passed_on() -> None:
    passed = {
        "OMP_NUM_THREADS": "4",
        "OMP_PROC_BIND": "close",
        "GOMP_CPU_AFFINITY": "0 2-3",
        "KMP_AFFINITY": "compact",
        "NCCL_IB_PKEY": "1",
        "NCCL_NET_PLUGIN": "none",
        "TZ": "UTC",
        "LC_ALL": "C",
    }
    kept = {
        "PATH": "/bin",
        "HOME": "/root",
        "LD_PRELOAD": "/x.so",
        "LD_LIBRARY_PATH": "/x",
        "PYTHONPATH": "/x",
        "AWS_SECRET_ACCESS_KEY": "s",
        "WANDB_API_KEY": "s",
        "HF_TOKEN": "s",
        "MY_OMP_NUM_THREADS": "1",
        "OMP_TOOL_LIBRARIES": "/x.so",
        "OMP_NUM_THREADS_X": "1",
        "CUDA_VISIBLE_DEVICES": "0",
        "NCCL_debug": "x",
        "NCCL_PROXY_PASSWORD": "x",
        "NCCL_AUTH_TOKEN": "x",
        "NCCL_PLUGIN_API_KEY": "x",
        "NCCL_CONF_FILE": "nccl.conf",
        "NCCL_DEBUG_FILE": "nccl.log",
        "NCCL_PROFILE_DIR": "x",
        "NCCL_PATH": "x",
        "NCCL_TUNER_PLUGIN": "/opt/libtuner.so",
    }
    assert container_launch.variables({**passed, **kept}) == passed


def test_cuda_counts_gpus_inside_as_outside() -> None:
    every, chosen = spec(OURS), replace(spec(OURS), gpus=("GPU-b", "GPU-a"), gpus_chosen=True)
    assert container_launch.gpu_variables(every) == {"CUDA_VISIBLE_DEVICES": "-1"}
    assert container_launch.gpu_variables(chosen) == {"CUDA_VISIBLE_DEVICES": "GPU-b,GPU-a"}
    assert container_launch.gpu_variables(replace(chosen, gpus_chosen=False)) == {}
    assert container_launch.variables({"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}) != {}


def test_memory_beyond_the_callers_is_refused(tmp_path: Path) -> None:
    asked = replace(spec(OURS, tmp_path, memory_bytes=2 << 30), limits=Limits(memory_bytes=1 << 30))
    (problem,) = container_launch.problems(asked)
    assert (problem.code, problem.hint) == (
        "memory-beyond-limit",
        "write memory=1073741824 or less",
    )
    assert codes(replace(asked, limits=Limits(memory_bytes=2 << 30))) == codes(spec(OURS)) == []


def test_a_mount_that_is_not_there_is_named_with_what_mends_it(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    there = (Mount(str(tmp_path), "/in"), Mount(str(missing), "/other"))
    (problem,) = container_launch.problems(spec(OURS, tmp_path, mounts=there))
    assert problem.code == "mount-missing" and str(missing) in problem.text
    assert problem.hint is not None and "mount=" in problem.hint
    assert codes(spec(with_data(missing))) == ["mount-missing"]


def test_the_root_folder_as_working_directory_is_refused_for_commands_alone() -> None:
    assert codes(spec(THEIRS, "/")) == ["working-directory"]
    assert codes(spec(THEIRS, "/tmp/..")) == ["working-directory"]
    assert codes(spec(OURS, "/")) == []


def test_download_into_a_read_only_mount_names_the_command_that_fetches_before(
    tmp_path: Path,
) -> None:
    (problem,) = container_launch.problems(spec(with_data(tmp_path, download=True)))
    assert problem.code == "download-in-container"
    assert problem.hint is not None
    assert f"gpuwatch --record mnist-cnn --download --data {tmp_path}" in problem.hint


def test_a_spec_without_fault_has_no_problem(tmp_path: Path) -> None:
    assert codes(spec(THEIRS, tmp_path)) == []
    assert codes(spec(with_data(tmp_path), mounts=(Mount(str(tmp_path), "/in", True),))) == []
