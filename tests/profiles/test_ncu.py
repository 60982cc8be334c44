"""Nsight Compute's CSV: both pages, units, executed FLOP."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.core.errors import UsageError
from gpuwatch.profiles import ncu
from gpuwatch.profiles.base import Report, Text
from gpuwatch.profiles.files import load
from gpuwatch.profiles.merge import merge
from gpuwatch.profiles.ncu import parts_of
from tests.profiles.conftest import loaded
from tests.profiles.printed import Launch, ncu_details, ncu_raw
from tests.profiles.test_nsys import names

SASS = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
TENSOR = "sm__ops_path_tensor_src_fp16_dst_fp32.sum"
whole = st.integers(0, 10**12)


def launch(kernel: str, time: int, read: int, fma: int) -> Launch:
    return Launch(
        kernel,
        {
            "gpu__time_duration.sum": ("ns", f"{time:,}"),
            "dram__bytes_read.sum": ("byte", f"{read:,}"),
            SASS.format("ffma"): ("inst", str(fma)),
            SASS.format("fadd"): ("inst", "1"),
            SASS.format("fmul"): ("inst", "2"),
        },
    )


launches = st.lists(st.builds(launch, names, whole, whole, whole), min_size=1, max_size=8)


def read(text: str) -> Report:
    found = ncu.read(Text("f.csv", text.split("\n")))
    assert found is not None
    return found


@given(launches)
def test_both_pages_read_back_as_they_were(found: list[Launch]) -> None:
    for text in (ncu_raw(found), ncu_details(found)):
        kernels = {kernel.name: kernel for kernel in read(text).kernels}
        for name in {each.kernel for each in found}:
            own = [each.metrics for each in found if each.kernel == name]
            fma = sum(int(each[SASS.format("ffma")][1]) for each in own)
            size = sum(int(each["dram__bytes_read.sum"][1].replace(",", "")) for each in own)
            assert kernels[name].launches == len(own)
            assert kernels[name].parts["sp"] == 2 * fma + 3 * len(own)
            assert kernels[name].parts["read"] == size


def test_times_are_those_of_the_single_launches() -> None:
    times = [100, 300, 200]
    (row,) = read(ncu_raw([launch("k", time, 1, 1) for time in times])).tables["cuda_gpu_kern_sum"]
    assert (row.count, row.total, row.average, row.median) == (3, 600, 200, 200)
    assert (row.minimum, row.maximum, row.deviation) == (100, 300, statistics.stdev(times))


@pytest.mark.parametrize("page", ["ncu-raw.csv", "ncu-details.csv"])
def test_units_have_decimal_prefixes(samples: Path, page: str) -> None:
    counters = merge([load(samples / page)]).counters
    assert counters["dram_read_bytes"] == pytest.approx(7_290_880)
    gemm = next(each for each in counters["kernels"] if each["name"] == "volta_sgemm_128x64_nn")
    assert gemm["duration_ns"] == pytest.approx(70_000)
    assert gemm["flop"] == 2 * (2 * 67108864 + 131072)
    assert counters["launches"] == 4
    assert counters["flop"] == gemm["flop"] + 262144 + 2 * 65536 + 134217728


def test_an_unknown_unit_is_no_number_and_is_told() -> None:
    metrics = {"gpu__time_duration.sum": ("fortnight", "1"), "dram__bytes_read.sum": ("byte", "7")}
    found = read(ncu_raw([Launch("k", metrics)]))
    assert found.tables == {}
    assert "'fortnight' is not known" in found.notes[0]


def test_two_fused_operations_and_one_of_each_other_kind_a_precision() -> None:
    values = {SASS.format(f"{p}{op}"): 10.0 for p in "fdh" for op in ("add", "mul", "fma")}
    assert parts_of(values, {}) == {"sp": 40, "dp": 40, "hp": 40}


def test_a_precision_of_which_one_kind_was_not_counted_is_left_out() -> None:
    notes: dict[str, None] = {}
    assert parts_of({SASS.format("ffma"): 10.0}, notes) == {}
    assert "sp operations are left out" in next(iter(notes))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({TENSOR: 64.0}, 64),
        ({TENSOR: 64.0, "sm__ops_path_tensor_src_fp16.sum": 80.0}, 80),
        ({TENSOR: 64.0, TENSOR.replace(".sum", "_sparsity_off.sum"): 60.0}, 64),
        ({TENSOR: 64.0, "sm__ops_path_tensor_src_bf16_dst_fp32.sum": 1.0}, 65),
        ({"sm__inst_executed_pipe_tensor.sum": 5.0}, None),
        ({"sm__inst_executed_pipe_tensor.sum": 0.0}, 0),
        ({"sm__inst_executed_pipe_tensor.sum": 5.0, TENSOR: 0.0}, None),
    ],
)
def test_no_tensor_operation_counts_twice(values: dict[str, float], expected: float | None) -> None:
    assert parts_of(values, {})["tensor"] == expected


def test_operations_on_integers_are_no_flop() -> None:
    assert parts_of({"sm__ops_path_tensor_src_int8.sum": 64.0}, {}) == {}


def test_the_averages_of_a_summary_are_multiplied_by_the_invocations() -> None:
    header = '"Process ID","Kernel Name","Invocations","Section Name","Metric Name","Metric Unit"'
    text = (
        f'{header},"Minimum","Maximum","Average"\n'
        '"1","k","6","Command line","dram__bytes_read.sum","Kbyte","1","3","2"\n'
        '"1","k","6","GPU Speed Of Light Throughput","Duration","us","1","3","2"\n'
    )
    found = read(text)
    assert found.kernels[0].parts == {"read": 12_000, "duration": 12_000}
    assert found.tables["cuda_gpu_kern_sum"][0].count == 6


def test_the_programs_own_output_between_the_rows_is_left_out_and_told() -> None:
    text = ncu_raw([launch("k", 1, 1, 1), launch("k", 2, 1, 1)])
    cut = text.rindex('"1","4713"')
    found = read(f"epoch 1\n{text[:cut]}loss 0.3\n{text[cut:]}")
    assert found.kernels[0].launches == 2
    assert found.notes == ("1 line between the rows left out: not printed by ncu",)
    assert found.unread == 0


def test_a_launch_that_other_output_runs_into_is_told_and_no_total_is_known(tmp_path: Path) -> None:
    text = ncu_raw([launch("k", 1, 1, 1), launch("k", 2, 1, 1)])
    cut = text.rindex('"1","4713"')
    found = merge([loaded(tmp_path, f"{text[:cut]}loss 0.3{text[cut:]}")])
    assert "1 row could not be read" in found.profile["notes"][0]
    assert found.counters["dram_read_bytes"] is None and found.counters["launches"] is None
    assert found.counters["notes"][0].startswith("1 row of the counters could not be read")
    assert found.profile["tables"]["cuda_gpu_kern_sum"]["rows_left_out"] == 1


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda text: text[:-9], "ends early"),
        (lambda text: text + text, "a second header"),
        (lambda text: text.replace(',"byte",', ',"byte","'), "ends early"),
        (lambda text: text.replace('"7.0"', '"8.0"', 1), "7.0 in one file|8.0 and 7.0"),
        (lambda text: text[: text.rindex('"0","4713"')], "no launch"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, change: object, why: str) -> None:
    assert callable(change)
    text = ncu_raw([launch("k", 1, 1, 1), launch("l", 2, 1, 1)])
    with pytest.raises(UsageError, match=why):
        loaded(tmp_path, change(text))
