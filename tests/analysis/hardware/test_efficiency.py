"""MFU, traffic, energy and the cross-checks of whole sessions, against hand-computed figures."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.analysis.comparison.side_by_side import compare
from gpuwatch.analysis.samples.channels import integral, mean_between
from gpuwatch.analysis.samples.window import Window
from gpuwatch.core.metrics import Method
from gpuwatch.report import json as as_json
from gpuwatch.report.document.efficiency import efficiency_rows
from gpuwatch.report.document.sessions import document
from gpuwatch.report.text import as_text
from tests.analysis.sessions import (
    COUNT,
    CPU,
    GPU,
    H100,
    OTHER_GPU,
    SECOND,
    WORKLOAD,
    Make,
    calibration,
)

BF16 = 132 * 4096 * 1.98e9
"""FLOP/s: multiprocessors x FLOP per clock x maximum clock."""
SHEET_BF16 = 989e12
"""The data sheet's figure."""
BANDWIDTH = ("gpu0", "hw.gpu.memory.bandwidth")


def on_cpu(utilization: float, seconds: float, cores: int = 0, **more: Any) -> dict[str, Any]:
    """Of a program that uses so many CPU seconds each second."""
    attributes = {"core.logical.count": cores} if cores else {}
    return {
        "devices": ((*CPU[:4], attributes), WORKLOAD),
        "run": {"device": "cpu", "dtype": "float32"},
        "gauges": {("cpu", "hw.cpu.utilization"): utilization},
        "counters": {("workload", "process.cpu.time"): seconds},
        **more,
    }


def test_mfu_is_forward_and_backward_flop_over_the_data_sheets_peak(make: Make) -> None:
    run = make()
    found = run.efficiency
    # 2 TFLOP a step, a step every half second.
    assert found.flop_rate.value == pytest.approx(4e12)
    assert found.mfu.value == pytest.approx(4e12 / SHEET_BF16, rel=1e-3)
    assert found.mfu.method is Method.COUNTED
    assert "bfloat16 data-sheet peak" in found.mfu.source and "1830 MHz" in found.mfu.source

    at_most = found.mfu_at_maximum_clock
    assert at_most.value == pytest.approx(4e12 / BF16) and at_most.method is Method.COUNTED
    assert "bfloat16 peak at maximum clock" in at_most.source
    told = dict(efficiency_rows(run))
    which = "(counted: model FLOP, forward and backward, without recomputation)"
    assert told["MFU"] == f"0.4 % of the dense bfloat16 data-sheet peak, 989 TFLOP/s {which}"
    at_maximum = f"0.4 % of the dense bfloat16 peak at maximum clock, 1.07 PFLOP/s {which}"
    assert told["MFU at maximum clock"] == at_maximum


def test_which_flop_type_and_peak_an_mfu_is_of_is_in_json(make: Make) -> None:
    found = make(count={**COUNT, "flop_recomputed_per_step": 6e11})
    told = json.loads(as_json.dumps(as_json.summary(found)))["efficiency"]
    for key, peak in (("mfu", SHEET_BF16), ("mfu_at_maximum_clock", BF16), ("hfu", SHEET_BF16)):
        convention = told[key]["convention"]
        assert convention["data_type"] == "bfloat16"
        assert convention["peak"]["value"] == pytest.approx(peak, rel=1e-3)
        assert ("computes again" in convention["flop"]) is (key == "hfu")
    assert told["hfu"]["value"] == pytest.approx(1.3 * told["mfu"]["value"])
    assert "computes again" in told["hfu"]["source"]
    unknown = make(run={"dtype": None})
    told = json.loads(as_json.dumps(as_json.summary(unknown)))["efficiency"]
    assert told["mfu"]["convention"]["peak"] is None


