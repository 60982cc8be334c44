"""GPUs at work: their readings change once a second, and a process is on each."""

from __future__ import annotations

import os

from tests.fake_nvml import FakeDriver

_MEMORY = 12 * 2**30


def change_each_second(driver: FakeDriver, gpus: int) -> None:
    """The stand-in works them out: read from a file each second they would cost as much as what
    is measured. The process is this one."""
    driver.set(
        utilization="~55 99",
        memory_busy="~27 49",
        memory_used=f"~{_MEMORY} {_MEMORY + 2**30}",
        power="~447500 645500",
        power_instant="~447500 645500",
        temperature="~53 64",
        clock_sm="~1870 1782",
        process_utilization=f"{os.getpid()}:80/40",
    )
    for gpu in range(gpus):
        driver.processes(gpu, (os.getpid(), _MEMORY, "compute"))
