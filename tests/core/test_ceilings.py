"""Documents of measured ceilings: stored, found again, and matched to what a run uses."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.core import ceilings, paths
from gpuwatch.core.ceilings import CeilingQuery
from gpuwatch.core.errors import StorageError

GPU = CeilingQuery("gpu", "NVIDIA H100 80GB HBM3", "GPU-1", "node1", "575.57", "2.15.0")
CPU = CeilingQuery("cpu", "AMD EPYC", None, "node1", None, "2.15.0", 8)


def document(
    of: CeilingQuery, bandwidth: float = 3e12, when: str = "2026-11-21T13:00:00+00:00"
) -> Any:
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
    assert ceilings.store(document(GPU)) == document(GPU)
    (path,) = paths.ceilings_home().iterdir()
    assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
    assert ceilings.documents() == [document(GPU)]


LATER = "2026-11-22T13:00:00+00:00"


def with_(of: Any, **entries: Any) -> Any:
    return {**of, "ceilings": {**of["ceilings"], **entries}}


def test_of_two_measurements_of_the_same_the_higher_ceilings_stay_each_with_its_time() -> None:
    older = with_(document(GPU, 4e12), tf32={"value": 1e14, "how": "older"})
    newer = with_(document(GPU, 3e12, LATER), tf32={"value": 2e14, "how": "newer"})
    ceilings.store(older)
    ceilings.store(newer)
    (known,) = ceilings.documents()
    bandwidth, tf32 = known["ceilings"]["bandwidth"], known["ceilings"]["tf32"]
    assert (bandwidth["value"], bandwidth["when"]) == (4e12, older["when"])
    assert (tf32["value"], tf32["how"], tf32["when"]) == (2e14, "newer", LATER)
    assert known["when"] == LATER


def test_a_fresh_measurement_takes_the_place_of_a_higher_one() -> None:
    ceilings.store(document(GPU, 4e12))
    ceilings.store(document(GPU, 3e12), fresh=True)
    assert ceilings.documents() == [document(GPU, 3e12)]


def test_a_failure_now_does_not_take_away_what_was_reached_before() -> None:
    failed = with_(document(GPU, when=LATER), bandwidth={"value": None, "reason": "no memory"})
    known = ceilings.merged(document(GPU, 4e12), failed)
    assert known["ceilings"]["bandwidth"]["value"] == 4e12


@pytest.mark.parametrize(
    ("older", "newer", "kept"),
    [
        ((4e12, ["busy"]), (3e12, ["busier"]), (4e12, ["busy"])),
        ((3e12, ["busy"]), (4e12, ["busier"]), (4e12, ["busier"])),
        ((3e12, ["busy"]), (4e12, []), (4e12, [])),
        # An undisturbed measurement that gave no more: there is no more.
        ((4e12, ["busy"]), (3e12, []), (4e12, [])),
    ],
)
def test_the_kept_ceiling_has_its_warning_unless_an_undisturbed_one_gave_no_more(
    older: tuple[float, list[str]], newer: tuple[float, list[str]], kept: tuple[float, list[str]]
) -> None:
    known = ceilings.merged(
        *(
            with_(document(GPU), bandwidth={"value": value, "warnings": warnings})
            for value, warnings in (older, newer)
        )
    )
    entry = known["ceilings"]["bandwidth"]
    assert (entry["value"], entry["warnings"]) == kept


def test_warnings_of_a_whole_document_are_those_of_its_ceilings() -> None:
    older = {**document(GPU, 4e12), "warnings": ["busy"]}
    known = ceilings.merged(older, document(GPU, 5e12))
    assert known["ceilings"]["bandwidth"]["warnings"] == []
    known = ceilings.merged(older, {**document(GPU, 3e12), "warnings": ["busier"]})
    assert known["ceilings"]["bandwidth"]["warnings"] == ["busy"]


@pytest.mark.parametrize(
    "other",
    [replace(GPU, uuid="GPU-2"), replace(GPU, driver="580.10"), replace(GPU, torch="2.14.0"), CPU],
)
def test_another_device_driver_or_torch_has_a_document_of_its_own(other: CeilingQuery) -> None:
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
    measured: CeilingQuery, used: CeilingQuery
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
    one: CeilingQuery, other: CeilingQuery, unknown: CeilingQuery
) -> None:
    assert ceilings.matching([document(one)], unknown) == document(one)
    assert ceilings.matching([document(one), document(other)], unknown) is None


def test_a_program_that_tells_its_torch_and_no_threads_gets_none_of_two_documents() -> None:
    known = [document(CPU), document(replace(CPU, threads=1))]
    sought = replace(CPU, threads=None)
    assert ceilings.matching(known, sought) is None
    assert ceilings.matching_except_torch(known, sought) is None


@pytest.mark.parametrize(
    ("others", "sought", "reason", "hint"),
    [
        (
            [replace(CPU, threads=1)],
            replace(CPU, torch=None, threads=None),
            "(threads 8; threads 1), and the run does not report its threads",
            "a `versions` line with `threads`",
        ),
        (
            [replace(CPU, threads=1, torch="2.14.0")],
            replace(CPU, torch=None, threads=None),
            "does not report its torch and threads",
            "a `versions` line with `torch` and `threads`",
        ),
        ([], replace(CPU, threads=4), "threads 8, and the run has 4", "OMP_NUM_THREADS=4"),
    ],
)
def test_why_a_calibrated_cpu_has_no_ceilings_is_told_with_what_helps(
    others: list[CeilingQuery], sought: CeilingQuery, reason: str, hint: str
) -> None:
    found = ceilings.undecided([document(CPU), *map(document, others)], sought)
    assert found is not None
    assert reason in found.reason and hint in found.hint


def test_a_gpu_with_another_driver_is_measured_again_and_one_never_measured_is_not_told() -> None:
    found = ceilings.undecided([document(GPU), document(CPU)], replace(GPU, driver="580.10"))
    assert found is not None and "driver 575.57, and the run has 580.10" in found.reason
    assert ceilings.undecided([document(CPU)], GPU) is None


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
    assert told.value.hint
