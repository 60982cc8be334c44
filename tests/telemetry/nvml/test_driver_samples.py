"""The driver's own samples of power and utilization: used where it keeps them, else not missed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pynvml
import pytest

from gpuwatch.telemetry.nvml.driver_samples import LONGEST_APART_S, DriverSamples
from tests.fake_nvml import NO_PERMISSION, NOT_FOUND, NOT_SUPPORTED, FakeDriver
from tests.telemetry.conftest import Remote

Start = Callable[..., Remote]
BUSY, MEMORY, POWER = (
    ("gpu0", f"hw.gpu.{name}") for name in ("utilization", "memory.busy", "power")
)
PERIOD = 0.2


@pytest.fixture
def driver(tmp_path: Path) -> FakeDriver:
    """A GPU that is busy half of every 0.2 s."""
    driver = FakeDriver(tmp_path)
    driver.set(utilization=100, memory_busy=60, power=252_000)
    driver.load(PERIOD, PERIOD / 2)
    return driver


def test_power_is_the_mean_of_the_drivers_samples_since_the_last_one(
    remote: Start, driver: FakeDriver
) -> None:
    driver.set(samples=20)  # it keeps two periods
    source = remote(driver)
    source.sample()
    time.sleep(2 * PERIOD)
    values = source.sample()
    assert values[POWER] == pytest.approx((60 + 252.5) / 2, rel=0.1)
    assert source.channels[POWER]["method"] == "measured"
    assert "nvmlDeviceGetSamples (mean since the last sample)" in source.channels[POWER]["source"]
    assert source.events == []


def test_utilization_is_read_by_the_call_that_costs_least(
    remote: Start, driver: FakeDriver
) -> None:
    """A call for the driver's samples of it takes milliseconds of processor time."""
    driver.fail("nvmlDeviceGetSamples:1", NO_PERMISSION)
    source = remote(driver)
    values = source.sample()
    for key, mean in ((BUSY, 0.5), (MEMORY, 0.3)):
        assert values[key] == pytest.approx(mean), "the mean of the driver's last 0.2 s"
        assert source.channels[key]["source"] == "NVML nvmlDeviceGetUtilizationRates"


def test_from_an_interval_of_a_second_on_power_is_the_drivers_running_mean(
    remote: Start, driver: FakeDriver
) -> None:
    driver.fail("nvmlDeviceGetSamples", NO_PERMISSION)
    driver.set(power_average=252_000)
    source = remote(driver, interval_s=1.0)
    assert source.sample()[POWER] == pytest.approx((60 + 252) / 2)
    assert source.channels[POWER]["source"] == "NVML field 185 (average power of a second)"
    assert ("gpu0", "hw.gpu.power.average") not in source.channels, "the same, at another moment"


def test_without_a_new_sample_the_last_value_stands(remote: Start, tmp_path: Path) -> None:
    driver = FakeDriver(tmp_path)
    driver.set(samples=10, sample_us=500_000)
    source = remote(driver)
    assert {source.sample()[POWER] for _ in range(20)} == {252.5}


@pytest.mark.parametrize("code", [NOT_SUPPORTED, NO_PERMISSION])
def test_a_driver_that_keeps_none_is_read_directly(
    remote: Start, driver: FakeDriver, code: int
) -> None:
    driver.fail("nvmlDeviceGetSamples:0", code)
    source = remote(driver)
    assert source.channels[POWER]["source"] == "NVML field 186 (instant power)"
    assert source.sample()[POWER] is not None


@pytest.mark.parametrize("code", [NOT_FOUND, NO_PERMISSION])
def test_a_driver_that_stops_taking_samples_is_read_directly_from_then_on(
    remote: Start, driver: FakeDriver, code: int
) -> None:
    source = remote(driver)
    assert "nvmlDeviceGetSamples" in source.channels[POWER]["source"]
    driver.fail("nvmlDeviceGetSamples", code)
    source.until(
        lambda values: (
            values[POWER] is not None
            and source.channels[POWER]["source"] == "NVML field 186 (instant power)"
        )
    )
    assert all(change["reason"] is None for change in source.changes), "never unavailable"
    assert source.events == []


class Buffer:
    """A binding whose driver keeps these samples: (time stamp in microseconds, milliwatts)."""

    NVMLError = pynvml.NVMLError

    def __init__(self, *kept: tuple[int, int]) -> None:
        self.kept = kept
        self.calls = 0

    def nvmlDeviceGetSamples(
        self, handle: object, kind: int, since: int
    ) -> tuple[int, list[pynvml.c_nvmlSample_t]]:
        self.calls += 1
        found = []
        for stamp, value in self.kept:
            if stamp > since:
                found.append(pynvml.c_nvmlSample_t(timeStamp=stamp))
                found[-1].sampleValue.uiVal = value
        if not found:
            raise pynvml.NVMLError(NOT_FOUND)
        return pynvml.NVML_VALUE_TYPE_UNSIGNED_INT, found


@dataclass
class Clock:
    now: float = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time by which the driver's samples are asked for; it stands still."""
    clock = Clock()
    monkeypatch.setattr("gpuwatch.telemetry.nvml.driver_samples.time", clock)
    return clock


def test_each_sample_counts_once_and_those_from_before_the_first_reading_never() -> None:
    samples = DriverSamples()
    driver = Buffer((0, 77_000), (3, 40_000), (1, 99_000), (2, 99_000))  # one is empty; no order
    assert samples.read(driver, None) == (40,), "the newest alone"
    driver.kept += ((4, 10_000), (5, 20_000))
    assert samples.read(driver, None) == (15,)
    assert samples.read(driver, None) == (15,), "no new one"
    driver.kept += ((6, 90_000),)
    assert samples.read(driver, None) == (90,)


def test_the_driver_is_not_asked_before_it_can_have_a_new_sample(clock: Clock) -> None:
    samples = DriverSamples()
    driver = Buffer((1, 40_000))
    samples.read(driver, None)
    driver.kept += ((20_001, 50_000),)
    for _ in range(50):
        assert samples.read(driver, None) == (50,)
    assert driver.calls == 2
    driver.kept += ((40_001, 60_000),)
    clock.now += 0.02
    assert samples.read(driver, None) == (60,)


def test_a_pause_of_the_driver_is_not_its_pace(clock: Clock) -> None:
    samples = DriverSamples()
    driver = Buffer((1, 40_000))
    samples.read(driver, None)
    driver.kept += ((3_600_000_001, 50_000),)
    samples.read(driver, None)
    driver.kept += ((3_600_020_001, 60_000),)
    clock.now += LONGEST_APART_S
    assert samples.read(driver, None) == (60,)
