"""What no device can be is no value: a reason with what was given stands there instead."""

from __future__ import annotations

import json
import math
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.core.metrics import CATALOGUE, IMPOSSIBLE, checked
from gpuwatch.session.reading.reader import SessionReader
from tests.conftest import Cli
from tests.fake_nvml import FakeDriver
from tests.waiting import until

Start = Callable[..., Any]

ABSURD = (0, -1, 2**31, 2**32 - 1, 2**63, 2**64 - 2)
READ = (
    "utilization", "memory_busy", "memory_total", "memory_used", "memory_reserved", "power",
    "power_instant", "power_average", "power_limit", "energy", "temperature", "clock_sm",
    "temperature_slowdown", "temperature_max",
    "clock_memory", "max_clock_sm", "max_clock_memory", "pcie_transmit", "pcie_receive",
    "pcie_generation", "pcie_width", "encoder", "decoder", "bus_width", "cores", "performance",
    "persistence", "compute_mode", "ecc", "ecc_corrected", "ecc_uncorrected",
    "clocks_event_reasons", "event_types", "fan", "field_type", "samples", "sample_type",
    "sample_us", "samples_told", "listed_told", "mig_told",
)  # fmt: skip
"""Every number that the stand-in answers about a GPU."""
PERCENT_OF_OTHERS = {str(i): 45.0 for i in (2, 3, 5, 10, 11, 12, 13, 20, 21, 60, 61)}
MEMORY = 3 * 2**30
"""Address space, in bytes: a list of billions is refused here, as on a machine without so much."""


def _mixed(seed: int) -> dict[str, object]:
    chosen = random.Random(seed)
    return {key: chosen.choice((*ABSURD, 1, 45)) for key in READ}


CASES = [dict.fromkeys(READ, value) for value in ABSURD] + [_mixed(seed) for seed in range(4)]


def _strange(driver: FakeDriver, answers: dict[str, object]) -> None:
    value = answers["power"]
    driver.gpm(dict.fromkeys(map(int, PERCENT_OF_OTHERS), float(str(value))))
    driver.processes(0, (os.getpid(), int(str(answers["memory_used"])) % 2**64, "compute"))
    driver.set(
        **answers,
        compute_capability=f"{value}.{value}",
        process_utilization=f"{os.getpid()}:{int(str(value)) % 2**32}/4294967295",
    )
    driver.set_machine(cuda=int(str(value)) % 2**31)


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("answers", CASES, ids=[*map(str, ABSURD), "m0", "m1", "m2", "m3"])
def test_whatever_a_driver_answers_each_channel_has_a_possible_value_or_a_reason(
    tmp_path: Path, remote: Start, answers: dict[str, object]
) -> None:
    driver = FakeDriver(tmp_path, gpus=2)
    _strange(driver, answers)
    source = remote(driver, interval_s=0.2, most_memory=MEMORY)
    assert source.first["devices"], source.first
    for _ in range(3):
        for (device, metric), value in source.sample().items():
            told = source.channels[device, metric]
            if value is None:
                fast = metric in ("hw.gpu.utilization", "hw.gpu.memory.usage", "hw.gpu.power")
                assert told["reason"] or not fast, (metric, told)
            else:
                assert checked(metric, value)[1] is None, (metric, value)
                assert told["reason"] is None, told
    for key, value in source.first["devices"][0]["attributes"].items():
        if isinstance(value, (int, float)) and key != "index":
            assert 0 <= value < 2**50, (key, value)


def test_the_largest_number_is_unknown_and_told_as_it_came(tmp_path: Path, remote: Start) -> None:
    driver = FakeDriver(tmp_path)
    most = 2**32 - 1
    driver.set(utilization=most, memory_busy=40, clock_sm=most, pcie_width=most)
    driver.set(power=most, power_instant=most, power_average=0)
    source = remote(driver)
    values = source.sample()
    assert values["gpu0", "hw.gpu.memory.busy"] == 0.4, "its neighbour's value is no sentinel"
    for metric, given_text in (
        ("hw.gpu.utilization", "nvmlDeviceGetUtilizationRates: the driver gave 4,294,967,295 %"),
        ("hw.gpu.clock.sm", "4.294967295e+15 Hz"),
        ("hw.gpu.pcie.width", "4,294,967,295 lane"),
        ("hw.gpu.power", "field 185 (average power): the driver gave 0 W"),
    ):
        assert values["gpu0", metric] is None
        reason = source.channels["gpu0", metric]["reason"]
        assert given_text in reason and reason.endswith(IMPOSSIBLE), reason
    told = len(source.changes)
    for value in range(5000, 5005):
        driver.set(utilization=value)
        source.sample()
    assert len(source.changes) == told, "another impossible value is no news"
    driver.set(utilization=7)
    source.until(lambda values: values["gpu0", "hw.gpu.utilization"] == 0.07)
    assert source.channels["gpu0", "hw.gpu.utilization"]["reason"] is None


