"""The ceilings of a recording's own devices are in its session, and no others."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.recorder.output.step_lines import PREFIX
from gpuwatch.telemetry.host.cpu import CpuSource
from tests.conftest import Cli
from tests.fake_nvml import FakeDriver, uuid
from tests.reading import meta, sessions

DRIVER = "575.57.08"
TORCH = "2.15.0"


@pytest.fixture
def driver(driver: FakeDriver) -> FakeDriver:
    """Two GPUs, whatever this machine has."""
    driver.resize(2)
    return driver


@pytest.fixture
def known(cli: Cli) -> Callable[..., dict[str, Any]]:
    """Puts a document among those of the test's home."""
    folder = cli.home / ".local/share/gpuwatch/ceilings"

    def put(
        gpu: int | None, *, torch: str = TORCH, driver: str = DRIVER, threads: int = 2
    ) -> dict[str, Any]:
        if gpu is None:
            source = CpuSource()
            device: dict[str, Any] = {"kind": "cpu", "uuid": None, "name": source.devices[0].name}
            source.close()
        else:
            device = {"kind": "gpu", "uuid": uuid(gpu), "name": "NVIDIA H100 80GB HBM3"}
        document = {
            "schema": 1,
            "device": device,
            "host": socket.gethostname(),
            "driver": None if gpu is None else driver,
            "torch": torch,
            "threads": threads if gpu is None else None,
            "when": "2026-11-21T13:00:00+00:00",
            "seconds": 30.0,
            "ceilings": {"bandwidth": {"value": 3e12, "unit": "By/s", "spread": 0.01}},
        }
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{len(list(folder.iterdir()))}.json").write_text(json.dumps(document))
        return document

    return put


def recorded(cli: Cli, out: Path, *reports: Mapping[str, Any]) -> Any:
    """``meta.ceilings`` of a program that tells this in step lines; ``None``: it has none."""
    lines = [f"{PREFIX}{json.dumps(report)}" for report in reports]
    cli("--record", "--quiet", "--out", out, "--", "printf", "%s\\n", "begins", *lines)
    return meta(sessions(out)[-1]).get("ceilings")


def versions(torch: str = TORCH, threads: int = 2) -> dict[str, Any]:
    return {"event": "versions", "torch": torch, "threads": str(threads)}


def run_on(*gpus: int) -> dict[str, Any]:
    told = {"event": "run", "device": "cuda" if gpus else "cpu"}
    return {**told, "device_uuid": [uuid(gpu) for gpu in gpus]} if gpus else told


def test_a_run_gets_the_document_of_its_gpu_driver_and_torch(
    cli: Cli, driver: FakeDriver, known: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    known(0), known(1, torch="2.14.0"), known(1, driver="1.2"), known(None)
    wanted = known(1)
    assert recorded(cli, tmp_path / "out", versions(), run_on(1)) == wanted


def test_a_run_on_several_gpus_gets_a_document_of_each(
    cli: Cli, driver: FakeDriver, known: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    wanted = [known(0), known(1)]
    assert recorded(cli, tmp_path / "out", versions(), run_on(0, 1)) == wanted


def test_a_run_on_the_cpu_gets_the_document_of_its_threads(
    cli: Cli, known: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    known(None, threads=64)
    wanted = known(None, threads=2)
    assert recorded(cli, tmp_path / "out", versions(threads=2), run_on()) == wanted


def test_a_run_with_a_torch_that_was_not_measured_is_told_so(
    cli: Cli, driver: FakeDriver, known: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    wanted = known(0)
    known(1), known(None)
    found = recorded(cli, tmp_path / "out", versions("2.13.0"), run_on(0))
    assert found == {**wanted, "run_torch": "2.13.0"}
    assert recorded(cli, tmp_path / "out", versions(threads=64), run_on()) is None


def test_a_program_that_tells_nothing_gets_what_alone_fits_its_devices(
    cli: Cli, driver: FakeDriver, known: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    known(0), known(0, torch="2.14.0")
    wanted = [known(1), known(None)]
    assert recorded(cli, tmp_path / "out") == wanted


def test_a_recording_of_the_machine_gets_the_ceilings_of_its_devices(
    cli: Cli, known: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    wanted = known(None)
    out = tmp_path / "out"
    cli("--record", "--quiet", "--duration", "300ms", "--out", out)
    assert meta(sessions(out)[-1])["ceilings"] == wanted


def test_without_a_document_and_with_a_damaged_one_nothing_is_written(
    cli: Cli, known: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    assert recorded(cli, tmp_path / "a", versions(), run_on()) is None
    folder = cli.home / ".local/share/gpuwatch/ceilings"
    folder.mkdir(parents=True)
    (folder / "x.json").write_text("{")
    assert recorded(cli, tmp_path / "b", versions(), run_on()) is None
