"""Gauges and their ceilings: every share names its ceiling, and methods are never mixed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.session.writing.store import SessionStore

from ..harness import live, screen_text, shows
from ..sessions import finished

Make = Callable[..., Path]

BANDWIDTH = "hw.gpu.memory.bandwidth"


def measured(bandwidth: float | None = 2.9e12, float32: float | None = 4.3e14) -> dict[str, Any]:
    """Meta data of a calibration of the first GPU."""
    ceilings = {
        "bandwidth": {"value": bandwidth, "unit": "By/s", "how": "copy of 1 GiB", "spread": 0.01},
        "float32": {"value": float32, "unit": "FLOP/s", "how": "product of 8192x8192"},
    }
    device = {"kind": "gpu", "uuid": "GPU-00000000", "name": "NVIDIA H100 80GB HBM3"}
    return {"ceilings": {"schema": 1, "device": device, "ceilings": ceilings}}


def change(path: Path, channel: str, reason: str, at: float) -> None:
    """Make the channel unavailable, without samples, from ``at`` seconds on."""
    store = SessionStore.reopen(path)
    number = "(SELECT id FROM channel WHERE metric = ? AND device = 'gpu0')"
    insert = (
        f"INSERT INTO change (t, channel, method, source, reason) VALUES (?, {number}, ?, ?, ?)"
    )
    store.write([(insert, (int(at * 1e9), channel, "unavailable", "test", reason))])
    store.write([(f"UPDATE tick SET c2 = NULL WHERE t > {int(at * 1e9)}", ())])
    store.close()


async def test_a_share_says_which_measured_ceiling_it_is_of(session: Make) -> None:
    path = session(bandwidth_measured=True, known_card=True, meta=measured())
    async with live(path, (160, 50)) as (app, _):
        text = screen_text(app)
    assert "51 % of measured copy 2.90 TB/s" in text
    assert "64 % of measured float32 product" in text
    assert "2.9T╪" in text and "430T╪" in text


async def test_without_a_calibration_the_share_is_of_the_peak(session: Make) -> None:
    async with live(session(bandwidth_measured=True, known_card=True), (80, 24)) as (app, pilot):
        assert "44 % of peak" in screen_text(app)
        await pilot.press("i")
        await shows(pilot, "44 % of peak at maximum clock 3.35 TB/s")


async def test_without_a_ceiling_there_is_no_share(session: Make) -> None:
    async with live(session(bandwidth_measured=True)) as (app, _):
        text = screen_text(app)
    assert " of peak" not in text and " of copy" not in text and "╪" not in text


async def test_a_data_type_that_is_not_told_gets_no_share(session: Make) -> None:
    run = {"run": {"dtype": "posit16", "total_steps": 40_000}}
    async with live(session(known_card=True, meta=run)) as (app, _):
        row = next(row for row in screen_text(app).splitlines() if "273 TFLOP/s" in row)
    assert "%" not in row


async def test_a_ceiling_that_was_disturbed_is_warned_of_and_doubted_beside_its_share(
    session: Make,
) -> None:
    meta = measured()
    meta["ceilings"]["ceilings"]["float32"]["warnings"] = ["other programs took 64 % of the time"]
    async with live(session(meta=meta), (120, 40)) as (app, pilot):
        assert "measured float32 product: other programs took 64 %" in screen_text(app)
        await pilot.press("i")
        await shows(pilot, "measured float32 product: other programs took 64 %")
        await shows(pilot, "       other programs took 64 % of the time")


async def test_a_doubt_of_a_ceiling_that_nothing_is_compared_with_is_no_warning(
    session: Make,
) -> None:
    meta = measured()
    entry = {"value": 1e14, "unit": "FLOP/s", "warnings": ["other programs took 64 %"]}
    meta["ceilings"]["ceilings"]["float64"] = entry
    async with live(session(known_card=True, meta=meta), (120, 40)) as (app, _):
        assert "64 % of the" not in screen_text(app) and "took" not in screen_text(app)


async def test_several_gpus_are_compared_with_the_sum_of_theirs(session: Make) -> None:
    async with live(session(gpus=2, known_card=True), (160, 44)) as (app, pilot):
        assert "204 % of 2 sheet peaks" in screen_text(app)
        await pilot.press("i")
        await shows(pilot, "of float32 data-sheet peak 134 TFLOP/s, sum over 2 GPUs")


async def test_several_gpus_with_one_unknown_get_no_share(session: Make) -> None:
    only_one = measured()
    async with live(session(gpus=2, meta=only_one)) as (app, _):
        assert "╪" not in screen_text(app)


@pytest.mark.parametrize(
    ("size", "words"),
    [
        ((80, 24), "counted, over: cache reuse"),
        ((160, 50), "over the ceiling: cache reuse"),
    ],
)
async def test_algorithmic_bytes_over_the_ceiling_are_told_as_cache_reuse(
    session: Make, size: tuple[int, int], words: str
) -> None:
    async with live(session(meta=measured(bandwidth=1e12)), size) as (app, _):
        text = screen_text(app)
    assert words in text and "140 % of" in text


async def test_measured_bandwidth_never_passes_for_cache_reuse(session: Make) -> None:
    path = session(bandwidth_measured=True, meta=measured(bandwidth=1e12))
    async with live(path, (160, 50)) as (app, _):
        text = screen_text(app)
    assert "148 % of measured copy" in text and "cache reuse" not in text


async def test_a_counter_that_is_lost_keeps_its_gap_and_is_not_replaced_by_a_count(
    session: Make,
) -> None:
    path = session(bandwidth_measured=True)
    change(path, BANDWIDTH, "no permission for GPM", at=60)
    async with live(path, (160, 50)) as (app, pilot):
        text = screen_text(app)
        assert "unavailable, no permission" in text and "Algorithmic bytes" not in text
        rows = text.splitlines()
        at = next(i for i, row in enumerate(rows) if "Memory bandwidth" in row)
        lowest = next(row for row in rows[at:] if "0┤" in row)
        assert "█" in lowest and lowest.count("█") < 100, "the last half minute is a gap"
        await pilot.press("i")
        await shows(pilot, "Algorithmic bytes/s            1.40 TB/s  counted")


async def test_without_counter_and_count_the_busy_time_gives_a_bound(session: Make) -> None:
    path = session(count=False, known_card=True, memory_busy=True)
    async with live(path) as (app, pilot):
        text = screen_text(app)
        assert "≤1.34 TB/s" in text and "bound: at most" in text
        await pilot.press("i")
        await shows(pilot, "x peak bandwidth")


async def test_a_measured_ceiling_gives_no_bound(session: Make) -> None:
    """A measured ceiling is the rate of a copy; a workload may exceed it."""
    async with live(session(count=False, memory_busy=True, meta=measured())) as (app, _):
        assert "bound" not in screen_text(app)


async def test_a_history_far_below_its_ceiling_keeps_a_scale_of_its_own(session: Make) -> None:
    async with live(session(meta=measured(bandwidth=1e15)), (160, 50)) as (app, _):
        text = screen_text(app)
    assert "2T┤" in text and "1P╪" not in text and "0.1 % of measured copy" in text


async def test_a_finished_run_compares_its_mean(session: Make) -> None:
    meta = {**finished(), **measured()}
    async with live(session(meta=meta, alive=False), (160, 50)) as (_, pilot):
        await shows(pilot, "history: all")
        await shows(pilot, "counted, timed steps, mean")
        await shows(pilot, "of measured copy")


async def test_what_gpm_tells_of_the_parts_stands_in_one_row(session: Make) -> None:
    async with live(session(pipes=True)) as (app, _):
        text = screen_text(app)
    assert "SM 81 %  occ. 43 %  tensor 61 %  FP64 0 %  FP32 12 %  FP16 3 %  DRAM 42 %" in text
    async with live(session("02", pipes=True), (160, 50)) as (app, _):
        assert "NVLink ↑21.0 GB/s ↓19.0 GB/s" in screen_text(app)


async def test_a_gpu_without_these_counters_has_no_such_row(session: Make) -> None:
    async with live(session()) as (app, _):
        assert "tensor" not in screen_text(app)


@pytest.mark.parametrize(
    "hostile", [[1], {"ceilings": 7}, [{"device": 1}, {"ceilings": {"x": []}}]]
)
async def test_hostile_ceilings_are_no_ceilings(session: Make, hostile: Any) -> None:
    async with live(session(meta={"ceilings": hostile})) as (app, _):
        text = screen_text(app)
    assert "273 TFLOP/s" in text and "╪" not in text


async def test_without_a_count_the_pipes_give_a_bound_of_what_was_executed(session: Make) -> None:
    """61 % of the tensor pipes' cycles, 12 % and 3 % of FP32's and FP16's; an unknown type."""
    path = session(count=False, known_card=True, pipes=True, meta={"run": {"device": "cuda"}})
    async with live(path) as (app, pilot):
        text = screen_text(app)
        assert "Executed FLOP/s" in text and "≤" in text and "bound: at most" in text
        await pilot.press("i")
        await shows(pilot, "pipes: of fp8, their fastest, as the run's type is not known")
