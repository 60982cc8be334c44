"""GPUs in a pod of the tests' Kubernetes: its image has the stand-in driver in it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuwatch.analysis.results import Summary
from gpuwatch.analysis.samples.channels import FULL
from gpuwatch.analysis.summary.summary import summarise
from gpuwatch.core.metrics import Method
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.telemetry.process.workload import OTHER_PIDS
from tests.conftest import Cli
from tests.fake_nvml import FakeDriver, uuid
from tests.places.kubernetes.cluster import cluster, facts_of, kubectl, sessions, the_study

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(600)]

RATES = {2: 80.0, 3: 40.5, 5: 30.0, 10: 45.5, 11: 0.0, 12: 12.0, 13: 3.0, 20: 100.0, 21: 200.5}
"""Percent, and MiB/s from 20 on."""
FLOP, STEPS, STEP_SECONDS = 2.0e12, 30, 0.1
STEPS_PROGRAM = f"""
import json, os, time
def say(**line):
    os.write(1, (":::GPUWATCH " + json.dumps(line) + "\\n").encode())
say(event="run", workload="steps", dtype="bfloat16", device="cuda",
    device_uuid=["{uuid(0)}"], batch_size=8, total_steps={STEPS})
say(event="count", flop_per_step={FLOP}, bytes_per_step=4e9, samples=8, method="told")
begin = time.monotonic()
for step in range(1, {STEPS} + 1):
    time.sleep(max(0, begin + step * {STEP_SECONDS} - time.monotonic()))
    say(event="step", step=step, samples=8, seconds={STEP_SECONDS},
        monotonic_ns=time.monotonic_ns())
"""
MIG = "MIG-aaaaaaaa-1111-2222-3333-000000000000"
OF_HOST_PIDS = {"process.gpu.memory.usage", "process.gpu.utilization"}
BANDWIDTH = "hw.gpu.memory.bandwidth"
SHOWN = {
    "hw.gpu.utilization": 0.40,
    "hw.gpu.power": 252.5,
    BANDWIDTH: 0.455 * 2619e6 * 2 * 5120 / 8,
    "hw.gpu.memory.usage": 12 * 2**30,
    "hw.gpu.tensor.activity": 0.30,
}
"""What the driver tells, in base units."""


@pytest.fixture
def gpu_image(small_root: Path, tmp_path: Path, driver: FakeDriver) -> Callable[[str], str]:
    """Makes an image of the driver as it is then; the name is the node's."""

    def make(name: str) -> str:
        root = tmp_path / name
        shutil.copytree(small_root, root, symlinks=True, copy_function=os.link)
        driver.install(root)
        cluster("image", f"gpuwatch-test/{name}:1", str(root))
        return f"gpuwatch-test/{name}:1"

    return make


def summary_of(session: Path) -> Summary:
    with SessionReader(session) as reader:
        return summarise(reader)


def channels_of(session: Path) -> dict[tuple[str, str], tuple[str, Method, str | None]]:
    with SessionReader(session) as reader:
        return {
            (each.device, each.metric): (each.unit, each.method, each.reason)
            for each in reader.channels()
        }


def test_a_pod_has_the_gauges_that_a_bare_run_has(
    here: Cli, driver: FakeDriver, gpu_image: Callable[[str], str], tmp_path: Path
) -> None:
    driver.gpm(RATES)
    image = gpu_image("gpu")
    work = here.home / "work"
    (work / "steps.py").write_text(STEPS_PROGRAM)
    program = ("--", "python3", "steps.py")
    bare = well_sampled(here, "--out", tmp_path / "bare", *program)
    for name in driver.variables:
        del here.variables[name]
    pod = well_sampled(here, "--on", f"kubernetes,image={image},gpu=nvidia.com/gpu:1", *program)

    one, two = channels_of(bare), channels_of(pod)
    assert one.keys() == two.keys()
    differing = {key[1] for key in one if one[key] != two[key]}
    assert differing == OF_HOST_PIDS
    for metric in OF_HOST_PIDS:
        _, method, reason = two["workload", metric]
        assert method is Method.UNAVAILABLE and reason == OTHER_PIDS
    for metric in SHOWN:
        assert one["gpu0", metric][1] is two["gpu0", metric][1] is Method.MEASURED

    sides = [summary_of(session) for session in (bare, pod)]
    gpus = [gpu for side in sides for gpu in side.devices if gpu.kind == "gpu"]
    assert [(gpu.id, gpu.name, gpu.uuid) for gpu in gpus] == 2 * [
        ("gpu0", "NVIDIA H100 80GB HBM3", uuid(0))
    ]
    for metric, value in SHOWN.items():
        assert [gpu.metrics[metric].mean for gpu in gpus] == 2 * [pytest.approx(value, rel=1e-3)]
    for side in sides:
        found = side.efficiency
        assert side.steps.count == STEPS
        assert found.flop_rate.value == pytest.approx(FLOP / STEP_SECONDS, rel=0.1)
        assert found.bandwidth.value == pytest.approx(SHOWN[BANDWIDTH], rel=1e-3)
        assert found.energy.gpu_per_step.value == pytest.approx(252.5 * STEP_SECONDS, rel=0.1)
    assert values_known(sides[0]) == values_known(sides[1])
    assert "TFLOP/s" in (pod.parent / "summary.md").read_text()


