from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml
import pytest

from tests.fake_nvml import (
    DRIVER_NOT_LOADED,
    NO_PERMISSION,
    NOT_FOUND,
    NOT_SUPPORTED,
    UNKNOWN,
    VERSION_MISMATCH,
    FakeDriver,
    uuid,
)
from tests.waiting import until

Start = Callable[..., Any]
BANDWIDTH = "hw.gpu.memory.bandwidth"
PCIE = "nvmlDeviceGetPcieThroughput"
FAN = "hw.gpu.fan.speed_ratio"
HOUR = 3600
"""How long a call that hangs takes, in seconds: longer than a test may."""
GPUS = ("gpu0", "gpu1", "gpu2")

BY_GPM = {
    BANDWIDTH,
    "hw.gpu.dram.activity",
    "hw.gpu.sm.activity",
    "hw.gpu.sm.occupancy",
    "hw.gpu.tensor.activity",
    "hw.gpu.fp64.activity",
    "hw.gpu.fp32.activity",
    "hw.gpu.fp16.activity",
    "hw.gpu.nvlink.transmit",
    "hw.gpu.nvlink.receive",
}

EXPECTED = {
    "hw.gpu.utilization": 0.40,
    "hw.gpu.memory.usage": 12 * 2**30,
    "hw.gpu.memory.busy": 0.25,
    **dict.fromkeys(BY_GPM),
    "hw.gpu.power": 252.5,
    "hw.gpu.power.average": 250.5,
    "hw.gpu.energy": 5000.25,
    "hw.gpu.temperature": 47,
    FAN: None,
    "hw.gpu.performance.state": 0,
    "hw.gpu.clock.sm": 1_755_000_000,
    "hw.gpu.clock.memory": 2_619_000_000,
    "hw.gpu.throttle.power": 0,
    "hw.gpu.throttle.thermal": 0,
    "hw.gpu.ecc.corrected": 0,
    "hw.gpu.ecc.uncorrected": 0,
    "hw.gpu.pcie.transmit": 120_000_000,
    "hw.gpu.pcie.receive": 340_000_000,
    "hw.gpu.pcie.generation": 5,
    "hw.gpu.pcie.width": 16,
    "hw.gpu.encoder.utilization": 0,
    "hw.gpu.decoder.utilization": 0,
}
ABSENT = BY_GPM | {FAN}
"""What the driver does not have unless a test gives it: GPM, and a fan."""

ALONE = {
    "nvmlDeviceGetUtilizationRates": {"hw.gpu.utilization", "hw.gpu.memory.busy"},
    "nvmlDeviceGetMemoryInfo": {"hw.gpu.memory.usage"},
    "nvmlDeviceGetMemoryInfo_v2": set(),
    "nvmlDeviceGetFieldValues": {"hw.gpu.power.average"},
    "nvmlDeviceGetTotalEccErrors": {"hw.gpu.ecc.corrected", "hw.gpu.ecc.uncorrected"},
    "nvmlDeviceGetCurrentClocksEventReasons": set(),
    "nvmlDeviceGetCurrentClocksThrottleReasons": set(),
    "nvmlDeviceGetPowerUsage": set(),
    "nvmlDeviceGetTotalEnergyConsumption": set(),
    "nvmlDeviceGetFieldValues:83": set(),
    "nvmlDeviceGetTemperature": set(),
    "nvmlDeviceGetTemperatureV": set(),
    "nvmlDeviceGetClockInfo": {"hw.gpu.clock.sm", "hw.gpu.clock.memory"},
    PCIE: {"hw.gpu.pcie.transmit", "hw.gpu.pcie.receive"},
    "nvmlDeviceGetFanSpeed": set(),
    "nvmlDeviceGetPerformanceState": {"hw.gpu.performance.state"},
    "nvmlDeviceGetCurrPcieLinkGeneration": {"hw.gpu.pcie.generation"},
    "nvmlDeviceGetCurrPcieLinkWidth": {"hw.gpu.pcie.width"},
    "nvmlDeviceGetEncoderUtilization": {"hw.gpu.encoder.utilization"},
    "nvmlDeviceGetDecoderUtilization": {"hw.gpu.decoder.utilization"},
    "nvmlDeviceGetComputeRunningProcesses": set(),
    "nvmlDeviceGetGraphicsRunningProcesses": set(),
}

