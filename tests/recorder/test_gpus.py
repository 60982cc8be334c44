"""Recording on a machine with GPUs: the real binding against the fake driver, end to end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.core.models import GPUS_OFF, Environment, Workload
from gpuwatch.recorder.sources import Opening, Sources, added
from gpuwatch.runners.base import LaunchSpec
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.writing.store import SessionStore
from tests.conftest import Cli
from tests.fake_nvml import (
    DRIVER_NOT_LOADED,
    NOT_SUPPORTED,
    UNKNOWN,
    VERSION_MISMATCH,
    FakeDriver,
    uuid,
)
from tests.reading import events, facts, log, meta, sessions, show
from tests.waiting import until

GPU_METRICS = {
    "hw.gpu.utilization": 0.40,
    "hw.gpu.memory.usage": 12 * 2**30,
    "hw.gpu.memory.busy": 0.25,
    "hw.gpu.power": None,
    "hw.gpu.temperature": 47,
    "hw.gpu.clock.sm": 1755e6,
    "hw.gpu.clock.memory": 2619e6,
    "hw.gpu.pcie.transmit": 120_000_000,
    "hw.gpu.pcie.receive": 340_000_000,
    "hw.gpu.pcie.generation": 5,
    "hw.gpu.pcie.width": 16,
    "hw.gpu.performance.state": 0,
    "hw.gpu.encoder.utilization": 0,
    "hw.gpu.fan.speed_ratio": 0.45,
}


def record(cli: Cli, out: Path, *arguments: object) -> dict[str, Any]:
    cli("--record", "--quiet", "--interval", "0.1", "--out", out, *arguments)
    found: dict[str, Any] = json.loads(
        cli.read("show", sessions(out)[-1], "--format", "json").stdout
    )
    return found


@pytest.mark.parametrize("gpus", [1, 8])
def test_every_gpu_is_recorded_in_base_units(
    cli: Cli, driver: FakeDriver, tmp_path: Path, gpus: int
) -> None:
    driver.resize(gpus)
    driver.set(fan=45)
    found = record(cli, tmp_path / "out", "--duration", "2s")
    devices = [device for device in found["devices"] if device["kind"] == "gpu"]
    assert [device["id"] for device in devices] == [f"gpu{at}" for at in range(gpus)]
    assert len({device["uuid"] for device in devices}) == gpus
    for device in devices:
        for name, value in GPU_METRICS.items():
            metric = device["metrics"][name]
            assert metric["method"] == "measured" and metric["count"], (name, metric)
            if value is not None:
                assert metric["mean"] == pytest.approx(value), name
        bandwidth = device["metrics"]["hw.gpu.memory.bandwidth"]
        assert bandwidth["method"] == "unavailable" and bandwidth["mean"] is None
        assert bandwidth["reason"]
    pooled = found["metrics"]["hw.gpu.utilization"]
    assert pooled["mean"] == pytest.approx(0.40)
    assert pooled["count"] == sum(d["metrics"]["hw.gpu.utilization"]["count"] for d in devices)


def test_only_the_gpus_that_were_asked_for_are_watched(
    cli: Cli, driver: FakeDriver, tmp_path: Path
) -> None:
    driver.resize(4)
    script = "echo visible $CUDA_VISIBLE_DEVICES; sleep 0.5"
    found = record(cli, tmp_path / "out", "--gpus", "2,0", "--", "sh", "-c", script)
    uuids = {d["id"]: d["uuid"] for d in found["devices"] if d["kind"] == "gpu"}
    assert set(uuids) == {"gpu0", "gpu2"}
    (line,) = log(sessions(tmp_path / "out")[0])
    assert set(line.removeprefix("visible ").split(",")) == set(uuids.values())
    told = cli("--record", "--gpus", "7", "--duration", "1s", code=3).stderr
    assert "7" in told and "Traceback" not in told


@pytest.mark.parametrize(
    ("code", "says", "hint"),
    [
        (DRIVER_NOT_LOADED, "the NVIDIA driver is not loaded", "modprobe nvidia"),
        (VERSION_MISMATCH, "different versions", "reboot"),
        (UNKNOWN, "unknown error", "Xid errors"),
    ],
)
def test_a_driver_that_does_not_start_is_told_once_with_its_mend_and_in_the_summary(
    cli: Cli, driver: FakeDriver, tmp_path: Path, code: int, says: str, hint: str
) -> None:
    driver.init(code)
    out = tmp_path / "out"
    done = cli("--record", "--out", out, "--env", "bare", "--env", "bare", "--", "true")
    (told,) = [line for line in done.stderr.splitlines() if says in line]
    assert hint in told and told.startswith("gpuwatch: ")
    assert done.stderr.index(told) < done.stderr.index("recording to")
    printed = " ".join(done.stdout.split())
    assert printed.count(says) == 1 and hint in printed
    shown = " ".join(cli.read("show", sessions(out)[0]).stdout.split())
    assert says in shown and hint in shown
    metrics = show(cli, sessions(out)[0])["metrics"]
    told = [(metrics[name]["mean"], says in metrics[name]["reason"]) for name in GPU_METRICS]
    assert told == [(None, True)] * len(told)
    assert metrics["hw.cpu.utilization"]["method"] == "measured"
    summary = (sessions(out)[0].parent / "summary.md").read_text()
    assert says in summary and hint in summary
    assert says in cli("--record", "--out", out, "--duration", "0.2s").stderr


def test_a_machine_without_nvidias_library_has_no_gpu_and_no_such_line(
    cli: Cli, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = cli("--record", "--out", out, "--", "true")
    assert "GPU" not in done.stderr + done.stdout


def test_a_call_that_is_not_supported_is_unavailable_never_zero(
    cli: Cli, driver: FakeDriver, tmp_path: Path
) -> None:
    driver.fail("nvmlDeviceGetFanSpeed", NOT_SUPPORTED)
    found = record(cli, tmp_path / "out", "--duration", "1s")
    statistic = found["metrics"]["hw.gpu.fan.speed_ratio"]
    assert (statistic["method"], statistic["mean"], statistic["count"]) == ("unavailable", None, 0)
    assert "not supported" in statistic["reason"]
    assert found["metrics"]["hw.gpu.power"]["method"] == "measured"


def test_the_gpus_of_a_run_are_those_its_processes_use(
    cli: Cli, driver: FakeDriver, tmp_path: Path
) -> None:
    driver.resize(2)
    out = tmp_path / "out"
    seen = tmp_path / "seen"
    waits = f"while [ ! -e {seen} ]; do sleep 0.1; done"
    process = cli.start("--record", "--quiet", "--out", out, "--", "sh", "-c", waits)
    until(lambda: sessions(out) and _workload(sessions(out)[0]))
    pid = _workload(sessions(out)[0])
    driver.processes(1, (pid, 3 * 2**30, "compute"), (1, 2**30, "compute"))

    def most() -> float | None:
        found = json.loads(cli.read("show", sessions(out)[0], "--format", "json").stdout)
        metric: dict[str, float | None] = found["metrics"].get("process.gpu.memory.usage", {})
        return metric.get("max")

    until(lambda: most() == 3 * 2**30)
    seen.touch()
    assert process.wait(timeout=60) == 0
    assert _used(sessions(out)[0]) == ["gpu1"]
    with SessionReader(sessions(out)[0]) as reader:
        owners = {row.pid: row.owned for row in reader.gpu_processes()}
    assert owners == {pid: True, 1: False}
    assert most() == 3 * 2**30


def _used(session: Path) -> list[str]:
    with SessionReader(session) as reader:
        return [d.id for d in reader.devices() if d.used and d.kind == "gpu"]


def _workload(path: Path) -> int:
    """The number of the workload's process, once the session names its holder."""
    handle = meta(path).get("handle") or {}
    if not handle.get("holder"):
        return 0
    started = json.loads((Path(handle["folder"]) / "started.json").read_text())
    return int(started["workload"])


