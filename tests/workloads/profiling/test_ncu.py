"""What ncu is asked for, and what its CSV comes to."""

from __future__ import annotations

import csv
import io

import pytest

from gpuwatch.workloads.profiling.ncu import count, metrics, parse

SASS = [
    f"smsp__sass_thread_inst_executed_op_{precision}{operation}_pred_on.sum"
    for precision in "fhd"
    for operation in ("add", "mul", "fma")
]
HMMA = "sm__ops_path_tensor_src_fp16_dst_fp32.sum"
TENSOR = "sm__inst_executed_pipe_tensor.sum"
FIXED = [
    *("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream"),
    *("Block Size", "Grid Size", "Device", "CC"),
]


def wide(units: dict[str, str], *launches: tuple[str, dict[str, str]]) -> str:
    """ncu's ``--page raw --csv``: a row of names, one of units, one for each launch."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow([*FIXED, *units])
    writer.writerow([""] * len(FIXED) + list(units.values()))
    for number, (name, values) in enumerate(launches):
        told = [str(number), "19963", "python3", "127.0.0.1", name, "1", "7"]
        told += ["(256, 1, 1)", "(16384, 1, 1)", "0", "9.0"]
        writer.writerow([*told, *(values.get(metric, "n/a") for metric in units)])
    return (
        '==PROF== Connected to process 19963 (/usr/bin/python3)\n:::GPUWATCH {"event": "end"}\n'
        f"==PROF== Disconnected from process 19963\n{out.getvalue()}"
    )


UNITS = {
    **dict.fromkeys(SASS, "inst"),
    HMMA: "Kop",
    TENSOR: "inst",
    "dram__bytes_read.sum": "Mbyte",
    "dram__bytes_write.sum": "byte",
    "gpu__time_duration.sum": "usecond",
}
NONE = dict.fromkeys(SASS, "0")
MEMORY = {
    "dram__bytes_read.sum": "1.5",
    "dram__bytes_write.sum": "2,048",
    "gpu__time_duration.sum": "1,205.5",
}


def sass(operation: str, value: str) -> dict[str, str]:
    return {f"smsp__sass_thread_inst_executed_op_{operation}_pred_on.sum": value}


def test_flop_are_adds_products_and_twice_the_fused_ones_and_the_tensor_cores() -> None:
    plain = {**NONE, **MEMORY, **sass("ffma", "1,000"), **sass("fadd", "10"), **sass("dmul", "3")}
    tensor = {**NONE, **MEMORY, **sass("hfma", "4"), HMMA: "5.5", TENSOR: "7"}
    text = wide(
        UNITS,
        ("void conv<float>(int, float*)", {**plain, HMMA: "0", TENSOR: "0"}),
        ("gemm", tensor),
        ("gemm", tensor),
    )
    counted = count(parse(text))
    assert counted.launches == 3
    assert counted.flop == 2013 + 2 * (8 + 5500)
    assert counted.dram_read_bytes == 3 * 1.5e6
    assert counted.dram_write_bytes == 3 * 2048
    gemm, conv = counted.kernels
    assert (gemm.name, gemm.launches, gemm.flop) == ("gemm", 2, 2 * 5508)
    assert gemm.duration_ns == 2 * 1205.5e3
    assert (conv.name, conv.flop) == ("void conv<float>(int, float*)", 2013)
    assert counted.notes == ()


def test_tensor_operations_that_cannot_be_counted_make_flop_unknown_never_too_few() -> None:
    units = {name: unit for name, unit in UNITS.items() if name != HMMA}
    scalar, tensor = {**NONE, **MEMORY, TENSOR: "0"}, {**NONE, **MEMORY, TENSOR: "9"}
    counted = count(parse(wide(units, ("relu", scalar), ("gemm", tensor))))
    assert counted.flop is None
    assert {kernel.name: kernel.flop for kernel in counted.kernels} == {"relu": 0, "gemm": None}
    (note,) = counted.notes
    assert "no count of the tensor cores' operations" in note and "gemm" in note
    assert counted.dram_read_bytes == 3e6


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({**NONE, **sass("ffma", "n/a"), HMMA: "0", TENSOR: "0"}, "gave no smsp__sass_"),
        ({**NONE, HMMA: "0", TENSOR: "12"}, "counted 12 instructions of tensor cores, and no"),
        ({**NONE, TENSOR: "n/a"}, "gave no sm__ops_path_tensor_"),
    ],
)
def test_a_figure_that_is_missing_or_contradicted_makes_flop_unknown(
    values: dict[str, str], why: str
) -> None:
    counted = count(parse(wide(UNITS, ("kernel" * 100, {**values, **MEMORY}))))
    assert counted.flop is None and len(counted.kernels[0].name) == 500
    (note,) = counted.notes
    assert why in note


def test_constants_that_are_loaded_by_the_tensor_pipe_are_no_matrix_products() -> None:
    """Read in ncu's texts of its counters; on an H200 18 of 30 kernels had such instructions."""
    packed = "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum"
    reduce = {**NONE, **sass("fadd", "640"), **sass("hfma", "64"), HMMA: "0", TENSOR: "2"}
    counted = count(parse(wide({**UNITS, packed: "inst"}, ("reduce", {**reduce, packed: "2"}))))
    assert counted.flop == 640 + 2 * 64 and counted.notes == ()
    mixed = {**reduce, TENSOR: "3", packed: "2"}
    assert count(parse(wide({**UNITS, packed: "inst"}, ("product", mixed)))).flop is None