NOW = {
    "fan.speed_ratio": 0.62,
    "encoder.utilization": 0.35,
    "decoder.utilization": 0.05,
    "pcie.generation": 3,
    "pcie.width": 8,
    "performance.state": 8,
}

FACTS = {
    "nvmlSystemGetDriverVersion": "driver.version",
    "nvmlSystemGetCudaDriverVersion": "cuda.driver.version",
    "nvmlDeviceGetCudaComputeCapability": "compute.capability",
    "nvmlDeviceGetNumGpuCores": "core.count",
    "nvmlDeviceGetMemoryBusWidth": "memory.bus.width",
    "nvmlDeviceGetEnforcedPowerLimit": "power.limit",
    "nvmlDeviceGetPciInfo": "pci.bus.id",
    "nvmlDeviceGetMigMode": "mig.enabled",
    "nvmlDeviceGetEccMode": "ecc.enabled",
    "nvmlDeviceGetPersistenceMode": "persistence.enabled",
    "nvmlDeviceGetComputeMode": "compute.mode",
    "nvmlDeviceGetSupportedEventTypes": "xid.told",
}


@pytest.mark.parametrize("gpus", [1, 8])
def test_every_gpu_is_measured_in_si_base_units(tmp_path: Path, remote: Start, gpus: int) -> None:
    source = remote(FakeDriver(tmp_path, gpus=gpus))
    values = source.sample()
    assert values == {
        (f"gpu{n}", metric): value for n in range(gpus) for metric, value in EXPECTED.items()
    }
    for (_, metric), channel in source.channels.items():
        missing = metric in ABSENT
        assert channel["method"] == ("unavailable" if missing else "measured")
        assert metric not in BY_GPM or "GPM" in channel["reason"]
        assert metric != FAN or "not supported" in channel["reason"]
    assert source.events == []


def test_facts_are_in_si_base_units(tmp_path: Path, remote: Start) -> None:
    device = remote(FakeDriver(tmp_path)).first["devices"][0]
    assert (device["id"], device["uuid"]) == ("gpu0", uuid(0))
    assert device["attributes"] == {
        "index": 0,
        "driver.version": "575.57.08",
        "cuda.driver.version": "12.9",
        "compute.capability": "9.0",
        "core.count": 16896,
        "memory.total": 85520809984,
        "memory.bus.width": 5120,
        "clock.sm.max": 1_980_000_000,
        "clock.memory.max": 2_619_000_000,
        "power.limit": 700.0,
        "temperature.slowdown": 89,
        "temperature.operating.max": 87,
        "pci.bus.id": "00000000:18:00.0",
        "mig.enabled": False,
        "ecc.enabled": True,
        "persistence.enabled": True,
        "compute.mode": "default",
        "xid.told": True,
    }


@pytest.mark.parametrize("function", ALONE)
def test_a_call_that_is_not_supported_takes_only_its_own_metrics_along(
    tmp_path: Path, remote: Start, function: str
) -> None:
    if function == "nvmlDeviceGetTemperature" and not hasattr(pynvml, "nvmlDeviceGetTemperatureV"):
        pytest.skip("this version of the binding knows no other call for the temperature")
    driver = FakeDriver(tmp_path, gpus=2)
    driver.fail(function, NOT_SUPPORTED, gpu=1)
    source = remote(driver)
    values = source.sample()
    for metric, value in EXPECTED.items():
        assert values["gpu0", metric] == value
        channel = source.channels["gpu1", metric]
        if metric in ALONE[function]:
            assert values["gpu1", metric] is None
            assert channel["method"] == "unavailable"
            assert function in channel["reason"] and "not supported" in channel["reason"]
        elif metric not in ABSENT:
            got = values["gpu1", metric]
            assert got is not None and bool(got) == bool(value), "no zero for unknown"
            assert channel["method"] == "measured"