def test_a_card_without_a_data_sheet_has_no_mfu_but_its_share_at_the_maximum_clock(
    make: Make,
) -> None:
    run = make(devices=(("gpu0", "gpu", "NVIDIA H100 NVL", "GPU-1", H100), CPU))
    found = run.efficiency
    assert (found.mfu.value, found.mfu.method) == (None, Method.UNAVAILABLE)
    assert found.mfu.reason == "gpuwatch has no data sheet for NVIDIA H100 NVL"
    assert found.mfu_at_maximum_clock.value == pytest.approx(4e12 / BF16)
    assert dict(efficiency_rows(run))["MFU"] == f"unavailable: {found.mfu.reason}"


def test_several_figures_without_a_value_share_a_line_with_a_short_name(make: Make) -> None:
    rows = efficiency_rows(make(devices=(CPU,), run={"device": "cpu"}))
    assert max(len(name) for name, _ in rows) <= len("algorithmic bytes")
    assert ("unavailable", "MFU, MFU at maximum clock: a CPU's peak is not known") in rows


def test_a_share_names_the_ceiling_that_it_is_of(make: Make) -> None:
    run = make(extra={"ceilings": calibration(bandwidth=3e12, bfloat16=8e14)})
    found = run.efficiency
    shares = {each.ceiling.kind: each.value for each in found.flop_shares}
    assert shares["measured"] == pytest.approx(4e12 / 8e14)
    assert shares["peak"] == pytest.approx(4e12 / BF16)
    assert found.bytes_shares[0].value == pytest.approx(8e10 / 3e12)
    text = dict(efficiency_rows(run))["algorithmic bytes"]
    assert text.startswith("80.0 GB/s counted: 2.7 % of the measured copy, 3.00 TB/s")


def test_two_gpus_are_taken_together_or_not_at_all(make: Make) -> None:
    both = make(devices=(GPU, OTHER_GPU, CPU)).efficiency
    assert both.covers == ("gpu0", "gpu1")
    assert both.mfu.value == pytest.approx(4e12 / (2 * SHEET_BF16), rel=1e-3)
    assert "data-sheet peak, sum over 2 GPUs" in both.mfu.source
    assert both.mfu_at_maximum_clock.value == pytest.approx(4e12 / (2 * BF16))
    strange = ("gpu1", "gpu", "Card", "GPU-2", {**H100, "compute.capability": "99.0"})
    mixed = make(devices=(GPU, strange, CPU)).efficiency
    assert mixed.mfu.value is None and mixed.mfu.reason


FAR = {"ceilings": calibration("cpu", None, bandwidth=1e13, float32=1e15)}
"""A CPU that is far from busy."""


def test_a_cpu_has_no_mfu_and_its_reason_says_what_there_is(make: Make) -> None:
    found = make(
        devices=(CPU,),
        run={"device": "cpu", "dtype": "float32"},
        extra={"ceilings": calibration("cpu", None, bandwidth=1e11, float32=8e12)},
    ).efficiency
    assert found.mfu.value is None and "share of the measured product" in (found.mfu.reason or "")
    bare = make(devices=(CPU,), run={"device": "cpu"}).efficiency
    assert bare.mfu.reason == "a CPU's peak is not known"
    assert found.flop_shares[0].value == pytest.approx(0.5)
    assert found.roofline.verdict.bound == "memory"


def test_cores_that_a_cpu_run_does_not_use_are_not_its_idle_time(make: Make) -> None:
    options = on_cpu(0.05, 1.9, extra=FAR)
    two = make(facts={"threads": "2"}, **options).efficiency
    assert two.roofline.verdict.bound == "neither"
    untold = make(**options).efficiency
    assert untold.roofline.verdict.bound == "host"


def test_a_program_that_others_kept_from_running_did_not_wait(make: Make) -> None:
    def text(all_programs: float, **phases: float) -> str:
        of = make(**on_cpu(all_programs, 0.3, cores=2, phases=phases))
        return of.efficiency.roofline.verdict.text

    assert "the program waited at least 60 % of the time; " in text(0.25)
    held = "cannot tell what bounds the run: other programs may have held its cores 85 % "
    assert text(1.0).startswith(held)
    outside = text(1.0, forward=0.1, backward=0.04, optimizer=0.01, other=0.35)
    assert ": 70 % of a step is outside forward, backward and optimizer; other " in outside


