"""GPUs and their driver fail under a recording: a gap is a gap, and the rest goes on."""

from __future__ import annotations

import itertools
import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.status import State
from gpuwatch.session.rows import EventRow
from tests.conftest import Cli
from tests.fake_nvml import DRIVER_NOT_LOADED, VERSION_MISMATCH, FakeDriver
from tests.session.samples import rows_of
from tests.waiting import until

from .aftermath import PATIENCE, in_order, kept, nothing_left, stepping, workload
from .table import Row

NoteFault = Callable[[Row], None]
Times = Callable[[int, int], int]

CALL = "nvmlDeviceGetUtilizationRates"
USED = 0.4
"""The utilization that the driver tells of every GPU."""


def used(path: Path, gpu: str) -> list[tuple[float, float | None]]:
    """Seconds and utilization of a GPU, of every sample but the first."""
    with SessionReader(path) as reader:
        (column,) = [
            each.id
            for each in reader.channels()
            if (each.device, each.metric) == (gpu, "hw.gpu.utilization")
        ]
        return [(t / 1e9, value) for t, value in rows_of(reader, [column])][1:]


def happened(path: Path, gpu: str) -> list[EventRow]:
    """But that the stand-in, which is busy, lists no processes."""
    with SessionReader(path) as reader:
        rows = [row for row in reader.events() if row.device == gpu]
    return [row for row in rows if not row.kind.startswith("processes-")]


def kinds(path: Path, gpu: str) -> list[str]:
    return [row.kind for row in happened(path, gpu)]


def gap(values: list[tuple[float, float | None]]) -> float:
    """Seconds of the longest time for which the value was not known; it was the true one before
    and after. A busy machine leaves out others, of a sample or two."""
    assert {value for _, value in values} == {USED, None}
    ends = [values[0][0], *(t for t, value in values if value is not None), values[-1][0]]
    return max(after - before for before, after in itertools.pairwise(ends))


def known(path: Path, gpu: str) -> int:
    """How many samples of the GPU have its value, which is never another one."""
    values = [value for _, value in used(path, gpu) if value is not None]
    assert set(values) <= {USED}
    return len(values)


def sampled(path: Path, gpu: str) -> None:
    """Wait for a few samples more of the GPU."""
    before = known(path, gpu)
    until(lambda: known(path, gpu) > before + 3, f"{gpu} is not sampled")


def shown(cli: Cli, path: Path) -> dict[str, float]:
    """Mean utilization by GPU, as ``gpuwatch show`` tells it."""
    found = json.loads(cli.read("show", path, "--format", "json").stdout)
    return {
        device["id"]: device["metrics"]["hw.gpu.utilization"]["mean"]
        for device in found["devices"]
        if device["kind"] == "gpu"
    }


def test_a_gpu_that_is_lost_and_back_leaves_a_gap_and_the_other_none(
    cli: Cli, driver: FakeDriver, tmp_path: Path, note_fault: NoteFault, times: Times
) -> None:
    driver.resize(2)
    tried, gaps = times(1, 5), []
    for number in range(tried):
        out = tmp_path / f"out{number}"
        recorder = cli.start(
            "--record", "--quiet", "--interval", "0.1", "--out", out, *workload(10**6, 0.02)
        )
        path = stepping(out)
        sampled(path, "gpu1")
        driver.lose(1)
        until(lambda path=path: "gpu-lost" in kinds(path, "gpu1"))
        sampled(path, "gpu0")
        driver.set(gpu=1, energy=5)  # the counter begins anew
        driver.restore(1)
        until(lambda path=path: "gpu-back" in kinds(path, "gpu1"))
        until(lambda path=path: used(path, "gpu1")[-1][1] is not None)
        cli("stop", path)
        assert recorder.wait(PATIENCE) == 0
        recorder.communicate()
        found = kept(path)
        in_order(found)
        assert kinds(path, "gpu1") == ["gpu-lost", "gpu-back"] and kinds(path, "gpu0") == []
        gaps.append(gap(used(path, "gpu1")))
        assert shown(cli, path) == {"gpu0": pytest.approx(USED), "gpu1": pytest.approx(USED)}
        found_json = json.loads(cli.read("show", path, "--format", "json").stdout)
        (lost,) = [each for each in found_json["devices"] if each["id"] == "gpu1"]
        joules = lost["metrics"]["hw.gpu.energy"]["max"]
        assert joules is None or 0 <= joules < 1, "the counter alone jumped: nothing was used"
        assert nothing_left(cli, out) == "nothing"
    said = "; ".join(row.text for row in happened(path, "gpu1"))
    lost_text = f"up to {max(gaps):.1f} s of this GPU's values; none of the other's"
    note_fault(Row("gpu", "GPU lost and back", tried, lost_text, "nothing", said))


