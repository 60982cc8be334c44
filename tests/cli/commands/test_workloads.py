"""The workloads of ours through the whole of gpuwatch: recorded, shown, compared, exported."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Cli
from tests.reading import sessions

pytestmark = pytest.mark.torch


def record(cli: Cli, out: Path, *arguments: object, code: int = 0) -> dict[str, Any]:
    cli("--record", "--quiet", "--python", sys.executable, "--out", out, *arguments, code=code)
    return dict(json.loads(cli.read("show", sessions(out)[-1], "--format", "json").stdout))


def test_mnist_is_recorded_whole(cli: Cli, tmp_path: Path) -> None:
    found = record(cli, tmp_path, "mnist-cnn", "--steps", "12", "--interval", "0.1")
    assert found["session"]["status"] == "finished"
    assert found["workload"]["name"] == "mnist-cnn"
    assert found["workload"]["parameters"]["steps"] == 12
    assert found["workload"]["data"]["kind"] == "synthetic"
    assert found["step"]["count"] == 12 and found["step"]["warmup_count"] > 0
    assert found["timing"].pop("cpu_is_bound") is False
    for name, value in found["timing"].items():
        assert value is not None and value > 0, name
    start_up = ("launch_seconds", "import_seconds", "model_seconds", "first_step_seconds")
    assert sum(found["timing"][name] for name in start_up) < found["timing"]["real_seconds"]
    assert found["step"]["median_seconds"] * 12 < found["timing"]["real_seconds"]
    # conv 1->32 3x3 on 28x28, conv 32->64 3x3 on 26x26, 9216->128, 128->10: 2 x multiply-adds.
    forward = 2 * (26**2 * 32 * 9 + 24**2 * 64 * 32 * 9 + 9216 * 128 + 128 * 10)
    assert found["flop"]["forward_per_sample"] == pytest.approx(forward, rel=1e-6)
    assert 2 * forward < found["flop"]["per_step"] / 64 < 3 * forward
    assert found["flop"]["uncounted_operators"]
    rate = found["metrics"]["gpuwatch.flop.rate"]
    assert rate["method"] == "counted"
    mean = found["step"]["mean_seconds"]
    assert 0 < rate["mean"] <= 1.01 * found["flop"]["per_step"] / mean
    assert set(found["step"]["phases"]) == {"data", "copy", "forward", "backward", "optimizer"}
    assert 0 < sum(found["step"]["phases"].values()) <= 1.01 * mean
    assert {"torch", "torchvision", "python"} <= set(found["fingerprint"]["workload"])
    assert "process.seccomp" in found["fingerprint"]["process"]
    assert len(found["fingerprint"]["host"]["gpuwatch.workloads.sha256"]) == 64


def test_a_data_folder_of_the_wrong_shape_says_what_was_expected(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    done = cli(
        "--record", "mnist-cnn", "--data", tmp_path / "data", "--python", sys.executable,
        "--out", tmp_path / "out", "--quiet", code=2,
    )  # fmt: skip
    assert "train-images-idx3-ubyte" in done.stderr
    found = json.loads(cli.read("show", sessions(tmp_path / "out")[0], "--format", "json").stdout)
    assert found["error"]["kind"] == "usage" and found["session"]["status"] == "failed"