@pytest.mark.parametrize(
    ("threads", "ran", "waited", "all_programs", "text"),
    [
        (1, 0.05, 0.03, 1.0, "threads ran 5.0 % of the time and waited for a core 3.0 %"),
        (
            1,
            0.4,
            0.55,
            1.0,
            "other programs held its cores: its threads were ready and waited 55 %",
        ),
        (4, 1.0, 2.4, 1.0, "host-bound: its threads were ready and waited for a core 60 % of the"),
        (2, 1.0, 1.2, 0.55, "host-bound: its threads were ready and waited for a core 60 % of the"),
        (1, 0.05, None, 1.0, "other programs may have held the cores: all were busy 100 % of the"),
    ],
)
def test_others_held_the_cores_where_its_threads_were_ready_and_waited(
    make: Make, threads: int, ran: float, waited: float | None, all_programs: float, text: str
) -> None:
    ceilings = calibration("cpu", None, bandwidth=1e13, float32=1e15)
    options = on_cpu(all_programs, ran, 2, facts={"threads": str(threads)})
    if waited is not None:
        options["counters"]["workload", "process.cpu.wait"] = waited
    of = make(**options, extra={"ceilings": ceilings}).efficiency.roofline.verdict
    assert of.bound == "host" and text in of.text


def test_a_program_without_ceilings_waited_itself_where_it_had_its_cores(make: Make) -> None:
    def text(waited: float) -> str:
        options = on_cpu(1.0, 0.05, 2)
        options["counters"]["workload", "process.cpu.wait"] = waited
        return make(**options).efficiency.roofline.verdict.text

    assert "the program waited at least 92 % of the time" in text(0.025)
    ready = "cannot tell what bounds the run: its threads were ready and waited for a core 80 %"
    assert text(0.8).startswith(ready)


@pytest.mark.parametrize(
    ("limit", "kept", "text"),
    [
        ({"process.cpu.affinity": "0-1,7"}, 0.1, "the program waited at least 63 % of the time"),
        ({"process.cpu.affinity": "3"}, 0.2, "other programs may have held its cores 90 %"),
        ({"process.cgroup.cpu.limit": 0.25}, 0.0, "the program waited at least 60 %"),
        ({"process.cgroup.cpu.limit": "unlimited"}, 0.2, "the program waited at least 70 %"),
    ],
)
def test_others_keep_a_program_off_that_may_use_some_cores_alone(
    make: Make, limit: dict[str, Any], kept: float, text: str
) -> None:
    of = make(**on_cpu(0.0125 + kept, 0.1, cores=8, process=limit))
    assert text in of.efficiency.roofline.verdict.text


def test_cores_that_a_program_may_not_use_are_not_its_idle_time(make: Make) -> None:
    options = on_cpu(0.2, 1.9, cores=8, process={"process.cpu.affinity": "2-3"}, extra=FAR)
    found = make(**options).efficiency.roofline.verdict
    assert found.bound == "neither"
    assert found.text.endswith("the idle time of the 2 cores that it may use is unknown")


def test_traffic_is_the_integral_of_the_measured_bandwidth(make: Make) -> None:
    found = make(gauges={BANDWIDTH: 1.6e12}).efficiency.traffic
    assert found.total.value == pytest.approx(1.6e12 * 10)
    assert found.sectors.value == pytest.approx(1.6e13 / 32)
    assert found.per_step.value == pytest.approx(1.6e13 / 20)
    assert found.rate.value == pytest.approx(1.6e12)
    assert found.total.method is Method.MEASURED and found.coverage == pytest.approx(1)


