"""The stand-in for the driver answers as an H200 did: periods, buffers, codes, cost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.fake_nvml import FakeDriver

_ASK = """
import json, time
from pynvml import *
nvmlInit()
gpu = nvmlDeviceGetHandleByIndex(0)
def code(call):
    try: return call()
    except NVMLError as error: return error.value
samples = [[s.timeStamp for s in nvmlDeviceGetSamples(gpu, kind, 0)[1]] for kind in range(5)]
begun = time.thread_time()
energy = nvmlDeviceGetTotalEnergyConsumption(gpu)
took = time.thread_time() - begun
fields = nvmlDeviceGetFieldValues(gpu, [83, 191, 185, 186, 7, 274])
print(json.dumps({
    "kept": [len(kind) for kind in samples],
    "apart": sorted({b - a for kind in samples for a, b in zip(kind, kind[1:])}),
    "none": [code(lambda: nvmlDeviceGetSamples(gpu, kind, 0)) for kind in (5, 6, 7)],
    "fields": [field.nvmlReturn for field in fields],
    "energy_is_renewed": fields[0].value.ullVal >= energy and fields[1].value.ullVal >= energy,
    "watts": [fields[2].value.uiVal, nvmlDeviceGetPowerUsage(gpu)],
    "video": nvmlDeviceGetEncoderUtilization(gpu)[1],
    "took_ms": took * 1e3,
}))
"""


def _answers(driver: FakeDriver, latency: str = "0") -> dict[str, Any]:
    env = driver.env | {"FAKE_NVML_LATENCY_US": latency}
    done = subprocess.run([sys.executable, "-c", _ASK], env=env, check=True, capture_output=True)
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


def test_periods_buffers_and_codes_are_those_of_the_card(tmp_path: Path) -> None:
    driver = FakeDriver(tmp_path)
    driver.set(power=252_500, power_average=252_500)
    driver.load(0.1, 0.05)
    answers = _answers(driver)
    assert answers["kept"] == [119, 71, 71, 71, 71]
    assert answers["apart"] == [20_000, 200_000]
    assert answers["none"] == [6, 6, 2]
    assert answers["fields"] == [0, 0, 0, 0, 3, 2]
    assert answers["energy_is_renewed"]
    assert answers["watts"] == [156_250, 156_250], "means of a second"
    assert answers["video"] == 100_000


def test_a_call_takes_processor_time_only_where_that_is_asked_for(tmp_path: Path) -> None:
    assert _answers(FakeDriver(tmp_path), "card")["took_ms"] >= 3.2
