"""What only a GPU can show. Skipped by name where torch sees none."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import Report

pytestmark = pytest.mark.torch

VISIBLE = {"CUDA_VISIBLE_DEVICES": "0"}


@pytest.fixture(autouse=True)
def cuda() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch sees no CUDA device")


@pytest.mark.parametrize("workload", ["mnist-cnn", "sentiment-rnn", "cifar10-cnn", "gcn"])
def test_a_run_on_a_gpu_names_it_and_counts_what_a_cpu_counts(
    run_workload: Callable[..., Report], workload: str
) -> None:
    arguments = (workload, "--steps", 30, "--device")
    gpu = run_workload(*arguments, "cuda", **VISIBLE)
    cpu = run_workload(*arguments, "cpu", **VISIBLE)
    assert gpu.code == cpu.code == 0, gpu.stderr
    assert gpu.one("run")["device_uuid"][0].startswith("GPU-")
    assert gpu.one("count") | {"seconds": 0} == cpu.one("count") | {"seconds": 0}
    assert len(gpu.seconds()) == 30
    for step in gpu.steps():
        assert sum(step["phases"].values()) == pytest.approx(sum(step["seconds"]), rel=1e-3)


@pytest.mark.parametrize("dtype", ["float32", "tf32", "bfloat16", "float16"])
def test_every_data_type_trains(run_workload: Callable[..., Report], dtype: str) -> None:
    done = run_workload("resnet18", "--steps", 5, "--batch-size", 8, "--dtype", dtype, **VISIBLE)
    assert done.code == 0, done.stderr
    assert done.one("run")["dtype"] == dtype
    assert len(done.losses()) == 5


def test_fp8_trains_near_bfloat16(run_workload: Callable[..., Report]) -> None:
    torch = pytest.importorskip("torch")
    from gpuwatch.workloads.float8 import LEAST_CAPABILITY, available

    if torch.cuda.get_device_capability() < LEAST_CAPABILITY or not available():
        pytest.skip("this GPU, or this torch, has no products in fp8")
    flags = ("transformer-lm", "--steps", 5, "--batch-size", 2, "--profile", 0, "--dtype")
    half, done = (run_workload(*flags, dtype, **VISIBLE) for dtype in ("bfloat16", "fp8"))
    assert done.code == 0, done.stderr
    assert done.one("run")["dtype"] == "fp8"
    assert done.losses() == pytest.approx(half.losses(), rel=0.05)


def test_the_steps_add_up_to_the_time_that_passed(run_workload: Callable[..., Report]) -> None:
    done = run_workload("resnet50", "--steps", 40, "--batch-size", 32, **VISIBLE)
    first, last = done.steps()[0], done.steps()[-1]
    passed = (last["monotonic_ns"] - first["monotonic_ns"]) / 1e9
    assert sum(done.seconds()[1:]) == pytest.approx(passed, rel=0.02)


def test_running_out_of_memory_names_the_batch_size(run_workload: Callable[..., Report]) -> None:
    done = run_workload("resnet50", "--steps", 1, "--batch-size", 20000, "--workers", 0, **VISIBLE)
    assert done.code == 1
    assert "20000" in done.one("error")["hint"]
    assert "Traceback" not in done.stderr


def test_the_profile_of_a_gpu_names_kernels_calls_and_copies(
    run_workload: Callable[..., Report],
) -> None:
    done = run_workload("mnist-cnn", "--steps", 5, **VISIBLE)
    profile = {event["table"]: event for event in done.all("profile")}
    assert profile["cuda_gpu_kern_sum"]["device"] == "cuda"
    launched = [row for row in profile["cuda_api_sum"]["rows"] if "Launch" in row[-1]]
    assert sum(row[2] for row in launched) > 0
    moved = {row[-1]: row[0] for row in profile["cuda_gpu_mem_size_sum"]["rows"]}
    # Four steps copy four batches of 64 images and labels: float32 and int64.
    assert moved["[CUDA memcpy Host-to-Device]"] >= 4 * 64 * (28 * 28 * 4 + 8) / 1e6


def test_executed_flop_are_counted_or_the_reason_is_told(
    run_workload: Callable[..., Report],
) -> None:
    done = run_workload("cifar10-cnn", "--steps", 5, "--counters", "--profile", 0, **VISIBLE)
    assert done.code == 0, done.stderr
    counters = done.one("counters")
    if counters["reason"] is not None:
        assert "ncu" in counters["reason"]
        return
    assert counters["launches"] > 0 and counters["dram_read_bytes_per_step"] > 0
    assert counters["flop_per_step"] is not None or counters["notes"]
