"""Which ceiling a share is of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.analysis.hardware.ceilings import (
    CALIBRATE,
    Missing,
    ceilings_of,
    data_type_of,
    every_ceiling_of,
    missing_of,
)
from gpuwatch.session.rows import DeviceRow
from tests.analysis.sessions import H100, calibration

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


def gpu(id_: str = "gpu0", uuid: str | None = "GPU-1", **attributes: Any) -> DeviceRow:
    name = "NVIDIA H100 80GB HBM3"
    return DeviceRow(id_, "gpu", name, uuid, True, attributes or dict(H100))


CPU = DeviceRow("cpu", "cpu", "AMD EPYC", None, True, {})


def test_a_measured_ceiling_comes_before_the_peak() -> None:
    found = ceilings_of({"ceilings": calibration(bandwidth=3e12)}, [gpu()])
    assert (found["bandwidth"].value, found["bandwidth"].kind) == (3e12, "measured")
    assert found["bandwidth"].text == "measured copy"
    assert (
        "spread 1.0 %" in found["bandwidth"].source and "torch 2.15.0" in found["bandwidth"].source
    )
    assert found["bfloat16"].text == "bfloat16 data-sheet peak", "which an MFU is of, too"


def test_the_peaks_of_an_h100_are_those_of_its_data_sheet_and_of_its_clocks() -> None:
    found = every_ceiling_of({}, [gpu()])
    sheet, at_clock = zip(*(found[name] for name in ("bandwidth", "bfloat16")), strict=True)
    assert [each.value for each in sheet] == pytest.approx([3.352e12, 9.895e14], rel=1e-3)
    at_maximum = [2.619e9 * 2 * 5120 / 8, 132 * 4096 * 1.98e9]
    assert [each.value for each in at_clock] == pytest.approx(at_maximum)
    unlisted = replace(gpu(), name="NVIDIA H100 of tomorrow")
    assert ceilings_of({}, [unlisted])["bfloat16"].text == "bfloat16 peak at maximum clock"


def test_a_calibration_of_another_card_says_nothing() -> None:
    document = calibration(uuid="GPU-9", bandwidth=3e12)
    assert ceilings_of({"ceilings": document}, [gpu()])["bandwidth"].kind == "sheet"
    nameless = calibration(uuid=None, bandwidth=3e12)
    assert ceilings_of({"ceilings": nameless}, [gpu()])["bandwidth"].kind == "measured"


def test_a_ceiling_that_another_torch_measured_says_so() -> None:
    document = {**calibration(bandwidth=3e12), "run_torch": "2.9.0"}
    found = ceilings_of({"ceilings": document}, [gpu()])["bandwidth"]
    assert found.text == "measured copy, by another torch"
    assert "torch 2.15.0" in found.source and "the run has torch 2.9.0" in found.source


def test_a_ceiling_measured_on_a_busy_machine_is_doubted_with_its_warning() -> None:
    document = {**calibration(bandwidth=3e12, float32=5e13), "warnings": ["all was busy"]}
    document["ceilings"]["float32"]["warnings"] = []
    found = ceilings_of({"ceilings": document}, [gpu()])
    assert (found["bandwidth"].doubt, found["float32"].doubt) == ("all was busy", None)
    assert found["bfloat16"].doubt is None  # a peak


def test_why_no_ceiling_was_chosen_is_told_in_the_recorders_words() -> None:
    told = {"reason": "2 calibrations are stored", "hint": "a `versions` line"}
    assert missing_of({"ceilings_missing": told}, ()) == Missing(told["reason"], told["hint"])
    assert (
        missing_of({}, ()) == missing_of({"ceilings_missing": [1]}, ()) == Missing(None, CALIBRATE)
    )


def test_the_sum_of_ceilings_has_the_doubts_of_each() -> None:
    doubted = {**calibration(uuid="GPU-2", bandwidth=2e12), "warnings": ["it was busy"]}
    both = [gpu(), gpu("gpu1", "GPU-2")]
    found = ceilings_of({"ceilings": [calibration(bandwidth=3e12), doubted]}, both)
    assert found["bandwidth"].doubt == "it was busy"


def test_several_gpus_have_the_sum_of_their_ceilings_and_it_is_said() -> None:
    documents = [calibration(bandwidth=3e12), calibration(uuid="GPU-2", bandwidth=2e12)]
    both = [gpu(), gpu("gpu1", "GPU-2")]
    found = ceilings_of({"ceilings": documents}, both)["bandwidth"]
    assert (found.value, found.text) == (5e12, "measured copy, sum over 2 GPUs")
    assert ceilings_of({"ceilings": documents}, both, "gpu1")["bandwidth"].value == 2e12


def test_where_one_of_several_gpus_lacks_a_measured_ceiling_peaks_are_added() -> None:
    both = [gpu(), gpu("gpu1", "GPU-2")]
    found = ceilings_of({"ceilings": calibration(bandwidth=3e12)}, both)["bandwidth"]
    assert found.kind == "sheet" and found.value == pytest.approx(2 * 3.352e12)
    unknown = replace(gpu("gpu1", "GPU-2", **{"compute.capability": "99.0"}), name="NVIDIA X")
    assert "bandwidth" not in ceilings_of({}, [gpu(), unknown])


def test_a_run_on_the_cpu_has_measured_ceilings_alone() -> None:
    document = calibration("cpu", None, bandwidth=3e10, float32=None)
    meta = {"run": {"device": "cpu"}, "ceilings": document}
    found = ceilings_of(meta, [replace(gpu(), used=False), CPU])
    assert list(found) == ["bandwidth"] and found["bandwidth"].kind == "measured"
    assert ceilings_of({}, [CPU]) == {}


def test_a_card_whose_architecture_is_unknown_has_no_compute_ceiling() -> None:
    found = ceilings_of({}, [gpu(**{**H100, "compute.capability": "99.0"})])
    assert not {"float32", "bfloat16"} & set(found)


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ("float32", "float32"),
        ("torch.bfloat16", "bfloat16"),
        ("autocast bf16", "bfloat16"),
        ("tf32", "tf32"),
        ("FP16", "float16"),
        ("fp32 and bf16", None),
        ("posit8", None),
        (None, None),
    ],
)
def test_the_data_type_is_read_or_unknown(told: str | None, name: str | None) -> None:
    assert data_type_of({"run": {"dtype": told}}, []) == name


@given(ANYTHING)
def test_a_hostile_document_gives_no_ceiling_that_is_not_a_positive_number(stored: Any) -> None:
    for document in (stored, {"device": {"kind": "cpu"}, "ceilings": stored}):
        for listed in every_ceiling_of({"ceilings": document}, [CPU]).values():
            assert all(0 < ceiling.value < float("inf") for ceiling in listed)
