from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from gpuwatch.workloads import device as devices
from gpuwatch.workloads.architectures import build_for, runs_on
from gpuwatch.workloads.data.batches import Batches
from gpuwatch.workloads.data.synthetic import Repeated
from gpuwatch.workloads.device import choose, full_uuid, unusable
from gpuwatch.workloads.failures import EnvironmentFailure, UsageFailure, missing, translate
from gpuwatch.workloads.nvidia import Driver, find_driver
from gpuwatch.workloads.ranks import Rank
from gpuwatch.workloads.task import Data

pytestmark = pytest.mark.torch

DRIVER = Driver(2, "470.57", "Tesla K80", (3, 7))


@pytest.fixture
def no_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.mark.usefixtures("no_cuda")
def test_without_a_gpu_the_cpu_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "find_driver", lambda: None)
    assert choose("auto", "float32").type == "cpu"
    with pytest.raises(EnvironmentFailure, match="--device cuda needs an NVIDIA GPU"):
        choose("cuda", "float32")


@pytest.mark.usefixtures("no_cuda")
def test_a_gpu_that_torch_cannot_use_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "find_driver", lambda: DRIVER)
    with pytest.raises(EnvironmentFailure, match=r"Tesla K80, driver 470\.57, .* 3\.7") as caught:
        choose("auto", "float32")
    assert torch.__version__ in caught.value.message
    assert "--device cpu" in caught.value.hint
    assert choose("cpu", "float32").type == "cpu"


def test_a_torch_without_cuda_is_told_to_be_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)
    failure = unusable(replace(DRIVER, capability=(7, 0)))
    assert "CPU only" in failure.message
    assert "install torch before 2.15, built for CUDA 12.6" in failure.hint
    assert unusable(DRIVER).hint == "ask for the CPU with --device cpu"


@pytest.mark.parametrize(
    ("capability", "driver", "build"),
    [
        ((3, 7), "470.57", None),
        ((7, 0), "580.65.06", "torch before 2.15, built for CUDA 12.6"),
        ((9, 0), "575.57.08", "torch before 2.15, built for CUDA 12.6"),
        ((9, 0), "580.65.06", "torch's default build"),
        ((12, 0), "590.44.01", "torch 2.7 or later, built for CUDA 12.8 or later"),
        (
            (13, 7),
            "590.44.01",
            "a newer torch than this, with code for compute capability 13.7 (a nightly build where "
            "no release has it)",
        ),
        (None, None, "torch's default build"),
    ],
)
def test_the_build_for_a_gpu_follows_from_its_capability_and_driver(
    capability: tuple[int, int] | None, driver: str | None, build: str | None
) -> None:
    assert build_for(capability, driver) == build


def test_a_container_without_gpu_support_is_told_how_to_get_it() -> None:
    assert "--gpus all" in unusable(Driver(1)).hint


def test_gpus_hidden_on_purpose_are_not_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "0000:01:00.0").mkdir()
    for hidden in ("", "-1", "NoDevFiles"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
        assert find_driver(tmp_path) is None
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    found = find_driver(tmp_path)
    assert found is not None
    assert found.gpus >= 1
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert find_driver(tmp_path) is not None


@pytest.mark.parametrize(
    ("capability", "built_for", "runs"),
    [
        ((9, 0), ["sm_80", "sm_90"], True),
        ((8, 6), ["sm_80"], True),
        ((8, 0), ["sm_86"], False),
        ((3, 7), ["sm_50", "sm_60", "compute_90"], False),
        ((12, 1), ["sm_90", "compute_120"], True),
        ((10, 0), ["sm_90a"], False),
        ((9, 0), ["sm_90a"], True),
        ((9, 0), ["gfx90a"], True),
    ],
)
def test_a_gpu_runs_code_of_its_major_version_and_older_intermediate_code(
    capability: tuple[int, int], built_for: list[str], runs: bool
) -> None:
    assert runs_on(capability, built_for) is runs


def test_a_gpu_that_this_torch_has_no_code_for_stops_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replaced: dict[str, Any] = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "get_device_capability": lambda _index: (3, 7),
        "get_device_name": lambda _index: "Tesla K80",
        "get_arch_list": lambda: ["sm_75", "compute_120"],
    }
    for name, value in replaced.items():
        monkeypatch.setattr(torch.cuda, name, value)
    with pytest.raises(EnvironmentFailure, match=r"Tesla K80 .* 3\.7.*sm_75"):
        choose("auto", "float32")
    with pytest.raises(EnvironmentFailure, match="no device cuda:1: torch sees 1"):
        choose("cuda:1", "float32")


def test_a_part_of_a_gpu_keeps_its_own_kind_of_uuid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-1234")
    assert full_uuid("1234") == "MIG-1234"
    assert full_uuid("5678") == full_uuid("GPU-5678") == "GPU-5678"


def test_a_workers_error_is_told_by_its_last_line() -> None:
    text = "Caught ValueError in DataLoader worker process 0.\nTraceback:\n  f()\nValueError: bad"
    assert (
        translate(ValueError(text), 1).message == "a worker of the loader failed: ValueError: bad"
    )


def test_shared_memory_that_is_too_small_for_the_batches_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dataset = Repeated(torch.zeros(4, 1000), torch.zeros(4))
    data = Data("synthetic", "zeros", 4, dataset)
    cpu = torch.device("cpu")
    small = os.statvfs_result((4096, 4096, 1, 1, 1, 0, 0, 0, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _folder: small)
    Batches(data, 4, 0, 0, cpu, Rank()).check_shared_memory()
    with pytest.raises(EnvironmentFailure, match="3 batches of 4") as caught:
        Batches(data, 4, 1, 0, cpu, Rank()).check_shared_memory()
    assert "--shm-size" in caught.value.hint


@pytest.mark.parametrize("dtype", ["tf32", "float16"])
def test_a_gpus_data_types_are_refused_on_a_cpu(dtype: str) -> None:
    with pytest.raises(UsageFailure, match=dtype):
        choose("cpu", dtype)


@pytest.mark.parametrize(
    ("device", "capability", "told"),
    [
        ("cpu", None, "this run is on the CPU"),
        ("cuda", (8, 6), r"8\.9 or later, and RTX 3090 has 8\.6"),
        ("cuda", (8, 9), None),
        ("cuda", (9, 0), None),
    ],
)
def test_fp8_takes_a_gpu_and_a_torch_that_can(
    monkeypatch: pytest.MonkeyPatch, device: str, capability: Any, told: str | None
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _device: capability)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _device: "RTX 3090")
    monkeypatch.setattr(devices, "_choose", lambda requested: torch.device(requested))
    monkeypatch.setattr(devices, "available", lambda: True)
    if told is None:
        assert choose(device, "fp8").type == device
    else:
        with pytest.raises(UsageFailure, match=told):
            choose(device, "fp8")
    monkeypatch.setattr(devices, "available", lambda: False)
    with pytest.raises(EnvironmentFailure, match="scaled products") as caught:
        choose(device, "fp8")
    assert "update torch" in caught.value.hint


def test_running_out_of_memory_names_the_batch_size() -> None:
    for error in (
        RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
        MemoryError(),
    ):
        failure = translate(error, 256)
        assert failure.kind == "run"
        assert "256" in failure.hint


def test_a_bus_error_of_a_worker_names_shared_memory() -> None:
    text = "DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that"
    assert "/dev/shm" in translate(RuntimeError(text), 1).hint


def test_a_package_that_is_there_and_broken_is_not_called_missing() -> None:
    failure = missing("torch", ImportError("libcudart.so.12: cannot open shared object file"))
    assert "cannot be imported: libcudart" in failure.message
