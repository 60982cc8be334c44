"""Documents of measured ceilings: stored, found again, and matched to what a run uses."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuwatch import ceilings, paths
from gpuwatch.ceilings import Sought
from gpuwatch.errors import StorageError

GPU = Sought("gpu", "NVIDIA H100 80GB HBM3", "GPU-1", "node1", "575.57", "2.15.0")
CPU = Sought("cpu", "AMD EPYC", None, "node1", None, "2.15.0", 8)


def document(of: Sought, bandwidth: float = 3e12, when: str = "2026-11-21T13:00:00+00:00") -> Any:
    entry = {"value": bandwidth, "unit": "By/s", "how": "copy", "spread": 0.01, "reason": None}
    return {
        "schema": 1,
        "device": {"kind": of.kind, "uuid": of.uuid, "name": of.name},
        "host": of.host,
        "driver": of.driver,
        "torch": of.torch,
        "threads": of.threads,
        "when": when,
        "seconds": 30.0,
        "ceilings": {"bandwidth": entry},
    }


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path


def test_a_stored_document_is_found_again_and_is_its_owners_alone() -> None:
    path = ceilings.store(document(GPU))
    assert path.parent == paths.ceilings_home()
    assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
    assert ceilings.documents() == [document(GPU)]


def test_measuring_again_replaces_the_document_of_the_same_device_driver_and_torch() -> None:
    ceilings.store(document(GPU, 3e12))
    ceilings.store(document(GPU, 4e12))
    assert ceilings.documents() == [document(GPU, 4e12)]


@pytest.mark.parametrize(
    "other",
    [
        replace(GPU, uuid="GPU-2"),
        replace(GPU, driver="580.10"),
        replace(GPU, torch="2.14.0"),
        CPU,
    ],
)
def test_another_device_driver_or_torch_has_a_document_of_its_own(other: Sought) -> None:
    ceilings.store(document(GPU, 3e12))
    ceilings.store(document(other, 4e12))
    known = ceilings.documents()
    assert len(known) == 2
    assert ceilings.matching(known, GPU) == document(GPU, 3e12)
    assert ceilings.matching(known, other) == document(other, 4e12)


@pytest.mark.parametrize(
    ("measured", "used"),
    [
        (GPU, replace(GPU, uuid="GPU-2")),
        (GPU, replace(GPU, driver="580.10")),
        (GPU, replace(GPU, torch="2.15.0+cu132")),
        (GPU, CPU),
        (CPU, replace(CPU, threads=4)),
        (CPU, replace(CPU, host="node2")),
        (CPU, replace(CPU, name="Intel Xeon")),
        (CPU, replace(CPU, torch="2.14.0")),
    ],
)
def test_a_document_of_something_else_is_no_ceiling_of_a_run(
    measured: Sought, used: Sought
) -> None:
    assert ceilings.matching([document(measured)], measured) is not None
    assert ceilings.matching([document(measured)], used) is None


def test_a_gpu_is_the_same_on_another_host_name() -> None:
    assert ceilings.matching([document(GPU)], replace(GPU, host="container")) is not None


@pytest.mark.parametrize(
    ("one", "other", "unknown"),
    [
        (GPU, replace(GPU, torch="2.14.0"), replace(GPU, torch=None)),
        (CPU, replace(CPU, threads=4), replace(CPU, torch=None, threads=None)),
    ],
)
def test_an_unknown_torch_takes_the_only_document_and_none_of_two(
    one: Sought, other: Sought, unknown: Sought
) -> None:
    assert ceilings.matching([document(one)], unknown) == document(one)
    assert ceilings.matching([document(one), document(other)], unknown) is None


def test_documents_are_listed_the_latest_first_and_damaged_files_by_their_trouble() -> None:
    ceilings.store(document(GPU, when="2026-01-01T00:00:00+00:00"))
    ceilings.store(document(CPU, when="2026-02-01T00:00:00+00:00"))
    folder = paths.ceilings_home()
    for name, text in {"a": "{", "b": "[]", "c": '{"schema": 9, "ceilings": {}}'}.items():
        (folder / f"{name}.json").write_text(text)
    (folder / "d.json").mkdir()
    stored = ceilings.stored()
    assert [each["device"]["kind"] for each in ceilings.documents()] == ["cpu", "gpu"]
    assert [each.trouble is None for each in stored] == [True, True, False, False, False, False]
    assert any("schema 9" in (each.trouble or "") for each in stored)


def test_without_a_folder_nothing_is_stored_yet() -> None:
    assert ceilings.stored() == []


def test_a_folder_that_cannot_be_made_is_told_with_its_mend(home: Path) -> None:
    (home / "gpuwatch").write_text("a file in the way")
    with pytest.raises(StorageError) as told:
        ceilings.store(document(GPU))
    assert told.value.mend
