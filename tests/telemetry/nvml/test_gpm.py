"""GPM against the stand-in driver, whose counters run with time as the driver's do."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.core.peaks import dram_peak
from gpuwatch.telemetry.base import Device
from gpuwatch.telemetry.nvml.gpm import SHORTEST_S, Gpm
from gpuwatch.telemetry.nvml.gpm_metrics import WANTED, reading_of
from tests.conftest import Cli
from tests.fake_nvml import FUNCTION_NOT_FOUND, NO_PERMISSION, NOT_SUPPORTED, FakeDriver
from tests.reading import sessions

pytestmark = pytest.mark.usefixtures("programs")

Start = Callable[..., Any]

RATES = {
    2: 80.0,
    3: 40.5,
    5: 30.0,
    10: 45.5,
    11: 0.0,
    12: 12.0,
    13: 3.0,
    20: 100.0,
    21: 200.5,
    60: 20.0,
    61: 10.0,
}
"""Percent, and MiB/s from 20 on."""
PEAK = 2619e6 * 2 * 5120 / 8
BANDWIDTH = "hw.gpu.memory.bandwidth"
DRAM = "hw.gpu.dram.activity"
PCIE = "hw.gpu.pcie.transmit"
EXPECTED = {
    BANDWIDTH: 0.455 * PEAK,
    DRAM: 0.455,
    "hw.gpu.sm.activity": 0.80,
    "hw.gpu.sm.occupancy": 0.405,
    "hw.gpu.tensor.activity": 0.30,
    "hw.gpu.fp64.activity": 0.0,
    "hw.gpu.fp32.activity": 0.12,
    "hw.gpu.fp16.activity": 0.03,
    PCIE: 100 * 2**20,
    "hw.gpu.pcie.receive": 200.5 * 2**20,
    "hw.gpu.nvlink.transmit": 10 * 2**20,
    "hw.gpu.nvlink.receive": 20 * 2**20,
}
OTHER = "hw.gpu.power"
HOUR = 3600
"""How long a call that hangs takes, in seconds: longer than a test may."""
FAST = 0.11
"""The shortest interval at which every sample of a recording has a pair of its own."""


@pytest.fixture
def driver(tmp_path: Path) -> FakeDriver:
    driver = FakeDriver(tmp_path)
    driver.gpm(RATES)
    return driver


def given(source: Any, gpu: str = "gpu0") -> dict[str, float]:
    """The next values that GPM gives."""
    found: dict[str, float] = {}

    def there(values: dict[tuple[str, str], float | None]) -> bool:
        for metric in EXPECTED:
            value = values[gpu, metric]
            if value is not None:
                found[metric] = value
        return values[gpu, DRAM] is not None

    source.until(there)
    return found


def test_every_metric_of_gpm_is_measured_in_base_units(driver: FakeDriver, remote: Start) -> None:
    driver.resize(2)
    driver.gpm({metric: rate / 2 for metric, rate in RATES.items()}, gpu=1)
    source = remote(driver, interval_s=FAST)
    for gpu, factor in (("gpu0", 1.0), ("gpu1", 0.5)):
        values = given(source, gpu)
        assert values == {m: pytest.approx(v * factor, rel=1e-4) for m, v in EXPECTED.items()}
        for metric in EXPECTED:
            channel = source.channels[gpu, metric]
            assert channel["method"] == "measured" and "GPM metric" in channel["source"]
    told = source.channels["gpu0", BANDWIDTH]["source"]
    assert "DRAM_BW_UTIL" in told and "3352 GB/s" in told
    assert source.events == []


def test_a_value_is_given_once_and_is_of_the_time_since_the_one_before(
    driver: FakeDriver, remote: Start
) -> None:
    source = remote(driver, interval_s=FAST)
    given(source)
    begin = time.monotonic()
    again = [source.sample()["gpu0", DRAM] for _ in range(20)]
    pairs = (time.monotonic() - begin) / SHORTEST_S + 1
    assert len([value for value in again if value is not None]) <= pairs
    given(source)
    driver.gpm({10: 90.0})
    seen = [given(source)[DRAM] for _ in range(4)]
    assert 0.45 < seen[0] < 0.91
    assert seen[2:] == [pytest.approx(0.9, rel=1e-3)] * 2


def test_a_long_interval_gets_the_mean_of_all_its_pairs() -> None:
    nobody: Any = None
    device = Device("gpu0", "gpu", "NVIDIA H200")
    reasons: dict[str, str | None] = {}
    gpm = Gpm(nobody, device, dram_peak({}, device.name), 2.5, nobody, reasons.update, nobody)
    for percent, seconds in ((0.0, 0.6), (80.0, 0.2)):
        gpm.take_in(seconds, tuple((0, percent) for _ in WANTED))
    assert reasons[DRAM] is None
    assert gpm.taken()[DRAM] == pytest.approx(0.2)
    assert gpm.taken() == {}


def test_pcie_is_gpm_s_and_nvml_s_own_call_is_not_made(driver: FakeDriver, remote: Start) -> None:
    driver.delay("nvmlDeviceGetPcieThroughput", HOUR)
    source = remote(driver, interval_s=FAST)
    assert given(source)[PCIE] == pytest.approx(EXPECTED[PCIE], rel=1e-3)
    for watts in (200, 300, 400):  # the call would hang in one of two slow readings
        driver.set(power_average=1000 * watts)
        source.until(lambda values, watts=watts: values["gpu0", "hw.gpu.power.average"] == watts)


def test_a_metric_that_fails_alone_costs_no_other(driver: FakeDriver, remote: Start) -> None:
    driver.fail("nvmlGpmMetricsGet:10", NOT_SUPPORTED)
    driver.set(gpm_nan=12)
    source = remote(driver, interval_s=FAST)
    source.until(lambda values: values["gpu0", "hw.gpu.sm.activity"] is not None)
    for metric in EXPECTED:
        channel = source.channels["gpu0", metric]
        if metric in (DRAM, BANDWIDTH):
            assert "metric 10" in channel["reason"] and "not supported" in channel["reason"]
        elif metric == "hw.gpu.fp32.activity":
            assert "gave nan %" in channel["reason"]
        else:
            assert channel["method"] == "measured"


def test_a_pcie_metric_that_gpm_lacks_is_read_from_nvml(driver: FakeDriver, remote: Start) -> None:
    driver.fail("nvmlGpmMetricsGet:20", NOT_SUPPORTED)
    source = remote(driver, interval_s=FAST)
    values = source.sample()
    assert values["gpu0", PCIE] == 120_000_000
    assert values["gpu0", "hw.gpu.pcie.receive"] == pytest.approx(200.5 * 2**20, rel=1e-3)
    assert "20 ms" in source.channels["gpu0", PCIE]["source"]


def test_a_counter_that_wraps_around_is_a_gap_and_no_number(
    driver: FakeDriver, remote: Start
) -> None:
    source = remote(driver, interval_s=FAST)
    given(source)
    driver.set(gpm_bits=25)
    key, seen = ("gpu0", DRAM), []

    def wrapped(values: dict[tuple[str, str], float | None]) -> bool:
        seen.append(values[key])
        return "is impossible" in (source.channels[key]["reason"] or "")

    source.until(wrapped)
    source.until(lambda values: values[key] is not None)
    assert all(value is None or value == pytest.approx(0.455, rel=1e-3) for value in seen)
    assert source.channels[key]["method"] == "measured"


def test_a_pair_over_which_the_clock_ran_backwards_is_dropped(
    driver: FakeDriver, remote: Start
) -> None:
    source = remote(driver, interval_s=FAST)
    given(source)
    driver.set(gpm_clock=-9_000_000)
    metric, seen = "hw.gpu.fp64.activity", []  # its counter stands still

    def dropped(values: dict[tuple[str, str], float | None]) -> bool:
        seen.append(values["gpu0", DRAM])
        told = [each["reason"] or "" for each in source.changes if each["metric"] == metric]
        return any("is impossible" in reason for reason in told)

    source.until(dropped)
    assert given(source) == {m: pytest.approx(v, rel=1e-3) for m, v in EXPECTED.items()}
    assert all(value is None or value == pytest.approx(0.455, rel=1e-3) for value in seen)


def test_a_permission_taken_back_is_told_once_and_its_return_too(
    driver: FakeDriver, remote: Start
) -> None:
    source = remote(driver, interval_s=FAST)
    given(source)
    driver.fail("nvmlGpmSampleGet", NO_PERMISSION)
    source.until(lambda values: source.channels["gpu0", DRAM]["method"] == "unavailable")
    values = source.sample()
    assert all(values["gpu0", metric] is None for metric in EXPECTED)
    assert values["gpu0", OTHER] == 252.5
    for metric in EXPECTED:
        assert "nvmlGpmSampleGet: no permission" in source.channels["gpu0", metric]["reason"]
    driver.work("nvmlGpmSampleGet")
    assert given(source) == {m: pytest.approx(v, rel=1e-3) for m, v in EXPECTED.items()}
    source.sample()
    assert [(event["kind"], event["device"]) for event in source.events] == [
        ("gpm-lost", "gpu0"),
        ("gpm-back", "gpu0"),
    ]
    assert "outside containers" in source.events[0]["text"]


def test_a_call_that_hangs_holds_up_its_own_gpu_alone(driver: FakeDriver, remote: Start) -> None:
    driver.resize(2)
    driver.gpm(RATES)
    source = remote(driver, interval_s=FAST, sample_patience_s=0.25)
    given(source)
    given(source, "gpu1")
    driver.delay("nvmlGpmSampleGet", HOUR, gpu=0)

    def told(values: dict[tuple[str, str], float | None]) -> bool:
        return source.channels["gpu0", DRAM]["method"] != "measured"

    source.until(told)
    given(source, "gpu1")
    source.until(lambda values: values["gpu1", OTHER] == 252.5)
    for metric in (BANDWIDTH, OTHER):
        reason = source.channels["gpu0", metric]["reason"]
        assert reason.startswith("nvmlGpmSampleGet has not answered for over 3 s")
    driver.gpm({10: 10.0}, gpu=0)
    driver.work("nvmlGpmSampleGet", gpu=0)
    # Never the mean over the whole silence.
    assert given(source)[DRAM] == pytest.approx(0.1, rel=1e-3)
    assert source.channels["gpu0", DRAM]["method"] == "measured"
    source.sample()
    assert [(event["kind"], event["device"]) for event in source.events] == [
        ("nvml-lost", "gpu0"),
        ("nvml-back", "gpu0"),
    ]
    driver.delay("nvmlGpmSampleGet", HOUR, gpu=0)
    source.until(told)
    source.ask("close")


def test_gpm_that_hangs_at_the_start_comes_later(driver: FakeDriver, remote: Start) -> None:
    driver.delay("nvmlGpmQueryDeviceSupport", HOUR)
    source = remote(driver, interval_s=FAST, patience_s=1.0)
    assert not any(source.sample().values())
    driver.work("nvmlGpmQueryDeviceSupport")
    assert given(source)[PCIE] == pytest.approx(EXPECTED[PCIE], rel=1e-3)
    assert "GPM" in source.channels["gpu0", PCIE]["source"]


@pytest.mark.parametrize("down", [True, False])
def test_links_that_are_not_there_have_no_traffic_to_tell(
    driver: FakeDriver, remote: Start, down: bool
) -> None:
    """Seen on an H200 without NVLink: GPM answers 0 B/s, and each link *not supported*."""
    if down:
        driver.set(nvlink_down=1)
    else:
        driver.fail("nvmlDeviceGetNvLinkState", NOT_SUPPORTED)
    driver.gpm({60: 0.0, 61: 0.0})
    source = remote(driver)
    for metric in ("hw.gpu.nvlink.transmit", "hw.gpu.nvlink.receive"):
        assert source.sample()["gpu0", metric] is None
        assert source.channels["gpu0", metric]["reason"] == "no NVLink of this GPU is up"
    assert given(source)[DRAM] is not None


def test_a_driver_that_cannot_say_whether_links_are_up_is_believed(
    driver: FakeDriver, remote: Start
) -> None:
    driver.fail("nvmlDeviceGetNvLinkState", FUNCTION_NOT_FOUND)
    source = remote(driver)
    assert given(source)["hw.gpu.nvlink.receive"] == 20 * 2**20


def test_a_mig_device_is_read_by_its_gpu_instance(driver: FakeDriver, remote: Start) -> None:
    driver.set(mig="MIG-aaaa,MIG-bbbb")
    driver.gpm(RATES | {10: 20.0}, instance=2)
    source = remote(driver, gpus=["MIG-bbbb"], interval_s=FAST)
    assert given(source, "gpu0.mig1")[DRAM] == pytest.approx(0.20, rel=1e-3)
    why = source.channels["gpu0.mig1", BANDWIDTH]["reason"]
    assert "MIG device" in why and "calibrate" not in why
    for metric in (PCIE, "hw.gpu.nvlink.receive"):
        assert "whole GPU" in source.channels["gpu0.mig1", metric]["reason"]
    assert source.sample()["gpu0.mig1", PCIE] is None


def test_every_sample_of_a_recording_has_a_pair_also_off_the_beat(
    driver: FakeDriver, remote: Start
) -> None:
    source = remote(driver, interval_s=0.5)
    for pause in (0.15, 0.35, 0.5, 0.5, 0.15):
        time.sleep(pause)
        assert source.sample()["gpu0", DRAM] == pytest.approx(0.455, rel=1e-3)


@pytest.mark.parametrize(
    ("capability", "says"), [("8.0", "--dcgm"), ("6.1", "Hopper"), ("9.0", "virtual GPU")]
)
def test_a_gpu_without_gpm_says_what_it_needs(
    tmp_path: Path, remote: Start, capability: str, says: str
) -> None:
    driver = FakeDriver(tmp_path)
    driver.set(compute_capability=capability)
    source = remote(driver)
    reason = source.channels["gpu0", BANDWIDTH]["reason"]
    assert "GPM" in reason and says in reason
    assert ("--dcgm" in reason) == (capability == "8.0")
    assert source.sample()["gpu0", PCIE] == 120_000_000


@pytest.mark.parametrize("function", ["nvmlGpmSampleGet", "nvmlGpmMetricsGet"])
def test_a_gpu_that_says_yes_and_fails_has_no_gpm(
    driver: FakeDriver, remote: Start, function: str
) -> None:
    driver.fail(function, NOT_SUPPORTED)
    source = remote(driver)
    reason = source.channels["gpu0", DRAM]["reason"]
    assert function in reason and "not supported" in reason and "says yes" in reason


def test_an_unknown_peak_leaves_the_share_and_takes_the_bytes(
    driver: FakeDriver, remote: Start
) -> None:
    driver.fail("nvmlDeviceGetMemoryBusWidth", NOT_SUPPORTED)
    source = remote(driver, interval_s=FAST)
    values = given(source)
    assert values[DRAM] == pytest.approx(0.455, rel=1e-3) and BANDWIDTH not in values
    assert "peak DRAM bandwidth is not known" in source.channels["gpu0", BANDWIDTH]["reason"]


def test_no_pair_spans_a_loss_of_the_gpu(driver: FakeDriver, remote: Start) -> None:
    source = remote(driver, interval_s=FAST)
    given(source)
    driver.lose(0)
    source.until(lambda values: source.channels["gpu0", DRAM]["method"] == "unavailable")
    assert "lost" in source.channels["gpu0", DRAM]["reason"]
    driver.gpm({10: 90.0})
    driver.restore(0)
    assert given(source)[DRAM] == pytest.approx(0.9, rel=1e-3)
    assert source.channels["gpu0", PCIE]["source"].startswith("NVML GPM")
    source.sample()
    assert [event["kind"] for event in source.events] == ["gpu-lost", "gpu-back"]


LEAK = """
import ctypes, json, os, resource
import pynvml
from gpuwatch.telemetry.nvml.gpm import GpmSamples