def test_fans_engines_link_and_performance_state_are_what_the_driver_says(
    tmp_path: Path, remote: Start
) -> None:
    driver = FakeDriver(tmp_path, gpus=2)
    driver.set(gpu=0, fan=62, encoder=35, decoder=5, pcie_generation=3, pcie_width=8, performance=8)
    driver.set(gpu=1, performance=32)
    source = remote(driver)
    values = source.sample()
    assert {name: values["gpu0", f"hw.gpu.{name}"] for name in NOW} == NOW
    assert "asked for" in source.channels["gpu0", FAN]["source"], "no sensor turns with the fan"
    state = ("gpu1", "hw.gpu.performance.state")
    assert values[state] is None and "gave 32 state, which is" in source.channels[state]["reason"]
    driver.set(gpu=0, fan=105, encoder=0)
    driver.set(gpu=1, performance=2)
    source.until(
        lambda values: (
            values["gpu0", FAN] == 1.05
            and values["gpu0", "hw.gpu.encoder.utilization"] == 0
            and values[state] == 2
        )
    )


@pytest.mark.parametrize("function", FACTS)
def test_a_fact_that_is_not_given_is_none_and_costs_no_channel(
    tmp_path: Path, remote: Start, function: str
) -> None:
    driver = FakeDriver(tmp_path)
    driver.fail(function, NOT_SUPPORTED)
    source = remote(driver)
    attributes = source.first["devices"][0]["attributes"]
    assert {key for key, value in attributes.items() if value is None} == {FACTS[function]}
    assert all(c["method"] == "measured" for k, c in source.channels.items() if k[1] not in ABSENT)


def test_the_source_says_which_call_gave_the_power(tmp_path: Path, remote: Start) -> None:
    driver = FakeDriver(tmp_path, gpus=4)
    for gpu in (0, 1, 2):
        driver.set(gpu, samples=0)
    driver.fail("nvmlDeviceGetFieldValues:186", NOT_SUPPORTED, gpu=1)
    driver.fail("nvmlDeviceGetFieldValues:186", NOT_SUPPORTED, gpu=2)
    driver.fail("nvmlDeviceGetPowerUsage", NOT_SUPPORTED, gpu=2)
    source = remote(driver)
    values = source.sample()
    told = [
        (source.channels[gpu, "hw.gpu.power"]["source"].split("(")[0], values[gpu, "hw.gpu.power"])
        for gpu in ("gpu0", "gpu1", "gpu2", "gpu3")
    ]
    assert told == [
        ("NVML field 186 ", 252.5),
        ("NVML nvmlDeviceGetPowerUsage ", 251.0),
        ("NVML field 185 ", 250.5),
        ("NVML nvmlDeviceGetSamples ", 252.5),
    ]


def test_memory_of_version_1_is_said_to_include_the_reserve(tmp_path: Path, remote: Start) -> None:
    driver = FakeDriver(tmp_path)
    driver.fail("nvmlDeviceGetMemoryInfo_v2", NOT_SUPPORTED)
    source = remote(driver)
    assert source.sample()["gpu0", "hw.gpu.memory.usage"] == 12 * 2**30 + 680 * 2**20
    assert "reserve included" in source.channels["gpu0", "hw.gpu.memory.usage"]["source"]


def test_a_call_that_fails_for_a_while_comes_back(tmp_path: Path, remote: Start) -> None:
    driver = FakeDriver(tmp_path)
    driver.set(samples=0)
    source = remote(driver)
    power = ("gpu0", "hw.gpu.power")
    driver.fail("nvmlDeviceGetFieldValues", UNKNOWN)
    source.until(lambda values: values[power] is None)
    assert source.channels[power]["method"] == "unavailable"
    assert "unknown error" in source.channels[power]["reason"]
    driver.work("nvmlDeviceGetFieldValues")
    source.until(lambda values: values[power] == 252.5)
    assert source.channels[power]["method"] == "measured"
    assert source.events == []


def test_a_permission_refused_at_the_start_may_be_given_later(
    tmp_path: Path, remote: Start
) -> None:
    driver = FakeDriver(tmp_path)
    driver.fail("nvmlDeviceGetFieldValues:83", NO_PERMISSION)
    source = remote(driver)
    energy = ("gpu0", "hw.gpu.energy")
    assert "no permission" in source.channels[energy]["reason"]
    driver.work("nvmlDeviceGetFieldValues:83")
    source.until(lambda values: values[energy] == 5000.25)