def pod_gpus(driver: FakeDriver, **variables: str) -> object:
    """What a recorder in a pod with these variables is to watch."""
    program = (
        "import json, os; from gpuwatch.recorder.allocation import pod_gpus;"
        "print(json.dumps(pod_gpus(os.environ)))"
    )
    env = {**driver.env, **variables}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, check=True)
    return json.loads(done.stdout)


def test_in_a_pod_the_parts_of_a_split_gpu_are_watched(driver: FakeDriver) -> None:
    pod = {"GPUWATCH_POD": "gpuwatch-1"}
    driver.resize(2)
    assert pod_gpus(driver, **pod) is None  # none is split: all that are there
    driver.set(gpu=1, mig="MIG-aaaa,MIG-bbbb")
    assert pod_gpus(driver, **pod) == [uuid(0), "MIG-aaaa", "MIG-bbbb"]
    assert pod_gpus(driver) is None
    assert pod_gpus(driver, **pod, CUDA_VISIBLE_DEVICES="MIG-bbbb") is None


@pytest.mark.parametrize("call", ["nvmlInit", "nvmlDeviceGetCudaComputeCapability"])
def test_a_look_at_gpus_is_given_up_wherever_the_driver_stalls(
    driver: FakeDriver, call: str
) -> None:
    program = "from gpuwatch.telemetry.nvml.start import gpu_facts; print(gpu_facts(['0'], {}))"
    for patience_s, expected in ((60.0, "compute.capability"), (0.5, "()")):
        look = [sys.executable, "-c", program.format(patience_s)]
        told = subprocess.run(look, env=driver.env, capture_output=True, check=True, text=True)
        assert expected in told.stdout
        driver.delay(call, 3600)