def rss():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()

pynvml.nvmlInit()
live = ctypes.CDLL("libnvidia-ml.so.1").fakeNvmlGpmSamples
pairs = GpmSamples(pynvml, lambda name, function, *arguments: function(*arguments), False)
pairs.aim(pynvml.nvmlDeviceGetHandleByIndex(0))
for _ in range(500):
    pairs.take()
before = rss()
for _ in range(10000):
    pair = pairs.take()
held, grown = live(), rss() - before
pairs.free()
print(json.dumps([held, grown, live(), pair[1][0]]))
"""


def test_ten_thousand_pairs_hold_two_samples_and_no_more_memory(driver: FakeDriver) -> None:
    driver.set(gpm_minimum=0)
    done = subprocess.run(
        [sys.executable, "-c", LEAK], env=driver.env, capture_output=True, text=True, check=True
    )
    held, grown, after, (code, value) = json.loads(done.stdout)
    assert (held, after, code) == (2, 0, 0)
    assert grown < 2**20
    assert value == pytest.approx(80, rel=0.2)


def test_a_recording_measures_the_bandwidth(driver: FakeDriver, cli: Cli, tmp_path: Path) -> None:
    cli.variables |= driver.variables
    out = tmp_path / "out"
    cli("--record", "--quiet", "--interval", "0.2", "--out", out, "--duration", "2s")
    found = json.loads(cli.read("show", sessions(out)[-1], "--format", "json").stdout)
    metrics = next(device for device in found["devices"] if device["kind"] == "gpu")["metrics"]
    for name, value in EXPECTED.items():
        assert metrics[name]["method"] == "measured", metrics[name]
        assert metrics[name]["mean"] == pytest.approx(value, rel=1e-3)


def test_what_cannot_be_is_no_value() -> None:
    share, rate = WANTED[0], WANTED[7]
    assert reading_of(share, 0, 45.5).value == pytest.approx(0.455)
    assert reading_of(share, 0, 100.4).value == 1.0
    assert reading_of(rate, 0, 2.0).value == 2 * 2**20
    for wanted, raw in [
        *((share, raw) for raw in (math.nan, math.inf, -1.0, -0.0, 102.0, 1.8e17)),
        *((rate, raw) for raw in (math.nan, math.inf, -1.0, 1.8e13)),
    ]:
        reading = reading_of(wanted, 0, raw)
        assert reading.value is None and reading.reason
    assert "no permission" in str(reading_of(share, NO_PERMISSION, 0.0).reason)


def test_what_a_mig_device_s_links_move_is_the_whole_gpu_s() -> None:
    for wanted in WANTED:
        given = reading_of(wanted, 0, 10.0, mig=True)
        assert (given.value is None) == ("pcie" in wanted.metric or "nvlink" in wanted.metric)
