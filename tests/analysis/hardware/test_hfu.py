"""FLOP that are computed again: apart from the model's, and in HFU."""

from __future__ import annotations

from typing import Any

import pytest

from gpuwatch.analysis.hardware.mfu import EXECUTED_TWICE, MODEL_FLOP, hfu_of
from gpuwatch.analysis.measured_value import MeasuredValue, unknown
from gpuwatch.core.metrics import Method

MFU = MeasuredValue(0.3, "1", Method.COUNTED, f"{MODEL_FLOP}, over the peak")


def test_hfu_has_what_is_computed_again() -> None:
    hfu = hfu_of(MFU, {"flop_per_step": 3e12, "flop_recomputed_per_step": 1e12})
    assert hfu.value == pytest.approx(0.4) and hfu.method is Method.COUNTED
    assert hfu.source == f"{EXECUTED_TWICE}, over the peak"


@pytest.mark.parametrize(
    "count",
    [
        {},
        {"flop_per_step": 3e12},
        {"flop_per_step": 3e12, "flop_recomputed_per_step": 0},
        {"flop_per_step": None, "flop_recomputed_per_step": 1e12},
    ],
)
def test_without_recomputation_there_is_no_hfu(count: dict[str, Any]) -> None:
    assert hfu_of(MFU, count).value is None


def test_without_mfu_there_is_no_hfu_for_the_same_reason() -> None:
    none = unknown("1", "no peak is known")
    assert hfu_of(none, {"flop_per_step": 3, "flop_recomputed_per_step": 1}).reason == none.reason
