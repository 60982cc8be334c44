"""A GPU that shares the host's memory has the host's, and no PCIe link."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpuwatch.telemetry.nvml.unified import LINK, NO_LINK
from tests.fake_nvml import NOT_SUPPORTED, FakeDriver

Start = Callable[..., Any]
TOTAL = 128 * 2**30


def test_its_memory_is_the_host_s_and_a_link_is_not_invented(tmp_path: Path, remote: Start) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text(f"MemTotal: {TOTAL >> 10} kB\nMemAvailable: {TOTAL >> 11} kB\nOther: 3\n")
    driver = FakeDriver(tmp_path)
    driver.set(compute_capability="12.1", name="NVIDIA GB10", pcie_generation=1, pcie_width=1)
    driver.fail("nvmlDeviceGetMemoryInfo", NOT_SUPPORTED)
    driver.gpm({2: 50.0, 20: 100.0, 21: 200.0})
    source = remote(driver, meminfo=str(meminfo), interval_s=0.2)
    source.until(lambda values: values["gpu0", "hw.gpu.sm.activity"] is not None)
    values = source.sample()
    assert values["gpu0", "hw.gpu.memory.usage"] == TOTAL // 2
    assert "shares the host's memory" in source.channels["gpu0", "hw.gpu.memory.usage"]["source"]
    assert source.first["devices"][0]["attributes"]["memory.total"] == TOTAL
    for metric in LINK:
        assert values["gpu0", metric] is None
        assert source.channels["gpu0", metric]["reason"] == NO_LINK


def test_processes_that_hold_more_than_there_is_are_a_contradiction_told_once(
    tmp_path: Path, remote: Start
) -> None:
    driver = FakeDriver(tmp_path)
    driver.set(memory_total=40 * 2**30)
    driver.processes(0, (1, 30 * 2**30, "compute"), (os.getpid(), 30 * 2**30, "compute"))
    source = remote(driver)
    source.until(lambda values: bool(source.events))
    source.sample()
    (event,) = source.events
    assert event["kind"] == "memory-contradiction"
    assert "hold 60.0 GiB, more than its memory, 40.0 GiB" in event["text"]
