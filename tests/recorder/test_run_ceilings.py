"""Ceilings of a session as its run tells more of itself: waited for, taken back, kept."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.core import ceilings
from gpuwatch.core.models import Output
from gpuwatch.recorder.ceilings import RunCeilings
from gpuwatch.recorder.output.intake import Intake
from gpuwatch.recorder.output.step_lines import PREFIX
from gpuwatch.session.writing.statements import Row
from gpuwatch.telemetry.base import Device

CPU = Device("cpu", "cpu", "Processor 9000")
GPU = Device("gpu0", "gpu", "NVIDIA H200", "GPU-0", {"driver.version": "575.57"})
OURS = {"workload": {"kind": "workload"}}
COMMAND = {"workload": {"kind": "command"}}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


def measured(device: Device, torch: str = "2.15.0", **changes: Any) -> dict[str, Any]:
    """A stored document of a device."""
    document = {
        "schema": 1,
        "device": {"kind": device.kind, "uuid": device.uuid, "name": device.name},
        "host": socket.gethostname(),
        "driver": device.attributes.get("driver.version"),
        "torch": torch,
        "threads": 2 if device.kind == "cpu" else None,
        "when": "2026-11-21T13:00:00+00:00",
        "seconds": 20.0,
        "ceilings": {"bandwidth": {"value": 4.3e12, "unit": "By/s", "how": "copy"}},
        **changes,
    }
    ceilings.store(document)
    return document


def tell(intake: Intake, **body: Any) -> None:
    line = f"{PREFIX}{json.dumps(body)}\n".encode()
    intake.take([Output(time.monotonic_ns(), "stdout", line)])


def versions(intake: Intake, torch: str = "2.15.0", threads: int = 2) -> None:
    tell(intake, event="versions", torch=torch, threads=str(threads))


def written(rows: list[Row], key: str = "ceilings") -> Any:
    """The value of the key's row; ``None`` where it is taken back."""
    ((sql, parameters),) = [row for row in rows if row[1][0] == key]
    return json.loads(str(parameters[1])) if sql.startswith("INSERT") else None


def test_a_workload_gets_its_ceilings_once_it_has_told_torch_and_device() -> None:
    document = measured(CPU)
    run, intake = RunCeilings([CPU], OURS), Intake(0)
    assert run.rows(intake) == []
    versions(intake)
    assert run.rows(intake) == []
    tell(intake, event="run", device="cpu")
    assert written(run.rows(intake)) == document
    assert run.rows(intake) == []


def test_a_program_that_tells_nothing_gets_none_of_two_documents() -> None:
    measured(GPU)
    measured(GPU, torch="2.14.0")
    run, intake = RunCeilings([GPU, CPU], COMMAND), Intake(0)
    told = written(run.rows(intake), "ceilings_missing")
    assert "2 calibrations of NVIDIA H200" in told["reason"] and "`torch`" in told["hint"]
    versions(intake)
    rows = run.rows(intake)
    assert written(rows)["torch"] == "2.15.0" and written(rows, "ceilings_missing") is None


def test_a_device_that_was_never_measured_has_neither_ceilings_nor_a_reason() -> None:
    measured(GPU)
    assert RunCeilings([CPU], COMMAND).rows(Intake(0)) == []


def test_what_was_taken_on_trust_is_taken_back_when_the_program_tells_other_threads() -> None:
    measured(CPU)
    run, intake = RunCeilings([CPU], COMMAND), Intake(0)
    assert written(run.rows(intake)) is not None
    versions(intake, threads=64)
    rows = run.rows(intake)
    assert written(rows) is None
    assert "OMP_NUM_THREADS=64" in written(rows, "ceilings_missing")["hint"]


def test_of_another_torch_the_last_measured_is_taken_and_the_runs_torch_is_told() -> None:
    measured(GPU, torch="2.14.0", when="2026-11-20T10:00:00+00:00")
    newest = measured(GPU, torch="2.15.0", when="2026-11-21T10:00:00+00:00")
    run, intake = RunCeilings([GPU], COMMAND), Intake(0)
    versions(intake, "2.9.0")
    assert written(run.rows(intake)) == {**newest, "run_torch": "2.9.0"}


def test_a_recorder_that_takes_a_run_up_keeps_its_ceilings() -> None:
    known = {**OURS, "ceilings": measured(CPU), "run": {"device": "cpu"}}
    measured(CPU, torch="2.14.0")
    assert RunCeilings([CPU], known).rows(Intake(0, known)) == []
