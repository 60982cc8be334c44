"""The kernels page: the tables of a profile, or the reason why there are none."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ..harness import live, screen_text, shows
from ..sessions import finished
from ..snapshots_of import kernels_text, page_text, roofline_text

Make = Callable[..., Path]

HOSTILE = "[bold]gemm[/]\x1b[31m\x1b]0;title\x07\u202e<4>"
LONG = "void at::native::" + "x" * 3000 + "<float>"
ALIKE = [
    f"cudnn::engines_precompiled::{to}Kernel<__nv_bfloat16, float, (bool)0, (cudnnDataType_t)0>"
    for to in ("nchwToNhwc", "nhwcToNchw")
]
COLUMNS = ["Time (%)", "Total Time (ns)", "Instances", "Avg (ns)", "Med (ns)", "Min (ns)"]


def table(columns: list[str], *rows: list[Any], left_out: int = 0) -> dict[str, Any]:
    return {"columns": columns, "rows": list(rows), "rows_left_out": left_out}


PROFILE: dict[str, Any] = {
    "tool": "torch.profiler",
    "version": "2.15.0",
    "device": "cuda",
    "steps": 4,
    "step_seconds": 0.021,
    "reason": None,
    "notes": ["the optimizer is part of a step"],
    "tables": {
        "cuda_api_sum": table(
            ["Time (%)", "Total Time (ns)", "Num Calls", "Name"],
            [100.0, 4e6, 60, "cudaLaunchKernel"],
        ),
        "cuda_gpu_kern_sum": table(
            [*COLUMNS, "Max (ns)", "Name"],
            [90.5, 9.05e6, 4, 2.2625e6, None, 2e6, 3e6, "ampere_sgemm_128x64_nn"],
            [9.5, 9.5e5, 40, 23750.0, 23e3, 2e4, 3e4, HOSTILE],
            *([0.01, 1e3 - n, 1, 1e3, None, None, None, name] for n, name in enumerate(ALIKE)),
            [None, None, None, None, None, None, None, LONG],
            left_out=12,
        ),
        "cuda_gpu_mem_size_sum": table(
            ["Total (MB)", "Count", "Operation"], [12.5, 8, "[CUDA memcpy Host-to-Device]"]
        ),
    },
}


def over(profile: Any) -> dict[str, Any]:
    return {"meta": {**finished(), "profile": profile}, "alive": False}


def test_kernels_come_first_with_tool_and_steps(session: Make) -> None:
    shown = kernels_text(session(**over(PROFILE)))
    assert "4 steps of 21.0 ms under torch.profiler 2.15.0" in shown
    assert "  share  time/step  launches/step  name" in shown and "    11  GEMM" in shown
    rows = shown.splitlines()
    at = [
        next(i for i, row in enumerate(rows) if words in row)
        for words in (
            " what the kernels do, by their names",
            " kernels on the GPU",
            "ampere_sgemm_128x64_nn",
            "[bold]gemm[/]<4>",
            "xxx",
            " calls of the CUDA runtime and driver",
            "cudaLaunchKernel",
            "[CUDA memcpy Host-to-Device]",
        )
    ]
    assert at == sorted(at)
    assert "90.5 %  9.05 ms       4  2.26 ms" in rows[at[2]]
    assert "—" in rows[at[4]]
    assert "  <0.1 %  1.00 µs       1  1.00 µs  nchwToNhwcKernel<__" in shown
    assert "  nhwcToNchwKernel<__" in shown, "a name is cut where it says the same as others"
    assert "12 more, not kept" in rows[at[4] + 1]


async def test_a_long_table_scrolls(session: Make) -> None:
    rows = [[1.0, 1e6 - n, 1, 1e6, 1e6, 1e6, f"kernel_{n}"] for n in range(100)]
    long = {**PROFILE, "tables": {"cuda_gpu_kern_sum": table([*COLUMNS, "Name"], *rows)}}
    async with live(session(**over(long))) as (app, pilot):
        await pilot.press("K")
        await shows(pilot, "kernels of the run  ")  # of no moment
        await shows(pilot, "kernel_0")
        assert "kernel_99" not in screen_text(app)
        await pilot.press("end", shows="kernel_99")
        await pilot.press("escape", shows="✓ finished")


def test_a_profile_that_could_not_be_made_says_why(session: Make) -> None:
    reason = "CUPTI is in use by another profiler"
    assert reason in kernels_text(session(**over({"tool": "torch.profiler", "reason": reason})))


def test_an_import_is_told_as_one(session: Make) -> None:
    shown = kernels_text(session(**over({**PROFILE, "tool": "nsys", "steps": None})))
    assert "profile by nsys 2.15.0, imported" in shown
    assert "the timed steps" not in shown
    assert "   total   count  name" in shown and "/step" not in shown


def test_the_screen_of_an_import_leads_to_its_kernels(session: Make) -> None:
    path = session(
        **over({**PROFILE, "tool": "nsys", "steps": None}), kind="import", steps=False, gpus=0
    )
    shown = page_text(path)
    assert "an imported profile: K shows its kernels" in shown
    assert "an imported profile has no samples" in shown
    assert "an imported profile has no roofline" in roofline_text(path)


def test_without_a_profile_it_says_what_would_give_one(session: Make) -> None:
    shown = kernels_text(session(meta=finished(), alive=False))
    assert "the run ended before its last timed step" in shown and "→ record it again" in shown
    empty = {**PROFILE, "tables": {"cuda_gpu_kern_sum": table(COLUMNS)}}
    shown = kernels_text(session("02", **over(empty), kind="import", steps=False, gpus=0))
    assert "no kernel table" in shown and "→ import the output of `nsys stats" in shown


async def test_of_a_program_of_ones_own_it_says_how_to_profile_that(session: Make) -> None:
    path = session(kind="command", meta=finished(), alive=False)
    async with live(path) as (_, pilot):
        await pilot.press("K", shows="--profile records the kernels of your own program")
        await shows(pilot, "gpuwatch import")
        await pilot.press("K", shows="✓ finished")


COUNTERS: dict[str, Any] = {
    "tool": "ncu",
    "version": "2025.1",
    "steps": None,
    "flop": 2.01e6,
    "dram_read_bytes": 1.5e6,
    "dram_write_bytes": None,
    "kernels": [{"name": HOSTILE, "launches": 2, "flop": 2.01e6, "duration_ns": 5000}],
    "launches": 2,
    "notes": ["counters are of 2 of 150 launches"],
}


@pytest.mark.parametrize("key", ["K", "i"])
async def test_what_ncu_counted_of_an_import_stands_with_its_notes(session: Make, key: str) -> None:
    meta = {**finished(), "counters": COUNTERS}
    path = session(kind="import", steps=False, gpus=0, meta=meta, alive=False)
    async with live(path, (80, 40)) as (app, pilot):
        await pilot.press(key, shows="counted by ncu 2025.1, in 2 launches")
        text = screen_text(app)
    assert "executed FLOP       2.01 MFLOP" in text and "DRAM bytes read     1.50 MB" in text
    assert "DRAM bytes written  —" in text and "counters are of 2 of 150 launches" in text
    assert ("5.00 µs       2   2.01 M        —        —  [bold]gemm[/]<4>" in text) == (key == "K")


def test_counters_that_could_not_be_read_say_why(session: Make) -> None:
    reason = "ncu is not installed in this environment"
    meta = {**finished(), "counters": {"tool": "ncu", "steps": 2, "reason": reason}}
    assert f"no hardware counters: {reason}" in kernels_text(session(meta=meta, alive=False))


def test_the_utilization_of_an_imported_profile_has_the_imports_reason(session: Make) -> None:
    path = session(
        **over({**PROFILE, "tool": "nsys", "steps": None}), kind="import", steps=False, gpus=0
    )
    with sqlite3.connect(path) as database:
        database.execute("DELETE FROM channel")
    shown = page_text(path)
    assert "an imported profile: K" in shown
    assert shown.count("an imported profile has no samples") == 2


async def test_a_search_finds_what_is_cut_off(session: Make) -> None:
    async with live(session(**over(PROFILE)), (80, 24)) as (app, pilot):
        await pilot.press("K", "slash", *"cudnnDataType_t", shows="nhwcToNchwKernel<__")
        assert "cudnnDataType_t" not in screen_text(app).replace("find: cudnnDataType_t", "")
        assert "ampere_sgemm" not in screen_text(app)
