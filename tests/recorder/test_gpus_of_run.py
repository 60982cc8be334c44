"""Which of the watched GPUs are the run's: by its processes, as soon as NVML lists them."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.tui.feed.snapshot import Snapshot
from tests.conftest import Cli
from tests.fake_nvml import NOT_SUPPORTED, FakeDriver, uuid
from tests.reading import events, meta, sessions
from tests.tui.snapshots_of import snapshot_of
from tests.waiting import until

GIB = 2**30
UNKNOWN = "it is not known which GPUs are the run's"
POWER_CAP = 4
"""Bit of the driver's reasons: the clocks are held down by the power limit."""

PROGRAM = """
import json, os, pathlib, sys, time
def say(**told):
    print(":::GPUWATCH", json.dumps(told), flush=True)
say(event="started", monotonic_ns=time.monotonic_ns())
say(event="run", dtype="float32", **json.loads(sys.argv[2]))
say(event="count", flop_per_step=1e11, bytes_per_step=1e9)
step = 0
while not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.05)
    step += 1
    say(event="step", step=step, seconds=0.05, samples=64)
"""
"""Counts its work, says what it is told to say of its device, and ends once a file is there."""


class Run:
    """A program that is being recorded beside a driver with eight GPUs."""

    def __init__(self, cli: Cli, folder: Path, *flags: str, says: dict[str, Any]) -> None:
        self._cli, self._end = cli, folder / "end"
        self._out = folder / "out"
        program = (sys.executable, "-c", PROGRAM, self._end, json.dumps(says))
        arguments = ("--record", "--interval", "0.1", "--out", self._out, *flags, "--", *program)
        self.process = cli.start(*arguments)
        until(lambda: bool(sessions(self._out)) and self._pid() > 0)
        self.path, self.pid = sessions(self._out)[0], self._pid()

    def _pid(self) -> int:
        handle = meta(sessions(self._out)[0]).get("handle") or {}
        if not handle.get("holder"):
            return 0
        return int(json.loads((Path(handle["folder"]) / "started.json").read_text())["workload"])

    def gpus(self) -> dict[str, bool | None]:
        """Of each GPU whether the run uses it."""
        with SessionReader(self.path) as reader:
            return {each.id: each.used for each in reader.devices() if each.kind == "gpu"}

    def used(self) -> set[str]:
        return {id_ for id_, used in self.gpus().items() if used}

    def shown(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._cli("show", self.path, "--format", "json").stdout)
        return found

    def screen(self) -> Snapshot:
        return snapshot_of(self.path)

    def finish(self) -> None:
        self._end.touch()
        assert self.process.wait(timeout=60) == 0


@pytest.fixture
def eight(driver: FakeDriver) -> FakeDriver:
    driver.resize(8)
    return driver


def start(cli: Cli, tmp_path: Path, *flags: str, **says: Any) -> Run:
    return Run(cli, tmp_path, *flags, says=says)


def test_a_run_on_one_gpu_of_eight_is_held_against_the_peak_of_that_one_while_it_goes_on(
    cli: Cli, eight: FakeDriver, tmp_path: Path
) -> None:
    run = start(cli, tmp_path, device="cuda")
    eight.processes(3, (run.pid, 3 * GIB, "compute"), (1, GIB, "compute"))
    until(lambda: run.used() == {"gpu3"})
    assert all(used is False for id_, used in run.gpus().items() if id_ != "gpu3")
    until(lambda: len(run.screen().gauges[2].history) > 0 and run.screen().gauges[2].share)
    screen = run.screen()
    assert screen.selected == "gpu3"
    against = screen.gauges[2].named_ceiling
    assert against is not None and "sum over" not in against.text
    efficiency = run.shown()["efficiency"]
    assert efficiency["devices"] == ["gpu3"]
    (share, *_) = efficiency["flop_rate"]["shares"]
    assert share["ceiling"]["value"] == pytest.approx(against.value)
    run.finish()
    assert run.used() == {"gpu3"}
    mfu = run.shown()["efficiency"]["mfu_at_maximum_clock"]["value"]
    assert mfu == pytest.approx(2e12 / against.value, rel=0.5)