def test_traffic_of_two_gpus_is_added_up(make: Make) -> None:
    gauges = {BANDWIDTH: 1e12, ("gpu1", "hw.gpu.memory.bandwidth"): 5e11}
    found = make(devices=(GPU, OTHER_GPU, CPU), gauges=gauges)
    assert found.efficiency.traffic.total.value == pytest.approx(1.5e13)
    # One of the two unknown: nothing is said of both.
    half = make(devices=(GPU, OTHER_GPU, CPU), gauges={BANDWIDTH: 1e12})
    assert half.efficiency.traffic.total.value is None
    assert "gpu1 was not sampled" in (half.efficiency.traffic.total.reason or "")


def test_a_gap_makes_the_traffic_a_bound_and_says_how_much_is_covered(make: Make) -> None:
    # Sampled every half second up to second 10 of 5 to 15; the first value after the gap covers
    # a second of it: twice the usual distance.
    values = [1e12] * 21 + [None] * 8 + [1e12] * 100
    found = make(gauges={BANDWIDTH: values}).efficiency
    assert found.traffic.coverage == pytest.approx(0.65)
    assert found.traffic.total.method is Method.BOUND
    assert found.traffic.total.value == pytest.approx(6.5e12)
    assert "65 % of the window" in (found.traffic.total.reason or "")
    assert [point.bytes_kind for point in found.roofline.points] == ["algorithmic"]


def test_without_counters_traffic_is_unavailable_with_the_reason(make: Make) -> None:
    found = make(gauges={BANDWIDTH: None}).efficiency.traffic
    assert (found.total.method, found.total.value) == (Method.UNAVAILABLE, None)
    assert found.sectors.reason == found.total.reason


def test_a_sample_that_the_window_cuts_is_told_by_the_one_beside_it(make: Make) -> None:
    busy = ("gpu0", "hw.gpu.utilization")
    # The window is 5 to 15 s. The sample at 5.1 s is of what was before the steps, too, the one at
    # 15.3 s of what follows: those at 6.8 and 13.6 s stand for their parts.
    values = [{3: 1.9, 4: 1.0, 8: 2.0, 9: 50.0}.get(n, 0.0) for n in range(10)]
    statistic = make(interval=1.7, gauges={busy: values}).metrics[busy[1]]
    assert statistic.mean == pytest.approx(((0.1 + 1.7) * 1.0 + (1.7 + 1.4) * 2.0) / 10)
    assert statistic.max == 2.0
    assert statistic.coverage == pytest.approx(1)


