"""A load in step with the samples, busy half of the time, recorded end to end."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Cli
from tests.fake_nvml import FakeDriver, uuid
from tests.reading import sessions

INTERVAL, LOAD, STEPS, PERIOD = 0.2, 0.04, 60, 0.1
"""Seconds between samples, into which periods of the load fit; steps, and seconds of each."""
IDLE_W, BUSY_W = 60.0, 252.5
SCRIPT = f"""
import json, time
print(":::GPUWATCH", json.dumps({{"event": "run", "device": "cuda", "device_uuid": ["{uuid(0)}"]}}))
for step in range(1, {STEPS} + 2):
    time.sleep({PERIOD})
    line = {{"event": "step", "step": step, "samples": 1, "seconds": {PERIOD}, "warmup": step == 1}}
    print(":::GPUWATCH", json.dumps(line | {{"monotonic_ns": time.monotonic_ns()}}), flush=True)
"""


def recorded(cli: Cli, driver: FakeDriver, out: Path) -> dict[str, Any]:
    """What `show` says of a run on a GPU whose load is in step with the samples."""
    driver.set(utilization=100, memory_busy=60)
    driver.load(LOAD, LOAD / 2)
    cli(
        "--record", "--quiet", "--interval", INTERVAL, "--out", out, "--gpus", "0",
        "--", sys.executable, "-c", SCRIPT,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(
        cli.read("show", sessions(out)[0], "--format", "json").stdout
    )
    assert found["window"]["kind"] == "timed steps"
    return found


def test_the_drivers_own_samples_show_a_load_that_hides_between_ours(
    cli: Cli, driver: FakeDriver, tmp_path: Path
) -> None:
    power = recorded(cli, driver, tmp_path / "out")["metrics"]["hw.gpu.power"]
    assert power["mean"] == pytest.approx((IDLE_W + BUSY_W) / 2, rel=0.05)
    assert "nvmlDeviceGetSamples" in power["source"]


def test_without_them_no_load_can_stay_in_step_with_our_samples(
    cli: Cli, driver: FakeDriver, tmp_path: Path
) -> None:
    driver.set(samples=0, sample_us=20_000)
    found = recorded(cli, driver, tmp_path / "out")
    busy, power = (found["metrics"][f"hw.gpu.{name}"] for name in ("utilization", "power"))
    assert busy["mean"] == pytest.approx(0.5, abs=0.3), "thirty samples, each 0 or 1"
    assert power["mean"] == pytest.approx((IDLE_W + BUSY_W) / 2, abs=0.3 * (BUSY_W - IDLE_W))
    assert "nvmlDeviceGetSamples" not in busy["source"] + power["source"]
