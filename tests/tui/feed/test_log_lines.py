"""Counts up to a total that programs print."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuwatch.core.units import NS
from gpuwatch.session.rows import LogRow
from gpuwatch.tui.feed.log_lines import Count, count_up

from ..sessions import finished
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
        ([f"step {n}/900: loss 1" for n in (0, 300, 600)], 900, 1.0),
        ([f"step {n}/900:0.5" for n in (0, 300, 600)], 900, 1.0),
        ([f"Epoch 2: {n}/100 train_loss=0.5" for n in (20, 30, 40)], 100, 6.0),
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
        "Epoch 2: 0:0{}/1:30",
        "Epoch 2: {}/30:00",
        "Epoch 2: {}/11/2026",
        "Epoch 2: {}/30-11",
    ],
)
def test_other_numbers_are_no_count(line: str) -> None:
    assert counts_of(*(line.format(n) for n in (3, 4, 5))) == {}


def test_a_count_that_begins_again_is_counted_anew() -> None:
    steps = [*(f"step {n}/30" for n in (10, 20, 30)), *(f"step {n}/30" for n in (5, 6, 7))]
    assert counts_of(*steps[:3])[30].seconds_left(2 * NS) is None  # reached
    assert counts_of(*steps)[30].seconds_left(5 * NS) == pytest.approx(23.0)


def test_bars_of_two_processes_are_no_rounds() -> None:
    lines = [f"| {n}/900 [" for n in (0, 1, 0, *range(2, 50))]
    assert counts_of(*lines)[900].rounds == 1


def test_an_epoch_is_looked_for_near_its_count_alone() -> None:
    """Each count of a long line would read all that is before it else."""
    near, far = (counts_of(f"Epoch 3/4 {'.' * dots}| 20/80 [") for dots in (10, 300))
    assert (near[80].epoch, far[80].epoch) == ("epoch 3/4", "")


@pytest.mark.parametrize("pause", [0, 30])
def test_a_bar_that_was_repeated_and_is_over_hides_no_training(
    session: Callable[..., Path], pause: int
) -> None:
    done = [(name, n * 100, 60_000) for name in ("Map", "Group") for n in (200, 400, 600)]
    done += [("train", n, 900) for n in range(0, 225, 5)]
    log = [("stderr", f"{name}:  9%|#   | {n}/{total} [00:01<") for name, n, total in done]
    told = {"kind": "command", "steps": False, "log": [*log, *[("stdout", "")] * pause]}
    (row,) = rows_told(session(**told), "220/900")
    assert "round" not in row


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


EPOCH = "Epoch {}/4:  {}%|#####     | {}/250 [00:11<00:04, 25.76it/s]"


@pytest.mark.parametrize(
    ("lines", "epoch", "to_come"),
    [
        ([EPOCH.format(3, 50, 125)], "epoch 3/4", 1),
        (["Epoch [1/10], Step [100/600], Loss: 1"], "epoch 1/10", 9),
        (["epoch 3 of 4: step 100/600"], "epoch 3/4", 1),
        (["Train Epoch: 3 [6000/60000 (1%)]"], "epoch 3", None),
        (["Epoch 3: 5/400 it/s=20.0 train_loss=0.5"], "epoch 3", None),
        (["Epoch 3/40: 5/400 train_loss=0.5"], "epoch 3/40", 37),
        (["[3/4] step 100/600"], "epoch 3/4", 1),
        (["step 100/600"], "", None),
        (["step 600/600", "step 10/600"], "round 2", None),
        (["step 300/600", "step 10/600"], "", None),  # of a process that began later
        (["[0/25][50/782] Loss_D: 1"], "epoch 0/25", 24),
        (["Epoch 0/3: step 9/90", "Epoch 1/3: step 9/90"], "epoch 1/3", 1),
        (["[2/5] Downloading shards | 50/100 ["], "", None),
        (["step 300/600", "step 290/600"], "", None),  # another rank's
    ],
)
def test_the_epoch_of_a_count_is_told(lines: list[str], epoch: str, to_come: int | None) -> None:
    *_, count = counts_of(*lines).values()
    assert (count.epoch, count.to_come) == (epoch, to_come)


def rows_told(path: Path, of: str = "/250") -> list[str]:
    rows = page_text(path).splitlines()
    return [
        " ".join(row.replace("━", "").split()) for row in rows if of in row and " bar " not in row
    ]


def bars(*done: tuple[int, int]) -> list[tuple[str, str]]:
    return [("stderr", EPOCH.format(epoch, 4 * n // 10, n)) for epoch, n in done]


def test_a_bar_of_an_epoch_is_no_progress_of_the_run(session: Callable[..., Path]) -> None:
    done = [(epoch, n) for epoch in (1, 2, 3) for n in range(25, 251, 25)]
    told = {"kind": "command", "steps": False}  # 30 lines, one each 3 s
    (row,) = rows_told(session(**told, log=bars(*done[:-1]), seconds=87.0))
    assert "epoch 3/4 225/250" in row and "90 % ETA of the epoch 0:00, of all 0:30" in row
    (row,) = rows_told(session("04", **told, log=bars(*done[:5]), seconds=15.0))
    assert "epoch 1/4 125/250" in row and "ETA of the epoch 0:12, of all ~1:42" in row
    (row,) = rows_told(session("02", **told, log=bars(*done[:10]), seconds=30.0))
    assert "epoch 1/4 250/250" in row and "100 % ETA of the epoch 0:00, of all ~1:30" in row
    (row,) = rows_told(session("03", **told, log=bars(*done[:11]), seconds=33.0))
    assert "epoch 2/4 25/250" in row and "no steps yet" not in row
    assert "10 % ETA of the epoch 0:24, of all 1:24" in row  # at the pace of the one before


def test_before_the_first_figures_what_is_left_of_all_fits_beside_an_epoch(
    session: Callable[..., Path],
) -> None:
    log = bars(*((1, n) for n in range(25, 126, 25)))
    waiting = {"launch": {"t": NS}, "waiting": {"for": "own lines", "t": NS}}
    told = {"kind": "command", "steps": False, "log": log, "seconds": 15.0}
    (row,) = rows_told(session(**told, meta=waiting))
    assert row.startswith("step — figures soon epoch 1/4 125/250")
    assert row.endswith("50 % ETA 0:12, of all ~1:42")


def test_an_old_count_has_its_age_and_stays_after_the_end(session: Callable[..., Path]) -> None:
    log = [("stdout", f"step {n}/400") for n in range(10, 310, 10)] + [("stdout", "")] * 30
    told = {"kind": "command", "steps": False, "log": log}
    (row,) = rows_told(session(**told), "/400")
    assert row.startswith("printed 300/400") and row.endswith("75 % 0:46 ago")
    (row,) = rows_told(session("02", **told, meta=finished(), alive=False), "/400")
    assert row.startswith("printed 300/400") and row.endswith("75 %")


@pytest.mark.parametrize("over", [False, True])
def test_a_printed_count_of_the_steps_is_their_total(
    session: Callable[..., Path], over: bool
) -> None:
    log = [("stdout", f"step {n}/20000 loss 0.5") for n in range(180, 16900, 180)]
    ended = {**finished(), "run": {}} if over else {"run": {}}
    text = page_text(session(log=log, meta=ended, alive=not over))
    assert re.search(r"\n step 16,8\d+/20,000 .* 8\d %", text) and " printed" not in text
