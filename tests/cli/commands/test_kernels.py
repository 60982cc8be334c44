"""``gpuwatch kernels``, and what a profile is not part of."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.analysis.hardware.kernels import short_names
from gpuwatch.session.reading.reader import SessionReader
from tests.conftest import Cli
from tests.reading import sessions

PROGRAM = """
import json, time
def say(event, **keys): print(":::GPUWATCH", json.dumps({"event": event, **keys}), flush=True)
say("count", flop_per_step=4e9, bytes_per_step=1e8)
say("step", step=1, seconds=0.1, samples=1, monotonic_ns=time.monotonic_ns())
say("end", steps=1)
time.sleep(2)
common = dict(tool="torch.profiler", version="2.15.0", device="cuda", steps=4, step_seconds=0.02,
              reason=None, notes=[], real_seconds=1.5, user_seconds=0.0, sys_seconds=0.0)
columns = ["Time (%)", "Total Time (ns)", "Instances", "Name"]
hostile = "=cmd()\\x1b[31m<b>" + "k" * 300
say("profile", **common, table="cuda_gpu_kern_sum", columns=columns, rows_left_out=0,
    rows=[[75.0, 3000000, 8, "void gemm<float>(int, int)"]])
say("profile", **common, table="cuda_gpu_kern_sum", columns=columns, rows_left_out=3,
    rows=[[25.0, 1000000, 4, hostile]])
say("profile", **common, table="cuda_gpu_mem_size_sum", rows_left_out=0,
    columns=["Total (MB)", "Count", "StdDev (MB)", "Operation"],
    rows=[[12.5, 1, None, "[CUDA memcpy Host-to-Device]"]])
say("counters", tool="ncu", version="2025.1", steps=2, flop_per_step=3.4e9,
    dram_read_bytes_per_step=2e9, dram_write_bytes_per_step=1e9, launches=24, reason=None,
    notes=["a note"], kernels=[{"name": "void gemm<float>(int, int)", "launches": 8, "flop": 6.8e9,
    "dram_read_bytes": 4e9, "dram_write_bytes": None, "duration_ns": 3e6}])
"""


@pytest.fixture
def recorded(cli: Cli, tmp_path: Path) -> Path:
    cli("--record", "--quiet", "--out", tmp_path / "out", "--", sys.executable, "-c", PROGRAM)
    (path,) = sessions(tmp_path / "out")
    return path


def test_the_kernels_are_shown_in_every_form_and_the_run_keeps_its_times(
    cli: Cli, recorded: Path
) -> None:
    text = cli.read("kernels", recorded).stdout
    assert text.startswith(
        "4 steps of 20.0 ms under torch.profiler 2.15.0 on the GPU, apart from the timed\n  steps\n"
    )
    told = " ".join(text.split())
    assert "executed, per step, by ncu 2025.1: 3.40 GFLOP; DRAM 2.00 GB read, 1.00 GB" in told
    assert "executed to counted ×0.850" in told and "Winograd" in told
    lines = [line.split() for line in text.splitlines()]
    assert lines.index(["75.0", "750", "µs", "2", "GEMM"]) < lines.index(
        ["75.0", "3.00", "ms", "8", "gemm<float>"]
    )
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 80
    assert "3 more were not recorded" in text
    assert "other tables: cuda_gpu_mem_size_sum, kernel_counters" in text

    rows = list(csv.reader(io.StringIO(cli.read("kernels", recorded, "--format", "csv").stdout)))
    assert rows[0] == ["Time (%)", "Total Time (ns)", "Instances", "Name"]
    assert rows[1] == ["75.0", "3000000", "8", "void gemm<float>(int, int)"]
    assert rows[2][3].startswith("'=cmd()<b>k") and len(rows[2][3]) > 300

    markdown = cli.read("kernels", recorded, "--format", "md", "--table", "all").stdout
    assert "| 12.500 | 1 | — | \\[CUDA memcpy Host-to-Device\\] |" in markdown
    assert "\\<b\\>" in markdown

    found: dict[str, Any] = json.loads(
        cli.read("kernels", recorded, "--format", "json", "--limit", 1).stdout
    )
    assert found["schema"] == 2
    assert found["profile"]["steps"] == 4 and found["counters"]["flop_per_step"] == 3.4e9
    assert found["tables"]["cuda_gpu_kern_sum"]["rows_left_out"] == 3
    assert found["tables"]["cuda_gpu_kern_sum"]["rows_not_printed"] == 1
    assert found["tables"]["kernel_counters"]["rows"] == [
        [3e6, 8, 6.8e9, 4e9, None, "void gemm<float>(int, int)"]
    ]

    timing = json.loads(cli.read("show", recorded, "--format", "json").stdout)["timing"]
    with SessionReader(recorded) as reader:
        result, (step,) = reader.meta()["result"], reader.steps()
    ending = (result["t"] - step.t) / 1e9
    assert timing["ending_seconds"] == pytest.approx(ending - 1.5), "1.5 s are the profile's"
    assert timing["real_seconds"] == pytest.approx(result["real_seconds"] - 1.5)


@pytest.mark.parametrize("longest", [39, 72])
@pytest.mark.parametrize("nested", [(1,), (1, 2)])
def test_kernels_that_differ_have_names_that_differ(longest: int, nested: tuple[int, ...]) -> None:
    at = "at::native::(anonymous namespace)::"
    names = [
        f"void {at}multi_tensor_apply_kernel<{at}TensorListMetadata<{of}>, {at}{functor}<float>, "
        f"std::{what}<float>, float>({at}TensorListMetadata<{of}>, float)"
        for of in nested
        for functor in ("BinaryOpScalarFunctor", "BinaryOpListAlphaFunctor")[: 3 - len(nested)]
        for what in ("multiplies", "plus")[: 3 - len(nested)]
    ]
    short = short_names([*names, names[0], "gemm"], longest)
    assert len({*short}) == len(names) + 1 and short[0] == short[-2]
    assert max(map(len, short)) <= longest
    assert all(each.startswith("multi_tensor_") for each in short[:-1])


def test_a_negative_number_of_rows_is_refused(cli: Cli, tmp_path: Path) -> None:
    told = cli.read("kernels", tmp_path, "--limit", -1, code=2).stderr
    assert "invalid --limit -1" in told and len(told.splitlines()) == 1


def test_json_holds_every_row_of_every_table(cli: Cli, tmp_path: Path) -> None:
    rows = "".join(f"1.0,{n},1,kernel{n}\n" for n in range(1, 61))
    (tmp_path / "t.csv").write_text(f"Time (%),Total Time (ns),Instances,Name\n{rows}")
    path = cli("import", tmp_path / "t.csv", "--out", tmp_path / "out").stdout.strip()
    found = json.loads(cli.read("kernels", path, "--format", "json").stdout)
    assert len(found["tables"]["cuda_gpu_kern_sum"]["rows"]) == 60
    assert "an imported profile does not have" in cli.read("log", path).stderr
    assert "40 more rows" in cli.read("kernels", path).stdout
    assert "\n1 more row: --limit" in cli.read("kernels", path, "--limit", 59).stdout


def test_a_table_that_is_not_there_names_those_that_are(cli: Cli, recorded: Path) -> None:
    done = cli("kernels", recorded, "--table", "osrt_sum", code=2)
    assert done.stdout == ""
    assert "no table 'osrt_sum'" in done.stderr and "cuda_gpu_kern_sum" in done.stderr


def test_without_a_profile_the_reason_and_what_gives_one_are_told(cli: Cli, tmp_path: Path) -> None:
    cli("--record", "--quiet", "--hook", "off", "--out", tmp_path / "out", "--", "true")
    told = cli.read("kernels", sessions(tmp_path / "out")[0], code=3).stderr
    assert "if it uses torch" in told and "--profile 4" in told
    assert len(told.splitlines()) == 1
    cli("--record", "--quiet", "--profile", 2, "--out", tmp_path / "asked", "--", "true")
    told = cli.read("kernels", sessions(tmp_path / "asked")[0], code=3).stderr
    assert "the run was not profiled: no Python program of the run imported torch" in told
    told = cli.read("run", "--plain", "--hook", "off", "--profile", 2, "--", "true", code=2).stderr
    assert "--hook off leaves it out" in told


def test_steps_with_their_ends_alone_have_one_speed_everywhere_and_80_columns_are_enough(
    cli: Cli, tmp_path: Path
) -> None:
    program = """