def test_a_lost_gpu_is_reported_once_and_comes_back_while_the_other_goes_on(
    tmp_path: Path, remote: Start
) -> None:
    driver = FakeDriver(tmp_path, gpus=2)
    source = remote(driver)
    driver.lose(0)
    source.until(lambda values: all(v is None for k, v in values.items() if k[0] == "gpu0"))
    for (gpu, metric), channel in source.channels.items():
        if metric not in ABSENT:
            assert channel["method"] == ("unavailable" if gpu == "gpu0" else "measured")
        assert gpu == "gpu1" or "lost" in channel["reason"]
    driver.restore(0)
    by_nvml = [key for key in source.channels if key[1] not in ABSENT]
    source.until(lambda _: all(source.channels[key]["method"] == "measured" for key in by_nvml))
    assert [(event["kind"], event["device"]) for event in source.events] == [
        ("gpu-lost", "gpu0"),
        ("gpu-back", "gpu0"),
    ]
    assert "Xid" in source.events[0]["text"]


def test_a_gpu_lost_from_the_start_does_not_keep_the_others_from_being_watched(
    tmp_path: Path, remote: Start
) -> None:
    driver = FakeDriver(tmp_path, gpus=2)
    driver.lose(1)
    source = remote(driver)
    assert source.sample()["gpu0", "hw.gpu.power"] == 252.5
    assert source.first["devices"][1]["uuid"] is None
    assert "lost" in source.channels["gpu1", "hw.gpu.power"]["reason"]
    driver.restore(1)
    source.until(lambda values: values["gpu1", "hw.gpu.power"] == 252.5)


@pytest.mark.parametrize(
    ("code", "reason", "hint"),
    [
        (DRIVER_NOT_LOADED, "driver is not loaded", "modprobe"),
        (VERSION_MISMATCH, "different versions", "reboot"),
        (NO_PERMISSION, "no permission", "administrator"),
        (UNKNOWN, "unknown error", "container"),
        (777, "NVML error 777", "nvidia-smi"),
    ],
)
def test_a_driver_that_does_not_start_is_told_with_what_mends_it(
    tmp_path: Path, remote: Start, code: int, reason: str, hint: str
) -> None:
    driver = FakeDriver(tmp_path)
    driver.init(code)
    told = remote(driver).first["unavailable"]
    assert reason in told["reason"]
    assert hint in told["hint"]


def test_a_missing_library_is_told(remote: Start) -> None:
    env = {key: value for key, value in os.environ.items() if key != "LD_LIBRARY_PATH"}
    first = remote(env).first
    if "unavailable" not in first:
        pytest.skip("this machine has an NVIDIA driver")
    assert "libnvidia-ml.so.1" in first["unavailable"]["reason"]


def test_a_driver_that_never_answers_is_given_up(tmp_path: Path, remote: Start) -> None:
    driver = FakeDriver(tmp_path)
    driver.delay("nvmlInit", 60)
    told = remote(driver, patience_s=0.5).first["unavailable"]
    assert "did not answer" in told["reason"]


def told_of_hanging(source: Any, gpu: str, call: str) -> None:
    """One event when a call hung, one when it had answered, each naming GPU and call."""
    source.sample()
    assert [(event["kind"], event["device"]) for event in source.events] == [
        ("nvml-lost", gpu),
        ("nvml-back", gpu),
    ]
    assert all(event["text"].startswith(call) for event in source.events)


@pytest.mark.parametrize("call", ["nvmlDeviceGetUtilizationRates", PCIE])
def test_a_call_that_hangs_holds_up_its_own_gpu_alone(
    tmp_path: Path, remote: Start, call: str
) -> None:
    driver = FakeDriver(tmp_path, gpus=3)
    source = remote(driver, sample_patience_s=0.25)
    driver.delay(call, HOUR, gpu=1)
    power = ("gpu1", "hw.gpu.power")
    source.until(
        lambda values: "has not answered for over" in (source.channels[power]["reason"] or "")
    )
    assert call in source.channels[power]["reason"]
    # One that had no processor is left out too, and comes back.
    source.until(lambda values: [gpu for gpu in GPUS if values[gpu, power[1]] is None] == ["gpu1"])
    source.ask("be patient")  # so a sample that waited for the call again would take an hour
    source.sample()
    driver.work(call, gpu=1)
    source.until(lambda values: values[power] == 252.5)
    told_of_hanging(source, "gpu1", call)


