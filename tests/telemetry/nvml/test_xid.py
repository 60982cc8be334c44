from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpuwatch.telemetry.nvml.xid import MEANINGS, WAIT_MS, meaning
from tests.fake_nvml import NO_PERMISSION, FakeDriver

Start = Callable[..., Any]


def _xids(source: Any) -> list[tuple[str, str]]:
    source.sample()
    return [(e["device"], e["text"]) for e in source.events if e["kind"] == "xid"]


def test_an_xid_error_is_an_event_of_its_gpu_with_what_it_means(
    tmp_path: Path, remote: Start
) -> None:
    driver = FakeDriver(tmp_path, gpus=3)
    source = remote(driver)
    source.registered()
    driver.xid(2, 79)
    driver.xid(0, 31)
    source.until(lambda values: len(_xids(source)) == 2)
    assert set(_xids(source)) == {("gpu2", meaning(79)), ("gpu0", meaning(31))}
    assert "fallen off the bus" in meaning(79) and "page fault" in meaning(31)


def test_xid_errors_from_before_the_recording_are_not_told(tmp_path: Path, remote: Start) -> None:
    driver = FakeDriver(tmp_path)
    driver.xid(0, 13)
    source = remote(driver)
    source.registered()
    driver.xid(0, 48)
    source.until(lambda values: bool(_xids(source)))
    assert _xids(source) == [("gpu0", meaning(48))]


def test_a_number_that_is_not_listed_is_told_plainly() -> None:
    assert 999 not in MEANINGS
    assert meaning(999).startswith("Xid 999: see NVIDIA's Xid catalogue")


def test_a_gpu_that_cannot_tell_xid_errors_is_quiet_and_its_attribute_says_so(
    tmp_path: Path, remote: Start
) -> None:
    driver = FakeDriver(tmp_path, gpus=2)
    driver.set(gpu=0, event_types=0)
    source = remote(driver)
    source.registered()
    driver.xid(0, 31)
    driver.xid(1, 43)
    source.until(lambda values: bool(_xids(source)))
    assert [(event["kind"], event["device"]) for event in source.events] == [("xid", "gpu1")]
    told = [device["attributes"]["xid.told"] for device in source.first["devices"]]
    assert told == [False, True]


def test_a_refused_registration_is_told_once(tmp_path: Path, remote: Start) -> None:
    driver = FakeDriver(tmp_path)
    driver.fail("nvmlDeviceRegisterEvents", NO_PERMISSION)
    source = remote(driver)
    source.until(lambda values: bool(source.events))
    assert [event["kind"] for event in source.events] == ["xid-untold"]
    assert "no permission" in source.events[0]["text"]


def test_a_gpu_that_came_back_tells_its_xid_errors_again(tmp_path: Path, remote: Start) -> None:
    driver = FakeDriver(tmp_path)
    source = remote(driver)
    driver.lose(0)
    source.until(lambda values: any(event["kind"] == "gpu-lost" for event in source.events))
    driver.restore(0)
    source.until(lambda values: any(event["kind"] == "gpu-back" for event in source.events))

    # Only what comes after the GPU is registered anew is told, and nothing says when that is.
    while not _xids(source):
        driver.xid(0, 43)
        time.sleep(WAIT_MS / 1000)


def test_closing_does_not_wait_for_an_event(tmp_path: Path, remote: Start) -> None:
    driver = FakeDriver(tmp_path)
    driver.delay("nvmlEventSetWait", 3600)
    source = remote(driver)
    source.registered()
    source.ask("close")
    assert source.ask("waiting")


def test_a_program_ends_well_while_a_wait_goes_on(tmp_path: Path) -> None:
    driver = FakeDriver(tmp_path)
    driver.delay("nvmlEventSetWait", 3600)
    source = (
        "from gpuwatch.telemetry.nvml.source import open_nvml\n"
        "for run in range(3):\n"
        "    source = open_nvml()\n"
        "    source.sample()\n"
        "    source.close()\n"
    )
    command = [sys.executable, "-X", "faulthandler", "-c", source]
    for _ in range(3):
        done = subprocess.run(command, env=driver.env, capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")


def test_a_closed_watch_lets_nvml_go(tmp_path: Path) -> None:
    source = (
        "import time, pynvml\n"
        "from gpuwatch.telemetry.nvml.source import open_nvml\n"
        "for run in range(3):\n"
        "    source = open_nvml()\n"
        "    source.sample()\n"
        "    source.close()\n"
        "until = time.monotonic() + 60\n"
        "while time.monotonic() < until:\n"
        "    try:\n"
        "        pynvml.nvmlSystemGetDriverVersion()\n"
        "    except pynvml.NVMLError_Uninitialized:\n"
        "        break\n"
        "    time.sleep(0.02)\n"
        "else:\n"
        "    raise SystemExit('NVML is still held')\n"
    )
    command = [sys.executable, "-c", source]
    done = subprocess.run(
        command, env=FakeDriver(tmp_path).env, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
