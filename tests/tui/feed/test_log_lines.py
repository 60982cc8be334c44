"""Counts up to a total that programs print."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gpuwatch.core.units import NS
from gpuwatch.session.rows import LogRow
from gpuwatch.tui.feed.log_lines import Count, count_up

from ..snapshots_of import page_text


def counts_of(*lines: str, every: float = 1.0) -> dict[int, Count]:
    counts: dict[int, Count] = {}
    for n, text in enumerate(lines):
        count_up(counts, LogRow(n, round(n * every * NS), "stderr", text))
    return counts


BAR = "epoch 2:  {}%|█████     | {}/400 [00:11<00:04, 25.76it/s, loss=2.3]"


@pytest.mark.parametrize(
    ("lines", "total", "left"),
    [
        ([BAR.format(n, 4 * n) for n in (50, 60, 70)], 400, 3.0),
        ([f"step {n}/900 loss 0.5" for n in (0, 300, 600)], 900, 1.0),
        ([f"Epoch: [0][ {n}/5005]\tTime 0.1" for n in (5, 10, 15)], 5005, 998.0),
        ([f"Train Epoch: 3 [{n}/60000 (1%)] Loss: 1" for n in (6000, 12000, 18000)], 60000, 7.0),
        ([f"Epochs {n}/20" for n in (1, 2, 3)], 20, 17.0),
        ([f"Epoch [1/10], Step [{n}/600], Loss: 1" for n in (100, 200, 300)], 600, 3.0),
        ([f"step: {n:4}/ 900 loss 1" for n in (0, 300, 600)], 900, 1.0),
    ],
)
def test_a_count_that_rises_tells_when_it_reaches_its_total(
    lines: list[str], total: int, left: float
) -> None:
    count = counts_of(*lines)[total]
    assert count.seconds_left(2 * NS) == pytest.approx(left)
    assert count.seconds_left(3 * NS) == pytest.approx(max(0, left - 1))
    assert count.seconds_left(60 * NS) is None  # it is given up
    assert counts_of(*lines[:2])[total].seconds_left(NS) is None  # one interval tells no rate


@pytest.mark.parametrize(
    "line",
    [
        "Test set: Average loss: 0.05, Accuracy: {}/10000 (98%)",
        "saved to /runs/2026/11/30/step/{}/900.pt",
        "step {}/900.5",
        "rank {}/64 is ready",
        "Epoch {}/10",  # whether it ends or begins is a tenth of all
        "step 9{}/90",  # beyond its total
    ],
)
def test_other_numbers_are_no_count(line: str) -> None:
    assert counts_of(*(line.format(n) for n in (3, 4, 5))) == {}


def test_a_count_that_begins_again_is_counted_anew() -> None:
    steps = [*(f"step {n}/30" for n in (10, 20, 30)), *(f"step {n}/30" for n in (5, 6, 7))]
    assert counts_of(*steps[:3])[30].seconds_left(2 * NS) is None  # reached
    assert counts_of(*steps)[30].seconds_left(5 * NS) == pytest.approx(23.0)


def test_only_so_many_totals_are_kept() -> None:
    assert len(counts_of(*(f"step 1/{total}" for total in range(20, 500)))) == 20


@pytest.mark.parametrize("reports", [True, False], ids=["steps", "no steps"])
def test_the_live_screen_has_the_printed_count_where_no_total_is_known(
    session: Callable[..., Path], reports: bool
) -> None:
    log = [("stdout", f"step {n}/900 loss 0.5") for n in range(0, 600, 10)]
    told = {"total_steps": 10**9, "log": log, "steps": reports}
    rows = page_text(session(**told, meta={"run": {}} if reports else {})).splitlines()
    printed = [row for row in rows if "printed 590/900" in row]
    assert len(printed) == 1
    assert "66 %  ETA 0:4" in printed[0]
    known = page_text(session("known", **told | {"steps": True}))
    assert "printed" not in known