def test_close_returns_while_calls_hang(tmp_path: Path, remote: Start) -> None:
    driver = FakeDriver(tmp_path, gpus=2)
    source = remote(driver, sample_patience_s=0.25)
    driver.delay("nvmlDeviceGetUtilizationRates", HOUR, gpu=1)
    driver.delay(PCIE, HOUR, gpu=0)
    receive = ("gpu0", "hw.gpu.pcie.receive")
    source.until(lambda values: values["gpu1", "hw.gpu.power"] is values[receive] is None)
    source.ask("close")


def test_gpus_are_chosen_by_index_uuid_and_unique_beginning(tmp_path: Path, remote: Start) -> None:
    driver = FakeDriver(tmp_path, gpus=4)
    source = remote(driver, gpus=["3", uuid(1), "GPU-00000002", 3])
    assert [device["id"] for device in source.first["devices"]] == ["gpu3", "gpu1", "gpu2"]


@pytest.mark.parametrize("wrong", ["4", "GPU-0000000", "GPU-ffff", "MIG-nothing", ""])
def test_a_selection_that_fits_no_gpu_says_what_exists(
    tmp_path: Path, remote: Start, wrong: str
) -> None:
    error = remote(FakeDriver(tmp_path, gpus=4), gpus=[wrong]).first["error"]
    assert repr(wrong) in error
    assert all(uuid(gpu) in error for gpu in range(4))


def test_a_mig_device_is_watched_with_what_nvml_gives_for_it(tmp_path: Path, remote: Start) -> None:
    driver = FakeDriver(tmp_path, gpus=2)
    driver.set(gpu=1, mig="MIG-aaaa,MIG-bbbb")
    source = remote(driver, gpus=["MIG-bbbb"])
    device = source.first["devices"][0]
    assert (device["id"], device["uuid"]) == ("gpu1.mig1", "MIG-bbbb")
    assert device["attributes"]["mig.parent"] == uuid(1)
    values = source.sample()
    assert values["gpu1.mig1", "hw.gpu.memory.usage"] == 12 * 2**30
    assert values["gpu1.mig1", "hw.gpu.utilization"] is None


def test_what_the_driver_answers_for_a_mig_device_of_its_whole_gpu_is_not_taken(
    tmp_path: Path, remote: Start
) -> None:
    driver = FakeDriver(tmp_path)
    driver.set(mig="MIG-aaaa", mig_answers=1)
    source = remote(driver, gpus=["MIG-aaaa"])
    for _ in range(2):
        given = {metric for (_, metric), value in source.sample().items() if value is not None}
        assert given == {"hw.gpu.memory.usage"}
        driver.lose(0)
        source.until(lambda values: not any(values.values()))
        driver.restore(0)
        source.until(lambda values: any(values.values()))
    for metric in ("power", "energy", "temperature", "clock.sm", "throttle.power", "ecc.corrected"):
        assert "whole GPU" in source.channels["gpu0.mig0", f"hw.gpu.{metric}"]["reason"]
    attributes = source.first["devices"][0]["attributes"]
    assert attributes["power.limit"] is attributes["temperature.slowdown"] is None
    assert attributes["core.count"] is None


def test_processes_are_listed_with_unknown_memory_as_none(tmp_path: Path, remote: Start) -> None:
    driver = FakeDriver(tmp_path, gpus=3)
    driver.processes(0, (4711, 2**30, "compute"), (4712, None, "compute"), (9, 5, "graphics"))
    driver.fail("nvmlDeviceGetComputeRunningProcesses", NOT_FOUND, gpu=1)
    driver.fail("nvmlDeviceGetComputeRunningProcesses", NOT_SUPPORTED, gpu=2)
    assert remote(driver).ask("processes") == {
        "gpu0": [
            {"pid": 4711, "used": 2**30, "kind": "compute"},
            {"pid": 4712, "used": None, "kind": "compute"},
            {"pid": 9, "used": 5, "kind": "graphics"},
        ],
        "gpu1": [],
        "gpu2": None,
    }


