"""What cannot be, what held a run back, and who shared its GPUs."""

from __future__ import annotations

import re
from typing import Any

import pytest

from gpuwatch.analysis.comparison.comparison_row import ceiling_notes
from gpuwatch.analysis.comparison.side_by_side import compare
from gpuwatch.analysis.hardware.crosscheck import clocks_of
from gpuwatch.analysis.summary.load import partly_sampled
from gpuwatch.report.document.efficiency import efficiency_rows
from gpuwatch.session.rows import DeviceRow
from tests.analysis.sessions import COUNT, CPU, GPU, H100, WORKLOAD, Make, calibration

FLOAT32 = 132 * 256 * 1.98e9
"""FLOP/s of the H100: multiprocessors x FLOP per clock x maximum clock."""
FLOAT64 = 132 * 256 * 1.98e9
"""Of its tensor cores; the FP64 pipes do half of it."""
V100 = {
    "compute.capability": "7.0",
    "core.count": 5120,
    "clock.sm.max": 1.53e9,
    "clock.memory.max": 8.77e8,
    "memory.bus.width": 4096,
}
GIB = 2**30


def at(rate: float) -> dict[str, Any]:
    """The count of a run at this many FLOP/s; a step takes half a second."""
    return {**COUNT, "flop_per_step": rate / 2}


def test_a_rate_over_the_arithmetic_peak_is_a_warning_and_shows_no_bound(make: Make) -> None:
    found = make(run={"dtype": "float32"}, count=at(1.5 * FLOAT32)).efficiency
    (warning,) = found.warnings
    assert "150 % of the float32 peak at maximum clock" in warning and "TF32" in warning
    for mfu in (found.mfu, found.mfu_at_maximum_clock):
        assert mfu.value is None and "no run can pass the float32 peak" in (mfu.reason or "")
    assert found.flop_shares == (), "nor has it another share of a peak"
    assert found.roofline.verdict.bound == "unknown"
    assert "which no run can pass" in found.roofline.verdict.text


@pytest.mark.parametrize(("times", "warns"), [(1.01, False), (1.03, True)])
def test_two_per_cent_over_the_peak_are_left_for_the_step_times(
    make: Make, times: float, warns: bool
) -> None:
    found = make(run={"dtype": "float32"}, count=at(times * FLOAT32)).efficiency
    assert bool(found.warnings) is warns


def test_a_measured_ceiling_does_not_hide_that_a_rate_is_impossible(make: Make) -> None:
    found = make(
        run={"dtype": "float32"},
        count=at(1.5 * FLOAT32),
        extra={"ceilings": calibration(bandwidth=3e12, float32=5e13)},
    ).efficiency
    assert "which no run can pass" in found.roofline.verdict.text


def test_a_type_without_cores_is_held_against_the_type_it_is_computed_in(make: Make) -> None:
    card = ("gpu0", "gpu", "Tesla V100-SXM2-16GB", "GPU-1", V100)
    found = make(devices=(card, CPU), count=at(5e13)).efficiency
    (warning,) = found.warnings
    assert "319 % of the float32 peak" in warning and "no cores for bfloat16" in warning
    assert "has no cores for bfloat16" in (found.mfu.reason or "")


@pytest.mark.parametrize(
    ("tensor", "fp64", "counted"), [(0.8, 0.02, 0.77), (0.0, 0.9, 0.4), (0.85, 0.0, 0.3)]
)
def test_products_in_float64_on_tensor_cores_agree_with_their_activity(
    make: Make, tensor: float, fp64: float, counted: float
) -> None:
    gauges = {
        ("gpu0", "hw.gpu.tensor.activity"): tensor,
        ("gpu0", "hw.gpu.fp64.activity"): fp64,
        ("gpu0", "hw.gpu.fp32.activity"): 0.01,
        ("gpu0", "hw.gpu.clock.sm"): 1.98e9,
    }
    found = make(gauges=gauges, run={"dtype": "float64"}, count=at(counted * FLOAT64)).efficiency
    assert found.warnings == ()


HELD = {("gpu0", "hw.gpu.throttle.power"): 1.0, ("gpu0", "hw.gpu.clock.sm"): 0.99e9}


def test_clocks_that_were_held_down_are_told_with_share_of_time_and_mean(make: Make) -> None:
    peak = 132 * 4096 * 1.98e9
    found = make(gauges=HELD, count=at(0.4 * peak)).efficiency
    (warning,) = found.warnings
    assert "gpu0 were held down by power 100 % of the time" in warning
    assert "on average 990 MHz of at most 1.98 GHz" in warning
    verdict = found.roofline.verdict
    # 40 % of the peak at the maximum clock is 80 % of what half the clock allows.
    assert (
        verdict.bound == "compute"
        and "43 % of the bfloat16 data-sheet peak, 80 % at the clock it had" in verdict.text
    )


@pytest.mark.parametrize(("heat", "bound"), [(0.9, "power"), (1.1, "neither")])
def test_power_that_holds_the_clocks_down_most_is_the_bound_of_a_run_below_both(
    make: Make, heat: float, bound: str
) -> None:
    gauges = {
        **HELD,
        ("gpu0", "hw.gpu.throttle.thermal"): heat,
        ("gpu0", "hw.gpu.power"): 350.0,
        ("gpu0", "hw.gpu.utilization"): 1.0,
        ("gpu0", "hw.gpu.memory.bandwidth"): 1e11,
    }
    found = make(gauges=gauges, count=at(1e13)).efficiency
    verdict = found.roofline.verdict
    assert verdict.bound == bound
    told = "power-limited: 350 W, clocks held down all the time; neither"
    assert verdict.text.startswith(told) == (bound == "power")


