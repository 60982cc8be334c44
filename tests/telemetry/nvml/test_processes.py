"""The lists of processes: refused and not believed are not empty."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.fake_nvml import NO_PERMISSION, FakeDriver
from tests.waiting import until

Start = Callable[..., Any]


def _listed(source: Any) -> Any:
    return source.ask("processes")["gpu0"]


def _kinds(source: Any) -> list[str]:
    source.sample()
    return [event["kind"] for event in source.of_processes]


def test_a_list_that_stays_empty_while_the_gpu_is_busy_is_not_believed(
    tmp_path: Path, remote: Start
) -> None:
    driver = FakeDriver(tmp_path)
    driver.set(utilization=0)
    source = remote(driver)
    source.sample()
    assert _listed(source) == []
    driver.set(utilization=50)
    until(lambda: _kinds(source) == ["processes-lost"])
    assert _listed(source) is None
    assert "stays empty while kernels run" in source.of_processes[0]["text"]
    driver.set(utilization=0)
    source.sample()
    assert _listed(source) is None, "who does not tell while it is busy does not tell later"
    driver.processes(0, (os.getpid(), 7, "compute"))
    until(lambda: _kinds(source)[-1] == "processes-back")
    assert [each["pid"] for each in _listed(source)] == [os.getpid()]


def test_a_refused_list_is_told_with_the_reason(tmp_path: Path, remote: Start) -> None:
    driver = FakeDriver(tmp_path)
    driver.fail("nvmlDeviceGetComputeRunningProcesses", NO_PERMISSION)
    source = remote(driver)
    assert _kinds(source) == ["processes-lost"] and _listed(source) is None
    assert "no permission" in source.of_processes[0]["text"]
    driver.work("nvmlDeviceGetComputeRunningProcesses")
    driver.set(utilization=0)
    until(lambda: _kinds(source) == ["processes-lost", "processes-back"])