def test_a_machine_whose_every_gpu_was_lost_recovers(tmp_path: Path, remote: Start) -> None:
    driver = FakeDriver(tmp_path, gpus=2)
    source = remote(driver)
    driver.lose(0)
    driver.lose(1)
    source.until(lambda values: all(value is None for value in values.values()))
    driver.restore(0)
    driver.restore(1)
    source.until(lambda values: values["gpu0", "hw.gpu.power"] == 252.5)
    source.until(lambda values: values["gpu1", "hw.gpu.energy"] == 5000.25)


def test_energy_is_the_same_by_field_and_by_function_and_says_which(
    tmp_path: Path, remote: Start
) -> None:
    driver = FakeDriver(tmp_path, gpus=2)
    driver.set(energy=2**40 + 250)  # more than 32 bits of millijoules
    driver.fail("nvmlDeviceGetFieldValues:83", NOT_SUPPORTED, gpu=1)
    source = remote(driver)
    values = source.sample()
    assert values["gpu0", "hw.gpu.energy"] == values["gpu1", "hw.gpu.energy"] == (2**40 + 250) / 1e3
    by = {gpu: source.channels[gpu, "hw.gpu.energy"]["source"] for gpu in ("gpu0", "gpu1")}
    assert by == {
        "gpu0": "NVML field 83 (total energy)",
        "gpu1": "NVML nvmlDeviceGetTotalEnergyConsumption",
    }


def test_energy_is_of_the_sample_that_has_it(tmp_path: Path, remote: Start) -> None:
    """It is not held between readings, so no value is dated by a later sample."""
    driver = FakeDriver(tmp_path)
    source = remote(driver)
    assert source.sample()["gpu0", "hw.gpu.energy"] == 5000.25
    driver.set(energy=7_000_000)
    assert until(lambda: source.sample()["gpu0", "hw.gpu.energy"]) == 7000.0


def test_one_field_that_fails_takes_no_other_along(tmp_path: Path, remote: Start) -> None:
    driver = FakeDriver(tmp_path)
    source = remote(driver)
    energy, average = ("gpu0", "hw.gpu.energy"), ("gpu0", "hw.gpu.power.average")
    driver.fail("nvmlDeviceGetFieldValues:185", UNKNOWN)
    source.until(lambda values: values[average] is None)
    driver.set(energy=7_000_000)
    source.until(lambda values: values[energy] == 7000.0)
    assert "unknown error" in source.channels[average]["reason"]
    driver.work("nvmlDeviceGetFieldValues:185")
    source.until(lambda values: values[average] == 250.5)
    assert source.channels[average]["method"] == "measured"


@pytest.mark.parametrize("lost", [0, 1])
def test_a_gpu_that_is_lost_at_the_start_has_its_model_and_address_from_the_kernel(
    tmp_path: Path, remote: Start, lost: int
) -> None:
    kernel = tmp_path / "gpus"
    for gpu in range(2):
        folder = kernel / f"0000:{0x18 + gpu:02x}:00.0"
        folder.mkdir(parents=True)
        (folder / "information").write_text(f"Model: \t\t NVIDIA H{gpu}\nIRQ:   \t\t 7\n")
    driver = FakeDriver(tmp_path, gpus=2)
    driver.lose(lost)
    devices = remote(driver, kernel_gpus=str(kernel)).first["devices"]
    address = f"0000:{0x18 + lost:02x}:00.0"
    assert devices[lost]["name"] == f"NVIDIA H{lost} at {address}"
    assert devices[lost]["attributes"]["pci.bus.id"] == address
    assert devices[lost]["attributes"]["driver.version"] == "575.57.08", "no GPU answers for that"
    assert devices[1 - lost]["name"] == "NVIDIA H100 80GB HBM3"


def test_a_lost_gpu_that_the_kernel_does_not_name_stays_unknown(
    tmp_path: Path, remote: Start
) -> None:
    driver = FakeDriver(tmp_path)
    driver.lose(0)
    (device,) = remote(driver, kernel_gpus=str(tmp_path / "none")).first["devices"]
    assert device["name"] == "unknown GPU" and device["attributes"]["driver.version"]