def test_a_unit_that_is_not_known_makes_its_value_unknown() -> None:
    text = wide({**UNITS, "dram__bytes_read.sum": "furlong"}, ("kernel", {**NONE, **MEMORY}))
    counted = count(parse(text))
    assert counted.dram_read_bytes is None and counted.dram_write_bytes == 2048


@pytest.mark.parametrize("text", ["", "==ERROR== no", '"Kernel Name"', '"ID","Kernel Name"\n"0"\n'])
def test_what_is_no_csv_has_no_launches(text: str) -> None:
    assert parse(text) == []


def listed(*names: str) -> str:
    """``ncu --query-metrics``: a name, padded, a type, a unit, a description."""
    lines = [f"{name:<60} Counter  op  # of math ops" for name in names]
    return "\n".join(["Device NVIDIA H100 80GB HBM3 (GH100)", "-" * 60, *lines])


def tensor_metrics(*names: str) -> list[str]:
    asked = metrics(listed(*names))
    return sorted(name for name in asked if "tensor" in name)


def test_each_tensor_operation_is_asked_for_once() -> None:
    family = "sm__ops_path_tensor_src_"
    assert tensor_metrics(
        f"{family}fp16_dst_fp16",
        f"{family}fp16_dst_fp32",
        f"{family}fp16_dst_fp32_sparsity_off",
        f"{family}fp16_dst_fp32_sparsity_on",
        f"{family}fp8_sparsity_off",
        f"{family}fp8_sparsity_on",
        f"{family}int8",
        "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32",
        "sm__ops_path_tensor_op_hmma_src_bf16_dst_fp32_sparsity_off",
        "sm__inst_executed_pipe_tensor",
        "sm__inst_executed_pipe_tensor_op_hmma",
        "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2",
    ) == sorted(
        [
            f"{family}fp16_dst_fp16.sum",
            f"{family}fp16_dst_fp32.sum",
            f"{family}fp8_sparsity_off.sum",
            f"{family}fp8_sparsity_on.sum",
            "sm__ops_path_tensor_op_hmma_src_bf16_dst_fp32_sparsity_off.sum",
            "sm__inst_executed_pipe_tensor.sum",
            "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum",
        ]
    )


def test_what_holds_on_every_gpu_is_asked_for_without_a_list() -> None:
    assert set(metrics("")) == {
        *SASS,
        "dram__bytes_read.sum",
        "dram__bytes_write.sum",
        "gpu__time_duration.sum",
    }
    assert "dram__bytes_op_read.sum" in metrics(listed("dram__bytes_op_read"))
