"""The phases of the newest timed steps, as a bar with names and shares."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.session.rows import SAMPLED, StepRow, mean_phases
from gpuwatch.tui.feed.snapshot import StepShares
from gpuwatch.tui.feed.steps import phase_shares
from gpuwatch.tui.live.rows import phase_rows
from gpuwatch.tui.widgets.ascii import to_ascii

from ..harness import live, screen_text, shows
from ..sessions import finished
from ..snapshots_of import numbers_text, page_text, snapshot_of, texts

Make = Callable[..., Path]
USUAL = {"data": 0.12, "copy": 0.05, "forward": 0.31, "backward": 0.40, "optimizer": 0.10}


def line(phases: Mapping[str, float], seconds: tuple[float, ...] | None = (1.0,)) -> StepRow:
    count = len(seconds or (1,))
    return StepRow(0, 0, 1, count, False, 64.0, seconds, None, None, None, phases, (), None, None)


def shares_of(*lines: StepRow) -> StepShares | None:
    return phase_shares(reversed(lines), {})


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_each_phase_has_its_name_and_share_on_the_screen(
    session: Make, size: tuple[int, int]
) -> None:
    async with live(session(phases=USUAL), size) as (app, pilot):
        for text in ("data 12 %", "copy 5.0 %", "forward 31 %", "backward 40 %", "optimizer 10 %"):
            await shows(pilot, text)
        assert "█" * 2 in screen_text(app)


def test_shares_are_of_the_newest_thousand_timed_steps(session: Make) -> None:
    shares = snapshot_of(session(phases=USUAL)).shares
    assert shares is not None and 1000 <= shares.steps < 1020
    assert dict(shares.parts) == pytest.approx(USUAL)
    assert shares.other == pytest.approx(0.02) and shares.seconds == pytest.approx(0.0055, rel=0.1)


@pytest.mark.parametrize("seconds", [90.0, 16.0], ids=["more", "fewer"])
def test_the_median_is_of_the_same_steps(session: Make, seconds: float) -> None:
    """Lines of seven steps come to 1,001."""
    snapshot = snapshot_of(session(phases=USUAL, pace=3.0, seconds=seconds), seconds=seconds)
    assert snapshot.shares is not None and snapshot.work is not None
    assert snapshot.work.step_count == snapshot.shares.steps
    assert (snapshot.shares.steps > 1000) == (seconds == 90.0)


def test_the_newest_steps_are_called_the_last_ones_until_the_run_is_over(session: Make) -> None:
    path = session(phases=USUAL)
    assert "  over the last 1,0" in page_text(path, (160, 50))
    told = numbers_text(path, 160)
    assert told.count(" the last 1,0") == len(USUAL) and told.count(" last 1,0") == 2 + len(USUAL)
    over = session("02", phases=USUAL, meta=finished(), alive=False)
    shown = page_text(over, (160, 50)) + numbers_text(over, 160)
    assert " last 1" not in shown and " timed steps\n" in shown
    few = session("03", phases=USUAL, pace=3.0, seconds=16.0)
    assert "the last" not in page_text(few, (160, 50), 16.0)


def test_phases_of_some_steps_are_not_called_those_of_the_last_ones(session: Make) -> None:
    path = session(phases=USUAL)
    with sqlite3.connect(path) as db:
        db.execute("UPDATE step SET phases = json_set(phases, ?, 15)", (f'$."{SAMPLED}"',))
    db.close()
    seen = snapshot_of(path)
    assert seen.shares is not None and seen.work is not None
    assert (seen.shares.newest, seen.work.newest) == ("", "the last ")


@pytest.mark.parametrize(("steps", "called"), [(1020, ""), (1040, "the last ")])
def test_only_steps_with_others_before_are_the_last_ones(
    session: Make, steps: int, called: str
) -> None:
    """Twenty steps are of the warm-up."""
    seen = snapshot_of(session(phases=USUAL, total_steps=steps))
    assert seen.work is not None and seen.work.step_count == 1000
    assert seen.shares is not None and seen.shares.newest == seen.work.newest == called


def test_shares_of_sampled_steps_are_of_their_own_time() -> None:
    row = replace(line({"data": 0.3, "forward": 0.9}, (0.5,) * 10), sampled=2)
    shares = shares_of(row, replace(row, phases={}, sampled=0))
    assert shares is not None and (shares.steps, shares.seconds) == (2, pytest.approx(0.6))
    assert dict(shares.parts) == pytest.approx({"data": 0.25, "forward": 0.75})


def test_slow_steps_of_which_more_are_drawn_weigh_no_more_than_others() -> None:
    fast = replace(line({"data": 0.001, "other": 0.009}, (0.01,) * 100), sampled=1)
    unseen = replace(fast, phases={}, sampled=0)
    slow = replace(line({"data": 1.0, "other": 1.0}, (0.2,) * 100), sampled=10)
    rows = [fast, unseen, fast, slow] * 5
    shares = phase_shares(rows, {})
    assert shares is not None and shares.steps == 60
    data = mean_phases(rows)
    assert dict(shares.parts)["data"] == pytest.approx(data["data"] / sum(data.values()))


def test_what_the_hook_takes_is_shown() -> None:
    shares = StepShares(tuple(USUAL.items()), 1000, "", 0.005, hook=0.0021)
    assert "hook 0.2 % of the time" in texts(phase_rows(shares, 160, 2))[1]


def test_other_is_told_once_with_the_phases_that_the_hook_could_not_see() -> None:
    """The step of several ranks is longer than the phases of the first one."""
    run = {"unseen_phases": {"data": "no loader", "forward": "compiled"}}
    steps = [line({"backward": 0.4, "other": 0.6}, (1.1,))]
    shares = phase_shares(steps, {"run": run})
    assert shares is not None and shares.other == 0
    legend = texts(phase_rows(shares, 120, 2))[1]
    assert "backward 40 %" in legend and "other (with data and forward) 60 %" in legend
    phases = {"data": 0.0, "forward": 0.0, "backward": 0.4, "optimizer": 0.0, "other": 0.6}
    old = [line(phases, (1.1,))]
    hooked = {"hook": {"processes": 1}}
    assert phase_shares(old, hooked) == shares, "older recordings have an unseen one as 0"
    own = phase_shares(old, {})
    assert own is not None and ("other", pytest.approx(0.6)) in own.parts, "a program's own 0 is 0"


def test_old_steps_go_when_new_ones_come() -> None:
    old = [line({"data": 9.0, "slow": 1.0}, (1.0,) * 10)] * 200
    new = [line({"data": 1.0, "forward": 9.0}, (1.0,) * 10)] * 100
    shares = shares_of(*old, *new)
    assert shares is not None and shares.steps == 1000
    assert dict(shares.parts) == pytest.approx({"data": 0.1, "forward": 0.9})


@pytest.mark.parametrize(
    "row",
    [
        line({}),
        line({"data": 0.5}, None),
        line({"data": float("nan")}, (float("nan"),)),
        line({"data": float("inf")}),
        line({"data": -1.0}, (0.0,)),
    ],
)
def test_a_line_that_says_nothing_of_its_time_has_no_part(row: StepRow) -> None:
    assert shares_of(row) is None


def test_the_bar_is_as_long_as_all_of_it_and_each_part_by_its_share() -> None:
    shares = StepShares(tuple(USUAL.items()), 1000, "", 0.005)
    for width in range(60, 200):
        bar = texts(phase_rows(shares, width, 2))[0]
        assert len(bar) == width - 1
        assert abs(bar.count("█") - 0.31 * (width - 2)) <= 1
        assert abs(bar.count("▓") - 0.40 * (width - 2)) <= 1


def test_patterns_tell_the_phases_apart_without_colour_and_in_ascii() -> None:
    shares = StepShares(tuple({**USUAL, "eval": 0.01, "sync": 0.005}.items()), 1000, "", 0.005)
    bar = texts(phase_rows(shares, 400, 2))[0].strip()
    assert len(set(bar)) == 8 and len(set(to_ascii(bar))) == 8