def test_a_call_that_hangs_costs_its_own_gpu_alone_and_holds_up_no_end(
    cli: Cli, driver: FakeDriver, tmp_path: Path, note_fault: NoteFault, times: Times
) -> None:
    driver.resize(3)
    out, seconds = tmp_path / "out", times(5, 10)
    recorder = cli.start(
        "--record", "--quiet", "--interval", "0.1", "--out", out, *workload(10**6, 0.02)
    )
    path = stepping(out)
    sampled(path, "gpu1")
    driver.delay(CALL, 3600, gpu=0)
    driver.delay(CALL, 3600, gpu=1)
    until(lambda: {*kinds(path, "gpu0"), *kinds(path, "gpu1")} == {"nvml-lost"})
    sampled(path, "gpu2")
    until(lambda: gap(used(path, "gpu0")) > seconds)  # that is how long the call takes
    driver.work(CALL, gpu=0)
    until(lambda: kinds(path, "gpu0")[-1] == "nvml-back" and used(path, "gpu0")[-1][1] is not None)
    asked = time.monotonic()
    cli("stop", path)
    assert recorder.wait(PATIENCE) == 0
    took = time.monotonic() - asked
    recorder.communicate()
    found = kept(path)
    in_order(found)
    assert found.status.state is State.STOPPED
    assert kinds(path, "gpu0") == ["nvml-lost", "nvml-back"]
    assert kinds(path, "gpu1") == ["nvml-lost"]
    assert kinds(path, "gpu2") == []
    back, never = gap(used(path, "gpu0")), gap(used(path, "gpu1"))
    assert used(path, "gpu1")[-1][1] is None and back > seconds
    assert shown(cli, path) == dict.fromkeys(("gpu0", "gpu1", "gpu2"), pytest.approx(USED))
    left = nothing_left(cli, out)
    for gpu, fault, lost in (("gpu0", f"for {seconds} s", back), ("gpu1", "for ever", never)):
        text = f"{lost:.1f} s of this GPU's values; none of the others'"
        said = "; ".join(row.text for row in happened(path, gpu))
        more = "" if gpu == "gpu0" else f"; the run ended {took:.1f} s after `gpuwatch stop`"
        note_fault(Row("gpu", f"driver call hangs {fault}", 1, text, left, said + more))


def test_a_library_that_goes_away_under_a_recording_takes_nothing_from_it(
    cli: Cli, driver: FakeDriver, tmp_path: Path, note_fault: NoteFault
) -> None:
    folder = tmp_path / "library"
    shutil.copytree(cli.variables["LD_LIBRARY_PATH"].partition(":")[0], folder)
    library = folder / "libnvidia-ml.so.1"
    cli.variables["LD_LIBRARY_PATH"] = str(folder)
    out = tmp_path / "out"
    recorder = cli.start(
        "--record", "--quiet", "--interval", "0.1", "--out", out, *workload(10**6, 0.02)
    )
    path = stepping(out)
    sampled(path, "gpu0")
    aside, said = tmp_path / "aside", {}
    library.rename(aside)
    said["removed"] = reason(cli, tmp_path / "removed")
    library.write_bytes(b"no library at all")
    said["replaced by garbage"] = reason(cli, tmp_path / "garbage")
    driver.init(VERSION_MISMATCH)
    aside.replace(library)
    said["replaced by another version"] = reason(cli, tmp_path / "version")
    driver.init(DRIVER_NOT_LOADED)
    said["kernel module unloaded"] = reason(cli, tmp_path / "module")
    sampled(path, "gpu0")
    cli("stop", path)
    assert recorder.wait(PATIENCE) == 0
    recorder.communicate()
    found = kept(path)
    in_order(found)
    assert kinds(path, "gpu0") == [] and shown(cli, path) == {"gpu0": pytest.approx(USED)}
    left = nothing_left(cli, out)
    assert "different versions" in said["replaced by another version"]
    for fault, text in said.items():
        row = Row("gpu", f"NVML library: {fault}", 1, "nothing of what is recorded", left, text)
        note_fault(row)


def reason(cli: Cli, out: Path) -> str:
    """What a recording that begins now says of the GPUs that it cannot see."""
    cli("--record", "--quiet", "--duration", "0.2s", "--out", out)
    (path,) = out.glob("*/*.gpuwatch")
    found = json.loads(cli.read("show", path, "--format", "json").stdout)
    metric = found["metrics"]["hw.gpu.utilization"]
    assert metric["method"] == "unavailable" and metric["mean"] is None
    refused = cli("--record", "--gpus", "0", "--duration", "0.2s", "--out", out, code=3).stderr
    assert metric["reason"].removeprefix("no NVIDIA GPU is seen: ") in refused
    return f"to the next recorder: {refused.strip().replace('gpuwatch: error: ', '')}"