@given(st.lists(st.floats(0, 1e13), min_size=3, max_size=40), st.floats(0, 1), st.floats(0, 1))
def test_an_integral_is_of_the_samples_of_its_window(
    rates: list[float], one: float, other: float
) -> None:
    values = [(n * SECOND // 2, rate) for n, rate in enumerate([0.0, *rates])]
    end = values[-1][0]
    whole = integral(values, Window("timed steps", 0, end))
    assert whole.total == pytest.approx(sum(rates) / 2)
    assert whole.coverage == pytest.approx(1)
    start, end = sorted((int(one * end), int(other * end)))
    part = integral(values, Window("timed steps", start, end))
    inside = [rate for t, rate in values if start <= t <= end]
    if part.mean is not None:
        assert min(inside) * (1 - 1e-9) <= part.mean <= max(inside) * (1 + 1e-9)
        assert part.total == pytest.approx(part.mean * part.coverage * (end - start) / SECOND)
    # A screen, which does without numpy, finds the same.
    drawn = mean_between(*zip(*values, strict=True), start, end)
    assert drawn == (None if part.mean is None else pytest.approx((part.mean, part.coverage)))


PIPES = {
    ("gpu0", "hw.gpu.tensor.activity"): 0.005,
    ("gpu0", "hw.gpu.fp32.activity"): 0.0,
    ("gpu0", "hw.gpu.clock.sm"): 0.99e9,
}
"""At half the maximum clock the pipes allow 0.5 % x 1070 TFLOP/s / 2 = 2.7 TFLOP/s."""


def test_a_count_above_what_the_pipes_allow_is_a_warning_with_both_numbers(make: Make) -> None:
    found = make(gauges=PIPES).efficiency
    (warning,) = found.warnings
    assert "counted 4.00 TFLOP/s" in warning and "at most 2.68 TFLOP/s" in warning
    (finding,) = found.findings
    assert finding.other == pytest.approx(0.005 * BF16 / 2)


@pytest.mark.parametrize(
    ("activity", "warns"), [(0.006, True), (0.007, False), (0.022, False), (0.024, True)]
)
def test_the_slack_between_count_and_pipes_is_as_stated(
    make: Make, activity: float, warns: bool
) -> None:
    # 4 TFLOP/s counted; the pipes allow 3.2, 3.7 (x 1.15 = 4.3), 11.8 and 12.8 (over 3 x 4).
    gauges = {**PIPES, ("gpu0", "hw.gpu.tensor.activity"): activity}
    found = make(gauges=gauges).efficiency
    assert bool(found.warnings) is warns


def counters(flop: float | None) -> dict[str, Any]:
    size = {"dram_read_bytes_per_step": 1e10, "dram_write_bytes_per_step": 5e9}
    return {"counters": {"tool": "ncu", "steps": 2, "flop_per_step": flop, **size}}


def test_executed_flop_and_dram_bytes_give_a_measured_point(make: Make) -> None:
    found = make(extra=counters(1.8e12)).efficiency.roofline
    assert [point.bytes_kind for point in found.points] == ["executed", "algorithmic"]
    assert found.points[0].intensity == pytest.approx(1.8e12 / 1.5e10)
    assert found.points[0].rate == pytest.approx(3.6e12)
    unknown = make(extra=counters(None)).efficiency.roofline
    assert [point.bytes_kind for point in unknown.points] == ["algorithmic"]


def test_tensor_pipes_in_a_float32_run_are_told(make: Make) -> None:
    gauges = {("gpu0", "hw.gpu.tensor.activity"): 0.3}
    found = make(gauges=gauges, run={"dtype": "float32"}).efficiency
    assert any("TF32" in warning for warning in found.warnings)


def profile(rows: list[list[Any]]) -> dict[str, Any]:
    columns = ["Time (%)", "Total Time (ns)", "Instances", "Name"]
    copies = [[60.0, 6e6, 4, "[CUDA memcpy Host-to-Device]"], [40.0, 4e6, 4, "[CUDA memset]"]]
    return {
        "profile": {
            "tool": "torch.profiler",
            "steps": 4,
            "device": "cuda",
            "tables": {
                "cuda_gpu_kern_sum": {"columns": columns, "rows": rows},
                "cuda_gpu_mem_time_sum": {
                    "columns": ["Time (%)", "Total Time (ns)", "Count", "Operation"],
                    "rows": copies,
                },
            },
        }
    }


def test_a_comparison_has_efficiency_and_what_the_kernels_took(make: Make) -> None:
    extra = {**profile([[100.0, 8e8, 4, "gemm"]]), **counters(1.8e12)}
    options: dict[str, Any] = {"extra": extra, "gauges": {BANDWIDTH: 6e10}}
    compared = compare([make(**options), make(step_seconds=1.0, **options)])
    rows = {(row.group, row.name): row for row in compared.rows}
    assert rows["profile, per step", "kernels"].values == (pytest.approx(0.2),) * 2
    assert rows["profile, per step", "copies from host to device"].values[0] == pytest.approx(
        1.5e-3
    )
    assert rows["profile, per step", "memset"].values[0] == pytest.approx(1e-3)
    assert rows["work per step", "DRAM bytes read"].values == (1e10, 1e10)
    for name in ("MFU", "MFU at maximum clock"):
        assert rows["efficiency", name].ratios == (1, pytest.approx(0.5))
    assert rows["efficiency", "device memory traffic per step"].ratios[1] == pytest.approx(2)
    assert rows["efficiency", "FLOP per executed byte"].values[0] == pytest.approx(120)


def test_intensities_of_different_bytes_are_never_compared(make: Make) -> None:
    compared = compare([make(gauges={BANDWIDTH: 6e10}), make()])
    (row,) = [row for row in compared.rows if row.unit == "FLOP/By"]
    assert row.name == "FLOP per algorithmic byte" and row.ratios == (1, 1)


def test_kernels_that_ran_in_one_and_not_in_the_other_are_told_with_their_share(make: Make) -> None:
    ampere, winograd = "void cutlass::Kernel2<cutlass_80<a<b>>>(Params)", "winograd_fwd"
    compared = compare(
        [
            make(extra=profile([[75, 6e8, 4, ampere], [25, 2e8, 1, "x"]])),
            make(extra=profile([[90, 9e8, 4, winograd], [10, 1e8, 1, "x"]])),
        ]
    )
    told = [(row.name, row.shares) for row in compared.kernels]
    assert told == [(winograd, (0.0, pytest.approx(0.9))), (ampere, (pytest.approx(0.75), 0.0))]
    text = as_text(document(compared, ""), 80)
    assert "cutlass::Kernel2<cutlass_80<…>>" in text and "90 %" in text
    assert as_json.comparison(compared)["kernels"][0]["name"] == winograd


def test_without_a_profile_a_kernel_is_not_said_to_be_missing(make: Make) -> None:
    one = make(extra=profile([[100, 6e8, 4, "gemm"]]))
    assert compare([one, make()]).kernels == ()


def test_the_json_has_every_figure_with_method_source_and_reason(make: Make) -> None:
    found = make(extra=profile([[100, 8e8, 4, "gemm"]]))
    told = json.loads(as_json.dumps(as_json.summary(found)))
    keys = {"value", "unit", "method", "source", "reason", "error"}
    assert set(told["efficiency"]["energy"]["gpu"]) == keys
    for mfu in (told["efficiency"]["mfu"], told["efficiency"]["mfu_at_maximum_clock"]):
        assert set(mfu) == {*keys, "convention"}
    assert told["efficiency"]["traffic"]["bytes"]["value"] is None
    assert told["efficiency"]["traffic"]["bytes"]["reason"]
    assert told["roofline"]["points"][0]["flop_per_byte"] == pytest.approx(50)
    assert told["profile"]["kernel_seconds_per_step"] == pytest.approx(0.2)
    assert told["counters"] is None


@pytest.mark.parametrize("bad", [None, 3, "x", [], [[]], {"rows": 3}, {"tables": {"a": 1}},
                                 {"ceilings": {"bandwidth": [1]}, "device": 4}])  # fmt: skip
def test_bad_meta_never_stops_a_summary(make: Make, bad: Any) -> None:
    extra = dict.fromkeys(("ceilings", "profile", "counters", "count", "run"), bad)
    found = make(extra=extra)
    as_json.dumps(as_json.comparison(compare([found, found])))
    as_text(document(compare([found, found]), ""), 80)


@pytest.mark.parametrize("value", [None, "x", -1, 0, 1e300, [1], {"a": 1}, True])
def test_hostile_attributes_of_a_gpu_give_no_ceiling_and_no_error(make: Make, value: Any) -> None:
    strange = ("gpu0", "gpu", "\x1b[31mCard", "GPU-1", dict.fromkeys(H100, value))
    found = make(devices=(strange, CPU), gauges=PIPES)
    assert found.efficiency.mfu.value is None and found.efficiency.mfu.reason
    assert "\x1b" not in as_text(document(compare([found]), ""), 80)


def test_what_befell_the_gpu_is_among_the_notes(make: Make) -> None:
    found = make(events=[("xid", "Xid 79: fallen off the bus")])
    assert "gpu0: Xid 79: fallen off the bus (at 6.0 s)" in found.notes


def test_a_machine_and_an_import_have_no_section_of_efficiency(make: Make) -> None:
    for kind in ("machine", "import"):
        extra = {"workload": {"name": "x", "kind": kind}}
        assert not [*efficiency_rows(make(extra=extra))]