def well_sampled(here: Cli, *arguments: object) -> Path:
    """A run whose steps all have samples: a busy machine misses some, then it is recorded again."""
    for _ in range(5):
        before = set(here.home.parent.rglob("0*.gpuwatch"))
        here("--record", "--hook", "off", *arguments, folder=here.home / "work")
        (session,) = set(here.home.parent.rglob("0*.gpuwatch")) - before
        if (summary_of(session).efficiency.traffic.coverage or 0) >= FULL:
            return session
    raise AssertionError(f"five runs without samples of all their steps, the last {session}")


def values_known(summary: Summary) -> dict[str, tuple[Method, str | None]]:
    """How each figure of efficiency is known."""
    found = summary.efficiency
    known = {
        name: getattr(found, name)
        for name in ("flop_rate", "mfu", "bytes_rate", "bandwidth", "intensity")
    }
    known |= {"energy": found.energy.gpu_per_step, "traffic": found.traffic.per_step}
    return {name: (value.method, value.reason) for name, value in known.items()}


STRATEGY, REPLICAS = "nvidia.com/gpu.sharing-strategy", "nvidia.com/gpu.replicas"
SLICED = "time-slicing, up to 4 pods on a GPU"
TWO = ("--blocks", "1", "--cool-down", "0", "--command", "a=sleep 0.5", "--command", "b=sleep 0.5")


def test_pods_that_share_a_gpu_are_told_by_doctor_the_run_and_the_comparison(
    here: Cli, driver: FakeDriver, gpu_image: Callable[[str], str]
) -> None:
    place = f"kubernetes,image={gpu_image('gpu')},gpu=nvidia.com/gpu:1"
    kubectl("label", "node", "node1", f"{STRATEGY}=time-slicing", f"{REPLICAS}=4")
    try:
        told = here("doctor", "--on", "kubernetes").stdout
        assert f"2 of 2 free, pods share a GPU ({SLICED}), its time and its metrics" in told
        found = json.loads(here("doctor", "--on", "kubernetes", "--format", "json").stdout)
        (gpus,) = found["nodes"][0]["gpus"]
        assert (gpus["shared"], gpus["mig"]) == (SLICED, False)
        here("--record", "--on", place, *TWO)
    finally:
        kubectl("label", "node", "node1", f"{STRATEGY}-", f"{REPLICAS}-")
    folder = the_study(here)
    assert len(sessions(folder)) == 4
    for session in sessions(folder):
        assert facts_of(session)["job.gpu.shared"] == SLICED
        said = f"pods share the run's GPU ({SLICED}): its time is other pods' too"
        assert any(note.startswith(said) for note in summary_of(session).notes)
    compared = f"pods share the GPUs of a and b ({SLICED}): their time is other pods' too"
    assert compared in (folder / "summary.md").read_text()


def test_a_pod_on_a_part_of_a_gpu_watches_that_part(
    here: Cli, driver: FakeDriver, gpu_image: Callable[[str], str]
) -> None:
    driver.set(mig=MIG)
    place = f"kubernetes,image={gpu_image('mig')},gpu=nvidia.com/gpu:1"
    for name in driver.variables:
        del here.variables[name]
    work = here.home / "work"
    (work / "steps.py").write_text(STEPS_PROGRAM.replace(uuid(0), MIG))
    here("--record", "--hook", "off", "--on", place, "--", "python3", "steps.py", folder=work)
    (session,) = sessions(the_study(here))
    found = summary_of(session)
    (gpu,) = [device for device in found.devices if device.kind == "gpu"]
    assert (gpu.id, gpu.uuid, gpu.used) == ("gpu0.mig0", MIG, True)
    assert gpu.metrics["hw.gpu.power"].method is Method.UNAVAILABLE
    assert gpu.metrics["hw.gpu.memory.usage"].mean == pytest.approx(12 * 2**30)
    assert any("gpu0.mig0 is a MIG device, a part of GPU-00000000" in each for each in found.notes)
    assert facts_of(session)["process.env.CUDA_VISIBLE_DEVICES"] == MIG
    assert "job.gpu.shared" not in facts_of(session)  # no label tells
