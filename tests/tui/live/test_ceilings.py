"""Gauges and their ceilings: every share names its ceiling, and methods are never mixed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.session.writing.store import SessionStore
from gpuwatch.tui.widgets.gauge_rows import value_width

from ..sessions import finished
from ..snapshots_of import numbers_text, page_text

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


def test_a_share_says_which_measured_ceiling_it_is_of(session: Make) -> None:
    path = session(bandwidth_measured=True, known_card=True, meta=measured())
    text = page_text(path, (160, 50))
    assert "51 % of measured copy 2.90 TB/s" in text
    assert "64 % of measured float32 product" in text
    assert "2.9T╪" in text and "430T╪" in text


def test_without_a_calibration_the_share_is_of_the_peak(session: Make) -> None:
    path = session(bandwidth_measured=True, known_card=True)
    assert "44 % of peak" in page_text(path, (80, 24))
    assert "44 % of data-sheet peak 3.35 TB/s" in numbers_text(path, 80)


def test_a_data_type_that_is_not_told_gets_no_share(session: Make) -> None:
    run = {"run": {"dtype": "posit16", "total_steps": 40_000}}
    row = next(
        row
        for row in page_text(session(known_card=True, meta=run)).splitlines()
        if "273 TFLOP/s" in row
    )
    assert "%" not in row


def test_a_ceiling_that_was_disturbed_is_warned_of_and_doubted_beside_its_share(
    session: Make,
) -> None:
    meta = measured()
    meta["ceilings"]["ceilings"]["float32"]["warnings"] = ["other programs took 64 % of the time"]
    path = session(meta=meta)
    assert "measured float32 product: other programs took 64 %" in page_text(path, (120, 40))
    shown = numbers_text(path, 120)
    assert "measured float32 product: other programs took 64 %" in shown
    assert "       other programs took 64 % of the time" in shown


def test_a_doubt_of_a_ceiling_that_nothing_is_compared_with_is_no_warning(session: Make) -> None:
    meta = measured()
    entry = {"value": 1e14, "unit": "FLOP/s", "warnings": ["other programs took 64 %"]}
    meta["ceilings"]["ceilings"]["float64"] = entry
    shown = page_text(session(known_card=True, meta=meta), (120, 40))
    assert "64 % of the" not in shown and "took" not in shown


def test_several_gpus_are_compared_with_the_sum_of_theirs(session: Make) -> None:
    path = session(gpus=2, known_card=True)
    assert "204 % of 2 peaks" in page_text(path, (160, 44))
    assert "of float32 data-sheet peak 134 TFLOP/s, sum over 2 GPUs" in numbers_text(path, 160)


@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
def test_algorithmic_bytes_over_the_ceiling_are_told_as_cache_reuse(
    session: Make, size: tuple[int, int]
) -> None:
    text = page_text(session(meta=measured(bandwidth=1e12)), size)
    assert "counted, over: cache reuse" in text and "140 % of" in text


def test_measured_bandwidth_never_passes_for_cache_reuse(session: Make) -> None:
    path = session(bandwidth_measured=True, meta=measured(bandwidth=1e12))
    text = page_text(path, (160, 50))
    assert "148 % of measured copy" in text and "cache reuse" not in text


def test_a_counter_that_is_lost_keeps_its_gap_and_is_not_replaced_by_a_count(session: Make) -> None:
    path = session(bandwidth_measured=True)
    change(path, BANDWIDTH, "no permission for GPM", at=60)
    text = page_text(path, (160, 50))
    assert "unavailable, no permission" in text and "Algorithmic bytes" not in text
    rows = text.splitlines()
    at = next(i for i, row in enumerate(rows) if "Memory bandwidth" in row)
    lowest = next(row for row in rows[at:] if "0┤" in row)
    assert "█" in lowest and lowest.count("█") < 100, "the last half minute is a gap"
    assert "Algorithmic bytes/s            1.40 TB/s  counted" in numbers_text(path, 160)


def test_without_counter_and_count_the_busy_time_gives_a_bound(session: Make) -> None:
    path = session(count=False, known_card=True, memory_busy=True)
    text = page_text(path, (80, 20))
    assert "≤1.34 TB/s" in text and "bound" in text
    assert "x peak bandwidth" in numbers_text(path)


def test_a_history_far_below_its_ceiling_keeps_a_scale_of_its_own(session: Make) -> None:
    text = page_text(session(meta=measured(bandwidth=1e15)), (160, 50))
    assert "2T┤" in text and "1P╪" not in text and "0.1 % of measured copy" in text


def test_a_finished_run_compares_its_mean(session: Make) -> None:
    meta = {**finished(), **measured()}
    shown = page_text(session(meta=meta, alive=False), (160, 50))
    assert "history: timed steps" in shown
    assert "counted, timed steps, mean" in shown
    assert "of measured copy" in shown


def test_what_gpm_tells_of_the_parts_stands_in_one_row(session: Make) -> None:
    text = page_text(session(pipes=True))
    assert "SM 81 %  occ. 43 %  tensor 61 %  FP64 0 %  FP32 12 %  FP16 3 %  DRAM 42 %" in text
    assert "NVLink ↑21.0 GB/s ↓19.0 GB/s" in page_text(session("02", pipes=True), (160, 50))


def test_without_a_count_the_pipes_give_a_bound_of_what_was_executed(session: Make) -> None:
    """61 % of the tensor pipes' cycles, 12 % and 3 % of FP32's and FP16's; an unknown type."""
    told = {"count": False, "known_card": True, "pipes": True}
    over = session("02", **told, meta={**finished(), "run": {"device": "cuda"}}, alive=False)
    assert "bound, type unknown" in page_text(over), "the period, behind it, is cut"
    path = session(**told, meta={"run": {"device": "cuda"}})
    for size in ((80, 24), (160, 50)):
        rows, left = page_text(path, size).splitlines(), value_width(size[0])
        lines = [row[:left].strip() for row in rows]
        at = lines.index("Executed FLOP/s")
        assert lines[at + 1] == "≤1.32 PFLOP/s", "no large digits"
        method = " ".join(filter(None, lines[at + 2 : at + 4]))
        assert method == "bound, type unknown: counted as the fastest"
    numbers = numbers_text(path)
    assert "pipes: of fp8, their fastest, as the run's type is not known" in numbers
    mfu = numbers.partition("   MFU ")[2].splitlines()
    assert mfu[0].endswith("unavailable") and "no FLOP are counted" in mfu[1]


def test_one_measured_of_several_gpus_is_not_the_ceiling_of_all(session: Make) -> None:
    shown = page_text(session(gpus=2, meta=measured()))
    assert "of 2 peaks" in shown and "of measured" not in shown