def test_clocks_that_power_and_heat_held_down_in_turn_are_told_by_cause(make: Make) -> None:
    power, heat = [1.0, 0.0, 0.0, 0.0] * 50, [0.0, 1.0, 0.0, 0.0] * 50
    of = {("gpu0", "hw.gpu.throttle.power"): power, ("gpu0", "hw.gpu.throttle.thermal"): heat}
    found = make(gauges={**HELD, **of}, count=at(1e13)).efficiency
    told = r"held down by power \d+ % and by temperature \d+ % of the time"
    assert re.search(told, found.roofline.verdict.text)
    assert re.search(told, found.warnings[0])


def test_a_run_of_several_gpus_is_limited_by_power_where_all_of_them_are() -> None:
    held = {"hw.gpu.throttle.power": 0.9, "hw.gpu.power": 690.0}
    gpus = [DeviceRow(f"gpu{at}", "gpu", "", None, True, {}) for at in range(2)]
    both, one = (clocks_of(gpus, {"gpu0": held, "gpu1": each}) for each in (held, {}))
    assert both is not None and both.by_power == 0.9
    assert one is not None and (one.held, one.by_power) == (0.9, 0.0)


def test_one_glimpse_of_clocks_that_are_held_down_is_no_warning(make: Make) -> None:
    power = [0.0] * 25 + [1.0] + [0.0] * 100
    gauges = {**HELD, ("gpu0", "hw.gpu.throttle.power"): power}
    # One of the 24 samples of twelve seconds.
    found = make(gauges=gauges, step_seconds=0.6)
    assert found.efficiency.warnings == ()


def test_another_process_on_the_gpu_is_named(make: Make) -> None:
    processes = [
        ("gpu0", 4242, "python", False, 50 * GIB),
        ("gpu0", 77, "python", True, GIB),
        ("gpu1", 5, "other", False, GIB),
    ]
    found = make(processes=processes).efficiency
    (warning,) = found.warnings
    assert "python (PID 4242, 50.0 GiB) on gpu0" in warning
    assert "77" not in warning and "gpu1" not in warning


def absent(held: float = 0, busy: float = 0.96) -> dict[str, Any]:
    memory, utilization = ("workload", "process.gpu.memory.usage"), ("gpu0", "hw.gpu.utilization")
    return {"devices": (GPU, CPU, WORKLOAD), "gauges": {memory: held, utilization: busy}}


def test_a_workload_that_is_on_none_of_the_busy_gpus_is_told(make: Make) -> None:
    (warning,) = make(**absent()).efficiency.warnings
    assert "none of its processes on gpu0, busy 96 % of the time" in warning


@pytest.mark.parametrize(
    "options",
    [
        absent(held=GIB),
        absent(busy=0.01),
        {**absent(), "run": {"device": "cpu"}},
        {**absent(), "processes": [("gpu0", 9, "nvidia-cuda-mps-server", False, GIB)]},
    ],
)
def test_a_workload_that_may_be_on_the_gpu_is_not_said_to_be_elsewhere(
    make: Make, options: dict[str, Any]
) -> None:
    assert make(**options).efficiency.warnings == ()


BANDWIDTH = ("gpu0", "hw.gpu.memory.bandwidth")


def test_what_was_sampled_in_part_is_told_as_the_least_it_can_be(make: Make) -> None:
    count = {**COUNT, "bytes_per_step": 1.2e12}
    found = make(gauges={BANDWIDTH: [1e12] * 21 + [None] * 8 + [1e12] * 100}, count=count)
    assert found.metrics[BANDWIDTH[1]].coverage == pytest.approx(0.65)
    assert any("only 65 % of the timed steps" in note for note in partly_sampled([found]))
    told = dict(efficiency_rows(found))["memory bandwidth"]
    assert told.startswith("at least 650 GB/s bound (samples cover only 65 % of the window)")
    assert "at least 19 % of the data-sheet peak" in told
    # The verdict says why there are no measured bytes.
    hint = found.efficiency.roofline.verdict.hint or ""
    assert "samples cover only 65 % of the window" in hint and "Hopper" not in hint


def test_mfu_of_different_data_types_has_no_ratio_and_a_note(make: Make) -> None:
    compared = compare([make(), make(run={"dtype": "float32"})])
    (row,) = [row for row in compared.rows if row.name == "MFU"]
    assert None not in row.values and row.ratios == (1, None)
    notes = ceiling_notes(compared.rows)
    assert any("no ratio of MFU" in note and "float32" in note for note in notes)


def test_hostile_rows_of_processes_and_clocks_stop_nothing(make: Make) -> None:
    strange = ("gpu0", "gpu", "Card", "GPU-1", {**H100, "clock.sm.max": 0})
    found = make(
        devices=(strange, CPU), gauges=HELD, processes=[("gpu0", -1, "\x1b[31m", False, None)]
    ).efficiency
    assert any("held down" in warning for warning in found.warnings)
