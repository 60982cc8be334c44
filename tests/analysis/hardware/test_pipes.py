"""What the pipes executed at most: a bound for programs of which nobody counts the FLOP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.analysis.comparison.side_by_side import compare
from gpuwatch.analysis.hardware.pipes import CLOCK, FP16, FP32, FP64, TENSOR, Pipes, pipes_of
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core.metrics import Method
from gpuwatch.report import json as as_json
from gpuwatch.report.document.efficiency import efficiency_rows
from gpuwatch.report.roofline.text import text as roofline_text
from gpuwatch.session.rows import DeviceRow
from tests.analysis.hardware.test_h200 import recorded
from tests.analysis.sessions import CPU, GPU, H100, OTHER_GPU, Make, summary

PER_CLOCK = {"fp8": 8192, "bfloat16": 4096, "tf32": 2048, "float32": 256, "float64": 128}
"""Dense FLOP of one of 132 multiprocessors, by the white paper; float64 without tensor cores."""
HALF_CLOCK = 0.99e9
BANDWIDTH = ("gpu0", "hw.gpu.memory.bandwidth")


def rate(data_type: str, share: float, hertz: float = 1.98e9) -> float:
    return 132 * PER_CLOCK[data_type] * hertz * share


def pipes(data_type: str | None, **attributes: Any) -> Pipes | str:
    name = attributes.pop("name", "NVIDIA H100 80GB HBM3")
    return pipes_of(DeviceRow("gpu0", "gpu", name, None, True, {**H100, **attributes}), data_type)


def of(**options: Any) -> Any:
    """Gauges of GPU ``gpu0``."""
    names = {"tensor": TENSOR, "fp64": FP64, "fp32": FP32, "fp16": FP16, "clock": CLOCK}
    return {("gpu0", names[key]): value for key, value in options.items()}


def uncounted(tmp_path: Path, name: str = "a", **options: Any) -> Summary:
    """A run with no count."""
    return summary(tmp_path / f"{name}.gpuwatch", count={}, **options)


def test_it_is_the_sum_over_the_pipes_at_the_clock_of_the_sample() -> None:
    found = pipes("bfloat16")
    assert isinstance(found, Pipes)
    values = {TENSOR: 0.5, FP64: 0.1, FP32: 0.2, FP16: 0.01, CLOCK: HALF_CLOCK}
    parts = rate("bfloat16", 0.5) + rate("float64", 0.1) + rate("float32", 0.2 + 4 * 0.01)
    assert found.rate(values) == pytest.approx(parts / 2)
    assert found.rate({TENSOR: 0.5, FP32: 0.0}) == pytest.approx(rate("bfloat16", 0.5))
    assert found.rate({TENSOR: 0.5}) is None and found.rate({FP32: 0.5}) is None
    for words in ("SM clock / maximum clock", "dense peak", "without sparsity", "of bfloat16"):
        assert words in found.text


@pytest.mark.parametrize(
    ("data_type", "counts_with"),
    [("fp8", "fp8"), ("float32", "tf32"), ("float64", "float64"), (None, "fp8")],
)
def test_tensor_pipes_count_with_the_type_or_with_their_fastest(
    data_type: str | None, counts_with: str
) -> None:
    found = pipes(data_type)
    assert isinstance(found, Pipes) and f"tensor pipes: of {counts_with}" in found.text
    assert found.text.endswith("as the run's type is not known") is (data_type is None)


def test_a_type_that_the_tensor_pipes_do_not_have_is_no_less_than_their_fastest() -> None:
    volta = {"compute.capability": "7.0", "core.count": 5120, "name": "Tesla V100-SXM2-16GB"}
    for data_type in ("bfloat16", "float32", "float64", None):
        found = pipes(data_type, **volta)
        assert isinstance(found, Pipes) and "tensor pipes: of float16" in found.text


def test_where_a_faster_type_may_be_in_use_whose_peak_is_unknown_there_is_no_bound() -> None:
    card = {"compute.capability": "10.0", "name": "NVIDIA B200", "core.count": 148 * 128}
    assert pipes(None, **card) == "the data type is not known, nor the FP4 peak of gpu0"
    assert isinstance(pipes("bfloat16", **card), Pipes)
    assert pipes("bfloat16", **{"compute.capability": "99.0"}) == "the peaks of gpu0 are not known"


def test_clock_and_activity_go_together_sample_by_sample(tmp_path: Path) -> None:
    """Busy half of the time, at the maximum clock, and idle at a sixth of it."""
    gauges = of(tensor=[0.8, 0.0], fp32=0.0, clock=[1.98e9, 0.33e9])
    found = uncounted(tmp_path, gauges=gauges).efficiency.most_executed
    assert found.value == pytest.approx(rate("bfloat16", 0.4)) and found.method is Method.BOUND
    assert found.reason == "an active pipe need not be full"


def test_a_run_without_a_count_has_it_in_show_json_and_roofline(tmp_path: Path) -> None:
    gauges = {**of(tensor=0.3, fp32=0.0, clock=1.98e9), BANDWIDTH: 1e12}
    found = uncounted(tmp_path, gauges=gauges)
    told = dict(efficiency_rows(found))
    assert "FLOP/s" not in told, "merged with other unavailable figures"
    start = "at most 321 TFLOP/s bound: at most 32 % of the bfloat16 data-sheet peak, 989 TFLOP/s"
    at_maximum = "at most 30 % of the bfloat16 peak at maximum clock, 1.07 PFLOP/s"
    assert told["executed FLOP/s"].startswith(f"{start}, {at_maximum}")
    assert "without sparsity; tensor pipes: of bfloat16)" in told["executed FLOP/s"]
    figure = json.loads(as_json.dumps(as_json.summary(found)))["efficiency"]
    assert figure["most_executed_flop_rate"]["value"] == pytest.approx(rate("bfloat16", 0.3))
    assert figure["most_executed_flop_rate"]["method"] == "bound"
    assert figure["flop_rate"]["value"] is None and figure["mfu"]["value"] is None
    (point,) = found.efficiency.roofline.points
    assert point.method is Method.BOUND and point.intensity == pytest.approx(321.1, rel=1e-3)
    assert found.efficiency.roofline.verdict.bound == "unknown"
    assert told["intensity"].startswith("at most 321 FLOP/B bound, by executed FLOP at most")
    assert "bound; executed FLOP at most" in roofline_text([found.efficiency.roofline])
    rows = compare([found, found]).rows
    assert all(row.unit != "FLOP/By" for row in rows), "of two bounds there is no ratio"


def test_a_count_is_the_figure_where_there_is_one(make: Make) -> None:
    gauges = {**of(tensor=0.005, fp32=0.0, clock=1.98e9), BANDWIDTH: 1e12}
    found = make(gauges=gauges)
    assert "executed FLOP/s" not in dict(efficiency_rows(found))
    assert {point.method for point in found.efficiency.roofline.points} == {Method.COUNTED}
    (pipes_,) = [each for each in found.efficiency.findings if each.kind == "pipes"]
    assert pipes_.other == found.efficiency.most_executed.value


def test_a_program_without_steps_has_it_over_the_whole_run(tmp_path: Path) -> None:
    gauges = {**of(tensor=0.3, fp32=0.0), BANDWIDTH: 1e12}
    options: dict[str, Any] = {"steps": (), "run": {"dtype": None}, "gauges": gauges}
    found = uncounted(tmp_path, **options)
    assert found.window.kind == "whole run"
    assert found.efficiency.most_executed.value == pytest.approx(rate("fp8", 0.3))
    assert [point.method for point in found.efficiency.roofline.points] == [Method.BOUND]


def test_it_is_of_all_gpus_of_the_run_or_unknown_with_the_reason(tmp_path: Path) -> None:
    gauges = of(tensor=0.3, fp32=0.0)
    both = {"devices": (GPU, OTHER_GPU, CPU)}
    found = uncounted(tmp_path, "a", gauges=gauges, **both).efficiency.most_executed
    assert (found.value, found.method) == (None, Method.UNAVAILABLE)
    assert "gpu1" in (found.reason or "")
    gauges |= {("gpu1", TENSOR): 0.1, ("gpu1", FP32): 0.0}
    found = uncounted(tmp_path, "b", gauges=gauges, **both).efficiency.most_executed
    assert found.value == pytest.approx(rate("bfloat16", 0.4))
    on_cpu = uncounted(tmp_path, "c", devices=(CPU,), run={"device": "cpu"}).efficiency
    assert on_cpu.most_executed.reason == "the run used no GPU"


def test_the_pipes_of_a_gpu_that_the_run_is_not_on_say_nothing_of_it(tmp_path: Path) -> None:
    workload: Any = ("workload", "workload", "resnet50", None, {})
    gauges = {**of(tensor=0.3, fp32=0.0), ("workload", "process.gpu.memory.usage"): 0.0}
    found = uncounted(tmp_path, devices=(GPU, CPU, workload), gauges=gauges).efficiency
    assert found.most_executed.reason == "no process of the run held memory of its GPUs"


@pytest.mark.parametrize(("name", "most"), [("train", 1.6), ("fp8", 1.9)])
def test_on_a_real_card_it_is_above_the_count_and_not_far(name: str, most: float) -> None:
    found = recorded(name).efficiency
    assert found.flop_rate.value is not None and found.most_executed.value is not None
    assert 1 < found.most_executed.value / found.flop_rate.value < most


def test_on_a_real_card_the_fastest_type_is_twice_as_far_above_a_product_in_bfloat16() -> None:
    found = recorded("product").efficiency
    assert found.data_type is None
    assert found.flop_rate.value is not None and found.most_executed.value is not None
    assert 2 < found.most_executed.value / found.flop_rate.value < 2.5
