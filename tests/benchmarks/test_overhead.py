"""The statistics of benchmarks/overhead, and one short real measurement."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.overhead import pool, standin, table
from benchmarks.overhead.measure import Case, Measured, environment, measure
from benchmarks.overhead.moments import Steps, beside_nobody, moments
from benchmarks.overhead.switch import switched, uninterrupted
from benchmarks.overhead.table import BEGIN, END, markdown, verdict, write
from benchmarks.overhead.windows import (
    Pairs,
    Planned,
    Window,
    cpu_share,
    pairs,
    plan,
    slowdown,
    step_lengths,
    undisturbed,
)
from benchmarks.page import PAGE
from benchmarks.tui.driver import build
from tests.waiting import until


def simulated(share: float, dice: random.Random, count: int = 60) -> Pairs:
    """A workload that is ``share`` slower while watched, on a machine that drifts and on which
    every window has a noise of one percent."""
    windows, ends, now, drift = [], [], 0.0, 0.0
    for planned in plan(count * 4.0, 2.0, dice):
        drift += dice.gauss(0, 0.005)
        step = 0.02 * (1 + drift) * (1 + dice.gauss(0, 0.01)) * (1 + share * planned.on)
        steps = int(planned.seconds / step)
        windows.append(Window(planned.on, int(now * 1e9), int((now + steps * step) * 1e9), 0.0))
        ends.append((now + step * np.arange(1, steps + 1)) * 1e9)
        now += steps * step
    return pairs(np.concatenate(ends).astype(np.int64), windows)


def shared(share: float, each: float, busy: float) -> Pairs:
    """2 % of the steps take longer while watched, ``share`` of all time; all steps of a window are
    longer by ``each`` then; a neighbour of the host makes steps longer by 60 %, in stretches of
    some 0.3 s, ``busy`` of the time."""
    numbers = np.random.default_rng(8)
    planned = plan(400.0, 0.5, random.Random(9))
    windows, lengths, now, slow = [], [], 0.0, False
    for window in planned:
        start, until = now, now + window.seconds
        while now < until:
            if numbers.random() < 1e-3 / 0.3:
                slow = numbers.random() < busy
            step = 1e-3 * (1 + 0.6 * slow) * (1 + numbers.normal(0, 0.01))
            if window.on:
                step *= 1 + each + 50 * share * (numbers.random() < 0.02)
            lengths.append(step)
            now += step
        windows.append(Window(window.on, int(start * 1e9), int(now * 1e9) + 1, 0.0))
    return pairs((np.cumsum(lengths) * 1e9).astype(np.int64), windows)


def test_a_slowdown_that_is_there_is_found_with_its_size() -> None:
    found = slowdown(undisturbed(simulated(0.02, random.Random(1))))
    assert found is not None
    assert 0 < found.low < found.estimate < found.high
    assert abs(found.estimate - 0.02) < 0.008


def test_without_a_slowdown_zero_is_outside_of_the_interval_no_oftener_than_it_may() -> None:
    dice = random.Random(2)
    found = [slowdown(undisturbed(simulated(0.0, dice))) for _ in range(100)]
    outside = sum(each is None or not each.low <= 0 <= each.high for each in found)
    assert outside <= 12  # 5 are due; 13 and more come once in 1,000


def test_few_blocks_are_not_taken_for_many() -> None:
    numbers = np.random.default_rng(15)
    found = [slowdown(numbers.normal(0, 0.01, 15)) for _ in range(200)]
    outside = sum(each is None or not each.low <= 0 <= each.high for each in found)
    assert outside <= 20  # 10 are due; percentiles alone leave it out 36 times


def test_pairs_that_lie_far_out_decide_nothing() -> None:
    numbers = np.random.default_rng(5)
    widths = []
    for _ in range(20):
        usual = 0.02 + numbers.normal(0, 0.01, 200)
        some_far = usual + numbers.choice((-0.2, 0.0, 0.2), 200, p=(0.08, 0.84, 0.08))
        found, plain = slowdown(some_far), slowdown(usual)
        assert found is not None and plain is not None
        assert abs(found.estimate - 0.02) < 0.006
        widths.append((found.high - found.low) / (plain.high - plain.low))
    assert np.mean(widths) < 1.7  # of their mean it would be seven


def test_the_interval_is_wider_where_neighbouring_pairs_are_alike() -> None:
    numbers = np.random.default_rng(3)
    apart = numbers.normal(0, 0.01, 200)
    alike = np.repeat(apart[:40], 5)
    widths = [each.high - each.low for each in map(slowdown, (apart, alike)) if each is not None]
    assert widths[1] > 1.5 * widths[0]


def test_pairs_in_which_the_host_was_busy_are_left_out_and_nothing_else() -> None:
    busy, quiet = shared(0.01, 0.0, 0.4), shared(0.01, 0.0, 0.0)
    assert undisturbed(quiet).size > 0.9 * quiet.ratios.size
    assert 0.05 < undisturbed(busy).size / busy.ratios.size < 0.6
    widths = []
    for ratios in (undisturbed(busy), busy.ratios):
        found = slowdown(ratios)
        assert found is not None
        widths.append(found.high - found.low)
        assert found.low - 0.001 < 0.01 < found.high + 0.001
    assert widths[0] < 0.5 * widths[1]


def test_what_the_switched_process_does_all_the_time_leaves_nothing_out() -> None:
    for share, each in ((0.0, 0.3), (0.02, 0.1)):
        found = shared(share, each, 0.0)
        kept = undisturbed(found)
        assert kept.size > 0.9 * found.ratios.size
        assert np.median(kept) == pytest.approx(np.log(1 + each + share), abs=0.003)


def test_without_pairs_none_is_kept() -> None:
    assert undisturbed(pairs(np.arange(2), [])).size == 0


def beside(share: float, *, busy: float = 0.4, ran: float = 0.05, pairs: int = 120) -> np.ndarray:
    """Moments of a process that runs for 30 ms twice a second, and takes ``share`` of all time from
    the workload in them; a neighbour of the host as in :func:`shared`, and one step in a thousand
    that is ten times as long. ``ran``: of the steps in which it runs, its processor time."""
    numbers = np.random.default_rng(10)
    windows, ends, used, now, slow, clock = [], [], [], 0.0, False, 0.0
    for window in plan(pairs * 4.0, 2.0, random.Random(11)):
        start, until = now, now + window.seconds
        while now < until:
            if numbers.random() < 1e-3 / 0.3:
                slow = numbers.random() < busy
            step = 1e-3 * (1 + 0.6 * slow) * (1 + numbers.normal(0, 0.01))
            step *= 10 if numbers.random() < 0.001 else 1
            if window.on and now % 0.5 < 0.03:
                step /= 1 - share * 0.5 / 0.03
                clock += ran * step
            now += step
            ends.append(now)
            used.append(clock)
        windows.append(Window(window.on, int(start * 1e9), int(now * 1e9) + 1, 0.0))
    steps = Steps(*((np.asarray(each) * 1e9).astype(np.int64) for each in (ends, used)))
    return moments(steps, windows)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.005, 0.02])
def test_what_a_process_takes_in_its_moments_is_found_on_a_host_that_is_busy(share: float) -> None:
    found = beside(share)
    assert found.size == 120
    told = slowdown(found, np.mean)
    assert told is not None
    assert told.high - told.low < 0.002
    assert told.low - 0.0003 < share / (1 - share) < told.high + 0.0003


def test_moments_tell_nothing_of_a_process_that_never_runs_or_hardly_rests() -> None:
    assert beside(0.0, ran=0.0, pairs=10).size == 0
    ends = np.arange(1, 20_001) * 1_000_000
    windows = [Window(on, at * 10**9, (at + 2) * 10**9, 0.0) for at, on in ((2, True), (4, False))]
    often = np.cumsum(np.arange(ends.size) % 20 < 11)
    assert moments(Steps(ends, often), windows).size == 0
    seldom = np.cumsum(np.arange(ends.size) % 40 < 11)
    assert moments(Steps(ends, seldom), windows).tolist() == pytest.approx([0.0], abs=1e-9)


def test_beside_a_process_that_is_made_up_the_moments_show_nothing() -> None:
    numbers = np.random.default_rng(14)
    outside = 0
    for each in range(40):
        ends = (np.cumsum(1e-3 * (1 + 0.6 * stretches(numbers, 90_000))) * 1e9).astype(np.int64)
        now, windows = 10**9, []
        for window in plan(80, 2.0, random.Random(each)):
            windows.append(Window(window.on, now, now + int(window.seconds * 1e9), 0.0))
            now = windows[-1].end_ns
        found = slowdown(moments(beside_nobody(Steps(ends, np.zeros_like(ends))), windows), np.mean)
        assert found is not None and found.high - found.low < 0.02
        outside += not found.low <= 0 <= found.high
    assert outside <= 8  # 2 are due, and four blocks are few


def stretches(numbers: np.random.Generator, count: int) -> np.ndarray:
    """Whether the host is busy in a step: in stretches of some 300, two fifths of all."""
    starts = numbers.random(count) < 1 / 300
    return (numbers.random(count) < 0.4)[
        np.maximum.accumulate(np.where(starts, np.arange(count), 0))
    ]


def test_what_lasts_beyond_the_moments_is_seen_by_all_steps_alone() -> None:
    """In all windows in which it runs the steps are 1 % longer, all of them."""
    case = Case("loop", 2, 8)
    lasting = replace(measured(0.01, case), moments=np.zeros(200))
    good, said = verdict([lasting])
    assert not good and "all steps show more than the moments" in said[0]
    assert verdict([replace(measured(0.0, case), moments=np.zeros(200))])[0]


def test_moments_count_before_all_steps_unless_most_pairs_lack_them() -> None:
    case = Case("loop", 2, 8)
    numbers = np.random.default_rng(12).normal(0, 0.001, 200)
    told = replace(measured(0.02, Case("loop", 2, 8, instead=0.02)), moments=numbers + 0.01)
    assert verdict([told])[0]
    assert not verdict([replace(told, moments=numbers - 0.01)])[0]
    much, most = (replace(measured(0.0, case), moments=numbers[:many] + 0.01) for many in (100, 99))
    assert not verdict([much])[0] and verdict([most])[0]
    cells = table.row(much)
    assert cells[4] == "100 of 200" and cells[5].startswith("+1.0") and float(cells[8]) < 0.2
    assert table.row(most)[5] == "too few pairs"


def test_too_few_pairs_give_no_interval() -> None:
    assert slowdown(np.zeros(9)) is None
    assert slowdown(np.zeros(10)) is not None


def test_a_plan_has_both_kinds_in_every_pair_in_an_order_of_chance() -> None:
    planned = plan(400, 2.0, random.Random(4))
    firsts = [first.on for first, second in zip(planned[::2], planned[1::2], strict=True)
              if first.on != second.on]  # fmt: skip
    assert len(firsts) == 100
    assert 25 < sum(firsts) < 75
    assert all(1.75 <= each.seconds <= 2.25 for each in planned)
    assert len({each.seconds for each in planned}) > 150


def test_a_pair_of_one_kind_is_refused() -> None:
    windows = [Window(True, 0, 10, 0.0), Window(True, 10, 20, 0.0)]
    with pytest.raises(ValueError, match="either kind"):
        pairs(np.arange(20), windows)


def test_a_step_across_the_edge_of_a_window_counts_in_neither() -> None:
    ends = np.array([1, 2, 3, 9, 10, 11]) * 10**9
    assert step_lengths(ends, Window(True, 10**9, 4 * 10**9, 0.0)).tolist() == [1.0, 1.0]
    assert step_lengths(ends, Window(True, 8 * 10**9, 12 * 10**9, 0.0)).tolist() == [1.0, 1.0]
    assert step_lengths(ends, Window(True, 4 * 10**9, 9 * 10**9, 0.0)).size == 0


def measured(share: float, case: Case, seed: int = 6) -> Measured:
    found = simulated(share, random.Random(seed), 200)
    windows = (Window(True, 0, 10**9, 0.004), Window(False, 10**9, 2 * 10**9, 0.0))
    return Measured(case, found, np.zeros(0), windows, 0.02, 0.003)


def test_the_table_tells_a_missed_target_and_controls_that_do_not_hold() -> None:
    good = [
        measured(0.0, Case("loop", 2, 1, instead=0.0)),
        measured(0.02, Case("loop", 2, 1, instead=0.02)),
        measured(0.0, Case("loop", 2, 8)),
        measured(0.02, Case("loop", 100, 8)),
    ]
    assert verdict(good) == (True, [])
    text = markdown(good, "HEAD")
    assert "every upper bound is below 0.5%, and the controls hold." in text
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(lines) == 2 + len(good) and len({line.count("|") for line in lines}) == 1
    assert "| 0.30 | 0.40 |" in lines[-1]
    *_, high, _, _, at_most, _ = lines[-1].split("|")
    assert high.split()[-1] == "+" + at_most.strip()
    few = replace(good[2], cpu_share=0.04)
    found = slowdown(undisturbed(few.pairs))
    assert found is not None
    assert table.at_most(few) == pytest.approx(10 * found.high)
    assert not verdict([few])[0], "ten times as much work, a tenth of which was measured"
    assert "At 2 Hz nothing was measured, and the controls hold." in markdown(
        [*good[:2], good[3]], "HEAD"
    )
    assert "is below 0.5%, and not both kinds of control were measured." in markdown(
        [good[0], good[2]], "HEAD"
    )
    for bad in (
        measured(0.02, Case("loop", 2, 1, instead=0.0)),
        measured(0.0, Case("loop", 2, 1, instead=0.02)),
        measured(0.02, Case("loop", 2, 8)),
    ):
        held, said = verdict([*good, bad])
        assert not held and len(said) == 1
        assert said[0] in markdown([bad], "HEAD")


def test_the_table_goes_between_its_marks_and_nothing_else_is_touched(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    for _ in range(2):
        write("new", page)
        assert page.read_text() == f"before\n{BEGIN}\nnew\n{END}\nafter\n"
    assert PAGE.read_text().count(BEGIN) == PAGE.read_text().count(END) == 1


def test_pairs_of_several_runs_count_together_those_of_other_settings_do_not(
    tmp_path: Path,
) -> None:
    kept, at = tmp_path / "pool", pool.setting("cpu", 300, 2.0)
    assert pool.read(kept, at) == ([], [])
    few = replace(measured(0.0, Case("loop", 2, 8)), moments=np.arange(3.0))
    for each in (few, measured(0.0, Case("loop", 2, 8, instead=0.0)), few):
        pool.add(kept, at, each)
    pool.add(kept, pool.setting("cpu", 0, 2.0), few)
    (control, twice), days = pool.read(kept, at)
    assert (control.case.instead, twice.case.instead, len(days)) == (0.0, None, 1)
    assert twice.pairs.ratios.tolist() == [*few.pairs.ratios, *few.pairs.ratios]
    assert twice.moments.tolist() == [0.0, 1.0, 2.0] * 2
    assert twice.pairs.spread_off.size == twice.pairs.ratios.size
    assert twice.windows == (*few.windows, *few.windows)
    narrow, wide = slowdown(twice.pairs.ratios), slowdown(few.pairs.ratios)
    assert narrow and wide
    assert narrow.high - narrow.low < 0.9 * (wide.high - wide.low)


def stood(windows: Sequence[Window]) -> None:
    """A stop takes effect when its thread next enters the kernel: as a rule within the guard."""
    assert all(each.cpu_s <= 0.02 * each.seconds for each in windows if not each.on)


def test_a_process_that_stands_still_uses_no_processor_and_goes_on_afterwards() -> None:
    with subprocess.Popen([sys.executable, standin.__file__, "0.5"]) as process:
        try:
            until(lambda: uninterrupted(process.pid, 0.2) > 0)
            planned = [Planned(on, 1.0) for on in (True, False) * 3]
            windows = switched(process.pid, planned)
            assert [each.on for each in windows] == [True, False] * 3
            stood(windows)
            assert cpu_share(windows) > 0
            assert uninterrupted(process.pid, 0.5) > 0
        finally:
            process.kill()


@pytest.mark.parametrize("instead", [None, 0.0, 0.02])
def test_a_real_recorder_or_a_stand_in_is_switched_again_and_again_and_the_run_ends_well(
    tmp_path: Path, instead: float | None
) -> None:
    # As the benchmark does: a driver that looks for events all the time lets no recorder rest.
    env = environment(build(tmp_path), latency_us=300)
    case = Case("loop", 10, 1, instead)
    found = measure(case, seconds=4, window_s=1.0, device="cpu", env=env, seed=7)
    assert len(found.windows) == 4 and found.pairs.ratios.size >= 1
    stood(found.windows)
    assert (cpu_share(found.windows) > 0) == (found.cpu_share > 0) == (instead != 0)
    assert found.step_s > 0
