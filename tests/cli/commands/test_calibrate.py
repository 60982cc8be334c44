"""gpuwatch calibrate: the CPU for real; GPUs by the fake driver and a stand-in for their torch."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.workloads.lines import PREFIX
from tests.conftest import Cli
from tests.fake_nvml import FakeDriver, uuid
from tests.reading import meta, sessions

H100 = "NVIDIA H100 80GB HBM3"


@pytest.fixture
def driver(driver: FakeDriver) -> FakeDriver:
    driver.set(utilization=0)
    return driver


@pytest.fixture
def torch_of_gpus(tmp_path: Path) -> Callable[..., Path]:
    """An interpreter that tells what torch would have measured on a GPU; this machine has none."""

    def make(ceilings: Sequence[Mapping[str, Any]], ending: str = "") -> Path:
        device = {"event": "calibration", "device": "cuda", "device_name": H100}
        events = [
            {**device, "versions": {"torch": "2.15.0+cu132"}, "threads": 16},
            *({"event": "ceiling", **each} for each in ceilings),
        ]
        lines = "\n".join(f"{PREFIX}{json.dumps(event)}" for event in events)
        python = tmp_path / "python-of-gpus"
        end = ending or f"echo '{PREFIX}{json.dumps({'event': 'calibrated', 'seconds': 9.5})}'"
        python.write_text(
            "#!/bin/sh\n"
            f'[ "$1" = -c ] && exec {sys.executable} "$@"\n'
            f"cat <<'END'\n{lines}\nEND\n"
            f'echo "$CUDA_VISIBLE_DEVICES" "$@" >> {tmp_path}/asked\n{end}\n'
        )
        python.chmod(0o755)
        return python

    return make


def figure(name: str, value: float | None, reason: str | None = None) -> dict[str, Any]:
    unit = "By/s" if name == "bandwidth" else "FLOP/s"
    how = None if value is None else "8192 x 8192 x 8192 product"
    spread = None if value is None else 0.01
    return {
        "name": name, "value": value, "unit": unit, "how": how, "spread": spread, "reason": reason
    }  # fmt: skip


def asked(folder: Path) -> list[str]:
    """The words that the interpreter was last started with, the visible GPU first."""
    return (folder / "asked").read_text().splitlines()[-1].split()


def listed(cli: Cli) -> list[dict[str, Any]]:
    told = json.loads(cli("calibrate", "--list", "--format", "json").stdout)
    found: list[dict[str, Any]] = told["measured"]
    return found


@pytest.mark.torch
def test_the_cpu_is_measured_stored_and_given_to_the_next_run(cli: Cli, tmp_path: Path) -> None:
    cli.variables["OMP_NUM_THREADS"] = "1"
    quick = ("calibrate", "--python", sys.executable, "--device", "cpu", "--quick")
    shown = cli(*quick)
    assert re.search(r"^bandwidth +[\d.]+ [MGT]B/s", shown.stdout, re.MULTILINE)
    assert re.search(r"^float32 +[\d.]+ [GT]FLOP/s", shown.stdout, re.MULTILINE)
    assert "in a hurry" in shown.stderr
    (document,) = listed(cli)
    assert document["device"]["kind"] == "cpu" and document["threads"] == 1
    assert "  1 thread  " in cli("calibrate", "--list").stdout
    assert all(each["value"] > 0 for each in document["ceilings"].values())

    flags = ("--python", sys.executable, "--device", "cpu", "--steps", "3", "--profile", "0")
    cli("--record", "mnist-cnn", *flags, "--quiet", "--out", tmp_path / "out")
    assert meta(sessions(tmp_path / "out")[-1])["ceilings"] == document
    assert "measured copy" in cli("roofline", sessions(tmp_path / "out")[-1]).stdout
    assert "in a hurry" in cli.read("show", "--all", sessions(tmp_path / "out")[-1]).stdout


def test_a_gpu_is_measured_by_its_uuid_and_held_against_its_peaks(
    cli: Cli, driver: FakeDriver, torch_of_gpus: Callable[..., Path], tmp_path: Path
) -> None:
    driver.resize(2)
    driver.set(utilization=0)
    python = torch_of_gpus([figure("bandwidth", 2.7e12), figure("float64", None, "out of memory")])
    shown = cli("calibrate", "--python", python, "--gpus", "1")
    words = asked(tmp_path)
    assert words[0] == uuid(1) and words[-3:] == ["--calibrate", "--device", "cuda"]
    row = next(line for line in shown.stdout.splitlines() if line.startswith("bandwidth"))
    # 2.7 TB/s of 2619 MHz x 2 x 5120 bits / 8 = 3.35 TB/s
    assert "2.70 TB/s" in row and "81 %" in row
    row = next(line for line in shown.stdout.splitlines() if line.startswith("float64"))
    assert "out of memory" in row
    (document,) = listed(cli)
    assert document["device"] == {"kind": "gpu", "uuid": uuid(1), "name": H100}
    assert (document["driver"], document["torch"]) == ("575.57.08", "2.15.0+cu132")
    assert document["threads"] is None
    assert document["ceilings"]["bandwidth"]["warnings"] == []
    assert document["ceilings"]["float64"]["value"] is None


def test_measuring_again_keeps_the_higher_ceiling_and_tells_it(
    cli: Cli, driver: FakeDriver, torch_of_gpus: Callable[..., Path]
) -> None:
    cli("calibrate", "--python", torch_of_gpus([figure("bandwidth", 2e12), figure("tf32", 1e14)]))
    lower = torch_of_gpus([figure("bandwidth", 1e12), figure("tf32", 2e14)])
    told = cli("calibrate", "--python", lower)
    assert "bandwidth: kept 2.00 TB/s of 2" in told.stderr and "--fresh" in told.stderr
    assert "2.00 TB/s" in told.stdout and "tf32: 1" not in told.stderr
    (document,) = listed(cli)
    values = {name: each["value"] for name, each in document["ceilings"].items()}
    assert values == {"bandwidth": 2e12, "tf32": 2e14}


def test_fresh_forgets_what_was_measured_before(
    cli: Cli, driver: FakeDriver, torch_of_gpus: Callable[..., Path]
) -> None:
    cli("calibrate", "--python", torch_of_gpus([figure("bandwidth", 2e12)]))
    cli("calibrate", "--fresh", "--python", torch_of_gpus([figure("bandwidth", 1e12)]))
    (document,) = listed(cli)
    assert document["ceilings"]["bandwidth"]["value"] == 1e12


def test_all_gpus_are_measured_one_by_one(
    cli: Cli, driver: FakeDriver, torch_of_gpus: Callable[..., Path], tmp_path: Path
) -> None:
    driver.resize(3)
    driver.set(utilization=0)
    cli("calibrate", "--python", torch_of_gpus([figure("bandwidth", 1e12)]))
    assert {each["device"]["uuid"] for each in listed(cli)} == {uuid(0), uuid(1), uuid(2)}
    told = [line.split()[0] for line in (tmp_path / "asked").read_text().splitlines()]
    assert told == [uuid(0), uuid(1), uuid(2)]


def test_only_the_gpus_that_the_caller_has_are_measured(
    cli: Cli, driver: FakeDriver, torch_of_gpus: Callable[..., Path], tmp_path: Path
) -> None:
    driver.resize(3)
    cli.variables["CUDA_VISIBLE_DEVICES"] = uuid(1)
    cli("calibrate", "--python", torch_of_gpus([figure("bandwidth", 1e12)]))
    told = [line.split()[0] for line in (tmp_path / "asked").read_text().splitlines()]
    assert told == [uuid(1)]
    cli.variables["CUDA_VISIBLE_DEVICES"] = ""
    told_of_none = cli("calibrate", "--device", "cuda", code=3).stderr
    assert "CUDA_VISIBLE_DEVICES hides every GPU" in told_of_none


def test_a_busy_gpu_is_measured_longer_and_the_warning_kept(
    cli: Cli, driver: FakeDriver, torch_of_gpus: Callable[..., Path], tmp_path: Path
) -> None:
    driver.set(utilization=60)
    driver.processes(0, (os.getpid(), 1 << 30, "compute"))
    told = cli("calibrate", "--python", torch_of_gpus([figure("bandwidth", 1e12)])).stderr
    assert str(os.getpid()) in told and "60 %" in told and "too low" in told
    assert asked(tmp_path)[-1] == "--patient"
    assert "too low" in " ".join(listed(cli)[0]["ceilings"]["bandwidth"]["warnings"])
    assert "warning: bandwidth: process" in cli("calibrate", "--list").stdout


def test_a_ceiling_that_was_told_again_counts_as_it_was_told_last(
    cli: Cli, driver: FakeDriver, torch_of_gpus: Callable[..., Path]
) -> None:
    disturbed = {**figure("bandwidth", 1e12), "others": 0.64}
    told = [disturbed, {**figure("tf32", 1e14), "others": 0.5}, figure("bandwidth", 2e12)]
    shown = cli("calibrate", "--python", torch_of_gpus(told)).stderr
    assert "2.00 TB/s, measured again" in shown and "64 %" not in shown
    assert "warning: tf32: other programs took 50 %" in shown
    entries = listed(cli)[0]["ceilings"]
    assert entries["bandwidth"]["warnings"] == [] and "50 %" in entries["tf32"]["warnings"][0]


def test_where_nothing_could_be_measured_the_older_ceilings_stay(
    cli: Cli, driver: FakeDriver, torch_of_gpus: Callable[..., Path]
) -> None:
    cli("calibrate", "--python", torch_of_gpus([figure("bandwidth", 1e12)]))
    failing = torch_of_gpus([figure("bandwidth", None, "out of memory")])
    told = cli("calibrate", "--python", failing, code=3).stderr
    assert "out of memory" in told
    assert listed(cli)[0]["ceilings"]["bandwidth"]["value"] == 1e12


def test_a_measurement_that_breaks_off_is_told_with_its_last_word(
    cli: Cli, driver: FakeDriver, torch_of_gpus: Callable[..., Path]
) -> None:
    broken = torch_of_gpus([figure("bandwidth", 1e12)], "echo 'CUDA error' >&2; kill -SEGV $$")
    told = cli("calibrate", "--python", broken, code=1).stderr
    assert "CUDA error" in told and "11" in told
    assert listed(cli) == []


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--device", "cuda"), 3, "NVIDIA"),
        (("--gpus", "0"), 3, "leave --gpus out"),
        (("--device", "cpu", "--gpus", "0"), 2, "contradict"),
        (("--device", "cuda", "--gpus", "none"), 2, "contradict"),
        (("--device", "cpu", "--python", "/no/such/python"), 3, "--python"),
        (("--", "true"), 2, "no command"),
        (("--list", "--gpus", "0"), 2, "--list shows all"),
        (("--list", "--device", "cuda"), 2, "--list shows all"),
        (("--list", "--fresh"), 2, "--list shows all"),
    ],
)
def test_what_cannot_be_measured_is_told_in_one_line(
    cli: Cli, arguments: tuple[str, ...], code: int, says: str
) -> None:
    told = cli("calibrate", *arguments, code=code).stderr
    assert says in told and len(told.splitlines()) == 1


def test_nothing_measured_yet_is_said_with_the_command(cli: Cli) -> None:
    told = cli("calibrate", "--list")
    assert told.stdout == "" and "gpuwatch calibrate" in told.stderr