import json, time
begin = time.monotonic_ns()
time.sleep(1)
for step in range(1, 5):
    end = begin + step * 250_000_000
    line = {"event": "step", "step": step, "samples": 8, "monotonic_ns": end}
    print(":::GPUWATCH", json.dumps(line), flush=True)
"""
    out = tmp_path / "out"
    cli("--record", "--quiet", "--out", out, "--", sys.executable, "-c", program)
    (path,) = sessions(out)
    shown = json.loads(cli.read("show", path, "--format", "json").stdout)["step"]
    (listed,) = json.loads(cli.read("sessions", out, "--format", "json").stdout)["sessions"]
    assert listed["step_median_seconds"] == shown["median_seconds"]
    assert listed["step_median_seconds"] == pytest.approx(0.25)
    assert listed["samples_per_second"] == pytest.approx(8 / 0.25)

    (one,) = cli.read("sessions", "--paths", out).stdout.splitlines()[1:]
    assert one.endswith(str(path.resolve()))
    cli.variables["COLUMNS"] = "80"
    head, row = cli.read("sessions", out).stdout.splitlines()
    assert max(len(head), len(row)) <= 80
    wide = [line for line in cli.read("show", path).stdout.splitlines() if len(line) > 80]
    assert all(str(path) in line for line in wide)


@pytest.mark.torch
def test_a_workload_of_ours_is_profiled_and_its_window_is_the_timed_steps(
    cli: Cli, tmp_path: Path
) -> None:
    out = ("--quiet", "--python", sys.executable, "--out", tmp_path / "out")
    cli("--record", *out, "gcn", "--steps", 5, "--profile", 3)
    (path,) = sessions(tmp_path / "out")
    text = cli.read("kernels", path, "--limit", 3).stdout
    assert text.startswith("3 steps of ") and "on the CPU" in text
    assert "cpu_op_sum: operators on the CPU, by self time" in text
    assert "Calls/Step" in text and "Launches/Step" not in text
    assert "more rows: --limit 0 shows all" in text
    found = json.loads(cli.read("show", path, "--format", "json").stdout)
    assert found["step"]["count"] == 5


@pytest.mark.torch
def test_steps_of_a_program_of_ones_own_are_profiled_if_that_is_asked_for(
    cli: Cli, tmp_path: Path
) -> None:
    program = Path(__file__).parents[2] / "hook" / "programs" / "profiled.py"
    out = ("--quiet", "--profile", 3, "--out", tmp_path / "out")
    cli("--record", *out, "--", sys.executable, program)
    (path,) = sessions(tmp_path / "out")
    text = " ".join(cli.read("kernels", path, "--limit", 3).stdout.split())
    assert text.startswith("3 steps of ") and "on the CPU, apart from the timed steps" in text
    assert "steps 24 to 26 of the program, which are in no other figure" in text
    assert "cpu_op_sum: operators on the CPU, by self time" in text
    step = json.loads(cli.read("show", path, "--format", "json").stdout)["step"]
    assert step["count"] + step["warmup_count"] == 30 and step["warmup_count"] >= 2 + 5
