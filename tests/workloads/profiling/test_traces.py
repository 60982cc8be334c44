"""From a profiler's trace to nsys' tables."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.workloads.profiling.traces import (
    LONGEST_NAME,
    MOST_ROWS,
    Event,
    read,
    self_times,
    tables,
)


def trace(tmp_path: Path, *events: dict[str, Any]) -> list[Event]:
    path = tmp_path / "trace.json"
    other = {"ph": "M", "name": "process_name", "ts": 1.0, "pid": 1, "tid": 0, "args": {}}
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [other, *events]}))
    return read(path)


def gpu(category: str, name: str, duration: float, **arguments: Any) -> dict[str, Any]:
    """An event as kineto writes it: microseconds with three decimals."""
    return {
        "ph": "X", "cat": category, "name": name, "pid": 0, "tid": 7,
        "ts": 4410788415422.226, "dur": duration, "args": {"stream": 7, **arguments},
    }  # fmt: skip


def cpu(name: str, start: int, duration: int, thread: int = 1) -> Event:
    return Event("cpu_op", name, (1, thread), start, duration, None)


def test_kernels_calls_and_copies_become_nsys_tables(tmp_path: Path) -> None:
    found = {
        table.name: table
        for table in tables(
            trace(
                tmp_path,
                gpu("kernel", "void gemm<float>(int)", 1.5),
                gpu("kernel", "void gemm<float>(int)", 2.5),
                gpu("kernel", "relu", 1.0),
                gpu("cuda_runtime", "cudaLaunchKernel", 7.0),
                gpu("cuda_driver", "cuLaunchKernelEx", 3.0),
                gpu("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 0.5, bytes=2_000_000),
                gpu("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 1.5, bytes=1_000_000),
                gpu("gpu_memset", "Memset (Device)", 0.25, bytes=8),
                gpu("overhead", "Instrumentation", 50.0),
            )
        )
    }
    kernels = found["cuda_gpu_kern_sum"]
    times = ("Avg (ns)", "Med (ns)", "Min (ns)", "Max (ns)", "StdDev (ns)")
    assert kernels.columns == ("Time (%)", "Total Time (ns)", "Instances", *times, "Name")
    deviation = pytest.approx(statistics.stdev([1500, 2500]))
    gemm = [80.0, 4000, 2, 2000, 2000, 1500, 2500, deviation, "void gemm<float>(int)"]
    assert kernels.rows == [gemm, [20.0, 1000, 1, 1000, 1000, 1000, 1000, None, "relu"]]
    calls = found["cuda_api_sum"]
    assert calls.columns[2] == "Num Calls"
    assert [row[-1] for row in calls.rows] == ["cudaLaunchKernel", "cuLaunchKernelEx"]
    copies, moved = found["cuda_gpu_mem_time_sum"], found["cuda_gpu_mem_size_sum"]
    assert [row[1:3] + row[-1:] for row in copies.rows] == [
        [2000, 2, "[CUDA memcpy Host-to-Device]"],
        [250, 1, "[CUDA memset]"],
    ]
    assert moved.columns[0] == "Total (MB)"
    assert [row[:2] for row in moved.rows] == [[3.0, 2], [8e-6, 1]]
    assert set(found) == {kernels.name, calls.name, copies.name, moved.name}


def test_the_time_of_an_operator_is_its_own_without_those_it_calls() -> None:
    calls = [
        cpu("linear", 0, 100),
        cpu("transpose", 10, 20),
        cpu("view", 15, 5),
        cpu("addmm", 40, 50),
        cpu("linear", 100, 30),
        cpu("addmm", 0, 1000, thread=2),
    ]
    assert self_times(calls) == {
        "view": [5],
        "transpose": [15],
        "addmm": [50, 1000],
        "linear": [30, 30],
    }


def test_a_long_table_keeps_the_longest_rows_and_counts_the_others(tmp_path: Path) -> None:
    names = [f"{number}-{'k' * 600}" for number in range(MOST_ROWS + 5)]
    events = [gpu("kernel", name, 1.0 + at) for at, name in enumerate(names)]
    (table,) = tables(trace(tmp_path, *events))
    assert (len(table.rows), table.left_out) == (MOST_ROWS, 5)
    assert table.rows[0][-1] == names[-1][:LONGEST_NAME]


@pytest.mark.torch
def test_self_times_agree_with_those_of_torchs_own_table(tmp_path: Path) -> None:
    import torch
    from torch.profiler import ProfilerActivity, profile

    layer = torch.nn.Linear(32, 32)
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        for _ in range(3):
            layer(torch.ones(8, 32)).relu().sum().backward()
    profiler.export_chrome_trace(str(tmp_path / "trace.json"))
    ours = self_times(e for e in read(tmp_path / "trace.json") if e.category == "cpu_op")
    theirs = {each.key: each for each in profiler.key_averages()}
    assert {"aten::addmm", "aten::relu", "aten::mm"} <= set(ours) <= set(theirs)
    for name, times in ours.items():
        # torch counts an operator that calls itself once.
        assert len(times) >= theirs[name].count
        microseconds = theirs[name].self_cpu_time_total
        assert sum(times) / 1e3 == pytest.approx(microseconds, rel=1e-3, abs=1), name
