"""Measured ceilings of the CPU: what each says of itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import Report

pytestmark = pytest.mark.torch

NAMES = ["bandwidth", "float32", "float64", "bfloat16"]


def test_every_ceiling_of_the_cpu_says_how_it_was_measured(
    fork_workload: Callable[..., Report],
) -> None:
    told = fork_workload("--calibrate", "--device", "cpu", "--quick")
    assert told.code == 0, told.stderr
    of = told.one("calibration")
    assert of["device"] == "cpu" and of["device_name"] and of["versions"]["torch"]
    assert of["threads"] == 1 and told.one("calibrated")["seconds"] > 0
    assert [each["name"] for each in told.all("ceiling")] == NAMES
    for each in told.all("ceiling"):
        assert each["reason"] is None and each["value"] > 0 and each["spread"] >= 0, each
        assert each["unit"] == ("By/s" if each["name"] == "bandwidth" else "FLOP/s")
        assert "1 thread" in each["how"] and "1 threads" not in each["how"]
        assert 0 <= each["others"] <= 1


@pytest.mark.parametrize(
    ("device", "code", "says"), [("cuda", 3, "--device cpu"), ("tpu", 2, "cuda:INDEX")]
)
def test_a_device_that_is_not_there_is_told_in_one_line(
    run_workload: Callable[..., Report], device: str, code: int, says: str
) -> None:
    told = run_workload("--calibrate", "--device", device)
    assert told.code == code
    assert says in told.one("error")["hint"] and len(told.stderr.splitlines()) == 1
    assert told.all("ceiling") == []