def test_what_one_call_gives_in_vain_the_next_one_gives(tmp_path: Path, remote: Start) -> None:
    driver = FakeDriver(tmp_path)
    driver.set(power_instant=2**32 - 1)
    source = remote(driver)
    assert source.sample()["gpu0", "hw.gpu.power"] == 251.0
    assert "nvmlDeviceGetPowerUsage" in source.channels["gpu0", "hw.gpu.power"]["source"]


@pytest.mark.parametrize("text", ["nan", "inf", "-1"])
def test_a_field_that_is_no_number_is_unavailable(tmp_path: Path, remote: Start, text: str) -> None:
    driver = FakeDriver(tmp_path)
    driver.set(field_type=0, power_average=text)
    source = remote(driver)
    source.sample()
    reason = source.channels["gpu0", "hw.gpu.power.average"]["reason"]
    assert "the driver gave" in reason and reason.endswith(IMPOSSIBLE)


@pytest.mark.parametrize("told", [2**30, 2**32 - 1])
def test_lists_of_an_absurd_length_are_unknown(tmp_path: Path, remote: Start, told: int) -> None:
    driver = FakeDriver(tmp_path)
    driver.set(listed_told=told, samples=50, samples_told=told)
    source = remote(driver, most_memory=MEMORY)
    assert source.sample()["gpu0", "hw.gpu.utilization"] == 0.4, "read directly"
    assert source.ask("processes") == {"gpu0": None}


def test_gpus_without_number_and_names_that_are_no_text(tmp_path: Path, remote: Start) -> None:
    driver = FakeDriver(tmp_path)
    driver.set(name="\udcff\udcfe")
    assert remote(driver).first["devices"][0]["uuid"], "only the name is unknown"
    driver.set_machine(gpus_told=2**32 - 1)
    assert "cannot be read" in remote(driver).first["unavailable"]["reason"]


def test_a_process_without_a_valid_sample_is_unknown_not_idle(
    tmp_path: Path, remote: Start
) -> None:
    driver = FakeDriver(tmp_path)
    driver.set(process_utilization="4711:4294967295/4294967295,4712:20/102")
    source = remote(driver)
    shares = until(lambda: source.ask("shares")["gpu0"]["by_pid"])
    assert shares == {
        "4711": {"kernels": None, "memory": None},
        "4712": {"kernels": 0.2, "memory": None},
    }


def test_no_value_of_a_driver_ends_the_recorder(
    cli: Cli, driver: FakeDriver, tmp_path: Path
) -> None:
    _strange(driver, dict.fromkeys(READ, 2**64 - 2))
    out = tmp_path / "out"
    cli("--record", "--quiet", "--interval", "0.2", "--duration", "2s", "--out", out)
    (path,) = out.rglob("*.gpuwatch")
    shown = json.loads(cli.read("show", path, "--format", "json").stdout)
    metrics = next(d for d in shown["devices"] if d["kind"] == "gpu")["metrics"]
    assert metrics["hw.gpu.memory.usage"]["mean"] is None
    assert metrics["hw.gpu.memory.usage"]["reason"].endswith(IMPOSSIBLE)
    with SessionReader(path) as reader:
        assert not [row for row in reader.events() if row.kind == "ecc"]


@given(st.sampled_from(sorted(CATALOGUE)), st.floats() | st.integers(-(2**64), 2**64))
def test_a_value_is_possible_or_has_a_reason(name: str, value: float) -> None:
    kept, reason = checked(name, value)
    assert (kept is None) != (reason is None)
    metric = CATALOGUE[name]
    if kept is None:
        assert not metric.least <= value <= metric.most or math.copysign(1, value) < 0
    else:
        assert metric.least <= kept <= metric.most and abs(kept - value) <= 0.01 + 1e-9
        assert metric.unit != "1" or kept <= 1 or metric.most > 1.5