def test_the_start_and_a_look_at_every_card_share_one_patience(driver: FakeDriver) -> None:
    program = "from gpuwatch.telemetry.nvml.visible_devices import cards; print(cards({}))"
    driver.delay("nvmlInit", 1.5)
    driver.delay("nvmlDeviceGetPciInfo_v3", 1.5)
    for patience_s, expected in ((60.0, "Card("), (2.0, "did not answer within 2 s")):
        look = [sys.executable, "-c", program.format(patience_s)]
        told = subprocess.run(look, env=driver.env, capture_output=True, check=True, text=True)
        assert expected in told.stdout


def test_with_gpus_off_the_driver_is_never_called(
    cli: Cli, driver: FakeDriver, tmp_path: Path
) -> None:
    calls = tmp_path / "calls"
    calls.write_bytes(bytes(8))
    cli.variables["FAKE_NVML_CALLS"] = str(calls)
    driver.delay("nvmlInit", 3600)
    script = "echo visible ${CUDA_VISIBLE_DEVICES-all}"
    found = record(cli, tmp_path / "out", "--gpus", "off", "--", "sh", "-c", script)
    assert not [device for device in found["devices"] if device["kind"] == "gpu"]
    assert "--gpus off was given" in found["metrics"]["hw.gpu.utilization"]["reason"]
    (path,) = sessions(tmp_path / "out")
    assert log(path) == ["visible all"], "the run is not restricted"
    assert "gpu.hint" not in facts(path, "host"), "nothing is out of order"
    assert calls.read_bytes() == bytes(8)
    record(cli, tmp_path / "machine", "--gpus", "off", "--duration", "1s")


@pytest.mark.parametrize("visible", [None, "0"])
def test_a_workload_does_not_wait_for_a_driver_that_hangs_at_the_start(
    cli: Cli, driver: FakeDriver, tmp_path: Path, visible: str | None
) -> None:
    if visible is not None:
        cli.variables["CUDA_VISIBLE_DEVICES"] = visible
    driver.delay("nvmlInit", 3600)
    rounds, end = tmp_path / "rounds", tmp_path / "end"
    waits = f"until test -e {end}; do echo >> {rounds}; sleep 0.1; done"
    script = f"echo visible ${{CUDA_VISIBLE_DEVICES-all}}; {waits}"
    out = tmp_path / "out"
    recorder = cli.start("--record", "--interval", "0.2", "--out", out, "--", "sh", "-c", script)
    until(lambda: rounds.exists() and rounds.stat().st_size > 15)
    driver.work("nvmlInit")

    def sampled() -> bool:
        with SessionReader(sessions(out)[0]) as reader:
            return reader.last_sample() is not None

    until(sampled)
    end.touch()
    assert recorder.wait(60) == 0
    with SessionReader(sessions(out)[0]) as reader:
        assert [each.id for each in reader.devices() if each.kind == "gpu"] == ["gpu0"]
    assert log(sessions(out)[0]) == [f"visible {visible or 'all'}"]
    (late,) = events(sessions(out)[0], "sampling-late")
    assert "the driver was slow to answer" in late.text
    told = cli.read("show", sessions(out)[0]).stdout
    assert "nothing was sampled in the first" in " ".join(told.split())


def test_without_a_driver_no_driver_is_said_to_be_slow(tmp_path: Path) -> None:
    store = SessionStore.create(tmp_path / "a.gpuwatch", [])
    opening = Opening(lambda: Sources.open(GPUS_OFF, workload=False))
    workload = Workload("true", "command", ("true",))
    spec = LaunchSpec(workload, Environment("bare", "bare"), None, "/", {})
    sources, ((_, (_, kind, _, text)),) = added(store, opening, spec, 0, print)
    sources.close()
    store.close()
    assert kind == "sampling-late" and "driver" not in text and "this machine was slow" in text