def test_a_run_that_trains_on_the_cpu_uses_a_gpu_that_other_code_of_it_fills(
    cli: Cli, eight: FakeDriver, tmp_path: Path
) -> None:
    run = start(cli, tmp_path, device="cpu")
    eight.processes(3, (run.pid, GIB // 2, "compute"))
    until(lambda: set(run.gpus().values()) == {False} and _complete(run.path))
    assert not run.used(), "no more than a context"
    eight.processes(3, (run.pid, 3 * GIB, "compute"))
    until(lambda: run.used() == {"gpu3"})
    run.finish()
    assert run.screen().selected == "gpu3" and run.screen().warnings == ()
    efficiency = run.shown()["efficiency"]
    assert efficiency["devices"] == ["gpu3"]
    assert "counted on the CPU" in efficiency["mfu"]["reason"]


def test_before_anything_is_known_no_share_is_told_and_why(
    cli: Cli, eight: FakeDriver, tmp_path: Path
) -> None:
    run = start(cli, tmp_path, device="cuda")
    until(lambda: run.screen().gauges[2].reading.value is not None)
    assert set(run.gpus().values()) == {None}
    screen = run.screen()
    assert all(gauge.share is None for gauge in screen.gauges[1:])
    assert screen.gauges[2].note == "GPUs not known"
    found = run.shown()
    efficiency = found["efficiency"]
    assert efficiency["devices"] == [] and efficiency["flop_rate"]["shares"] == []
    assert efficiency["mfu"] == efficiency["mfu"] | {"value": None, "reason": UNKNOWN}
    assert found["metrics"]["hw.gpu.utilization"]["reason"] == UNKNOWN
    assert {each["used"] for each in found["devices"] if each["kind"] == "gpu"} == {None}
    run.finish()


def test_the_gpus_of_a_run_are_all_that_it_was_on(
    cli: Cli, eight: FakeDriver, tmp_path: Path
) -> None:
    run = start(cli, tmp_path)
    eight.processes(2, (run.pid, GIB, "compute"))
    until(lambda: run.used() == {"gpu2"})
    eight.processes(2)
    eight.processes(5, (run.pid, GIB, "compute"))
    until(lambda: run.used() == {"gpu2", "gpu5"})
    eight.processes(5)
    run.finish()
    assert run.used() == {"gpu2", "gpu5"}
    assert run.shown()["efficiency"]["devices"] == ["gpu2", "gpu5"]


def test_the_word_of_a_run_counts_before_nvml_lists_it(
    cli: Cli, eight: FakeDriver, tmp_path: Path
) -> None:
    run = start(cli, tmp_path, device="cuda", device_uuid=[uuid(6)])
    until(lambda: run.used() == {"gpu6"})
    run.finish()


@pytest.mark.parametrize("flags", [("--gpus", "none"), ()])
def test_of_gpus_that_a_run_never_used_nothing_is_told(
    cli: Cli, eight: FakeDriver, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    run = start(cli, tmp_path, *flags)
    eight.set(clocks_event_reasons=POWER_CAP)
    for gpu in range(8):
        eight.processes(gpu, (1, GIB, "compute"))

    def xid_told() -> bool:  # one from before they are waited for is not
        eight.xid(1, 79)
        time.sleep(0.5)
        return any(row.kind == "xid" for row in events(run.path))

    until(xid_told)
    if flags:
        assert set(run.gpus().values()) == {False}, "before it began"
    else:
        until(lambda: _complete(run.path))
    run.finish()
    assert set(run.gpus().values()) == {False}
    unused = () if flags else ("the run used no GPU (8 were given)",)
    assert run.screen().warnings == unused and run.screen().off_gpus
    found = run.shown()
    assert found["efficiency"]["devices"] == ["cpu"]
    assert not [each for each in found["efficiency"]["findings"] if each["kind"] == "sharing"]
    told = cli.read("show", run.path).stdout
    assert "Xid" not in told and "held down" not in told
    assert found["metrics"]["hw.gpu.power"]["reason"] == "the run used no GPU"


def _complete(path: Path) -> bool:
    """Whether processes were listed for as long as one of the run's would have been seen."""
    with SessionReader(path) as reader:
        return (reader.last_sample() or 0) > 8e9


def test_where_nvml_lists_no_processes_nothing_is_claimed_of_several_gpus(
    cli: Cli, eight: FakeDriver, tmp_path: Path
) -> None:
    eight.fail("nvmlDeviceGetComputeRunningProcesses", NOT_SUPPORTED)
    run = start(cli, tmp_path)
    until(lambda: run.screen().gauges[2].reading.value is not None)
    run.finish()
    assert set(run.gpus().values()) == {None}
    told = run.shown()["efficiency"]
    assert told["flop_rate"]["value"] and not told["flop_rate"]["shares"]


def test_a_gpu_that_is_watched_alone_is_the_runs_where_nothing_tells(
    cli: Cli, driver: FakeDriver, tmp_path: Path
) -> None:
    driver.fail("nvmlDeviceGetComputeRunningProcesses", NOT_SUPPORTED)
    run = start(cli, tmp_path)
    until(lambda: run.used() == {"gpu0"})
    run.finish()


def test_an_empty_list_of_a_busy_gpu_says_nothing(
    cli: Cli, driver: FakeDriver, tmp_path: Path
) -> None:
    """As with WSL: the driver lists no process, whatever runs."""
    driver.set(utilization=0)
    run = start(cli, tmp_path)
    until(lambda: run.screen().processes)
    driver.set(utilization=70)
    until(lambda: run.used() == {"gpu0"})
    screen = until(lambda: (found := run.screen()).untold and found)
    assert "stays empty while kernels run" in screen.untold
    run.finish()
    assert run.used() == {"gpu0"}
    metrics = run.shown()["metrics"]
    assert metrics["hw.gpu.utilization"]["mean"] > 0
    told = cli.read("show", run.path).stdout
    assert "none of the workload's processes" not in told


def test_a_run_that_says_cuda_used_the_only_gpu_whatever_the_lists_say(
    cli: Cli, driver: FakeDriver, tmp_path: Path
) -> None:
    driver.set(utilization=0)
    run = start(cli, tmp_path, device="cuda")
    until(lambda: run.used() == {"gpu0"})
    run.finish()
    assert run.used() == {"gpu0"}


def test_another_recorder_of_a_run_knows_the_gpus_that_the_first_one_saw(
    cli: Cli, eight: FakeDriver, tmp_path: Path
) -> None:
    run = start(cli, tmp_path)
    eight.processes(2, (run.pid, GIB, "compute"))
    until(lambda: run.used() == {"gpu2"})
    run.process.kill()
    run.process.wait()
    eight.processes(2)
    eight.processes(4, (run.pid, GIB, "compute"))
    run.process = cli.start("attach", "--record", run.path)
    until(lambda: run.used() == {"gpu2", "gpu4"})
    run.finish()
    assert run.used() == {"gpu2", "gpu4"}
