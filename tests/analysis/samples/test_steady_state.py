"""Where a run is steady is found, and what only looks like a change is not taken for one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import lfilter

from gpuwatch.analysis.samples.steady_state import Steady, late_note, steady_series
from gpuwatch.analysis.statistics.changepoints import noise_of, partition

pytestmark = pytest.mark.usefixtures("simulations")

STEP = 5e-3


def noise(count: int, spread: float, correlation: float = 0.0, seed: int = 1) -> np.ndarray:
    """Factors around 1, log-normal, correlated from step to step (AR(1))."""
    fresh = np.random.default_rng(seed).normal(size=count + 50)
    root = math.sqrt(1 - correlation**2)
    return np.exp(spread * lfilter([root], [1, -correlation], fresh)[50:])


def steady_state(seconds: Sequence[float]) -> Steady:
    return steady_series(np.asarray(seconds, dtype=float))


def test_a_flat_run_is_steady_from_its_first_step() -> None:
    times = STEP * noise(100, 0.01)
    found = steady_state(list(times))
    assert (found.first, found.count, found.changes, found.reason) == (0, 100, (), None)
    assert found.seconds == np.median(times)
    assert found.spread == pytest.approx(0.01, rel=0.3)


def test_equal_steps_are_steady() -> None:
    found = steady_state([STEP] * 50)
    assert (found.seconds, found.first, found.spread) == (STEP, 0, 0.0)


def test_two_levels_of_equal_steps_are_told_apart() -> None:
    found = steady_state([2 * STEP] * 25 + [STEP] * 15)
    assert (found.seconds, found.first, found.changes) == (STEP, 25, (25,))


def test_ten_steps_are_enough_and_nine_are_too_few() -> None:
    assert steady_state([STEP] * 10).seconds == STEP
    found = steady_state([STEP] * 9)
    assert (found.seconds, found.spread) == (None, None)
    assert found.reason == "9 timed steps are too few for a steady state, which takes 10"
    assert steady_state([]).reason is not None


@pytest.mark.parametrize("correlation", [0.0, 0.5])
@pytest.mark.parametrize("spread", [0.001, 0.05, 0.2])
@pytest.mark.parametrize("count", [10, 20, 100, 500])
def test_noise_alone_hardly_ever_denies_a_steady_state(
    count: int, spread: float, correlation: float
) -> None:
    runs = [
        steady_state(list(STEP * noise(count, spread, correlation, seed))) for seed in range(120)
    ]
    assert sum(run.seconds is None for run in runs) <= 1
    assert sum(run.first > 0 for run in runs) <= 4


def test_noise_alone_denies_a_steady_state_in_under_one_run_of_a_hundred() -> None:
    runs = [
        steady_state(list(STEP * noise(count, spread, 0.5, seed)))
        for count in (12, 40, 150)
        for spread in (0.02, 0.2)
        for seed in range(200)
    ]
    assert sum(run.seconds is None for run in runs) < len(runs) / 100


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_the_warm_up_is_left_out(correlation: float) -> None:
    decay = 1 + 0.5 * np.exp(-np.arange(300) / 15)
    found = steady_state(list(STEP * decay * noise(300, 0.01, correlation)))
    assert found.seconds == pytest.approx(STEP, rel=0.01)
    assert 20 <= found.first <= 90


def test_what_a_throttled_run_settles_at_is_its_steady_state() -> None:
    levels = np.where(np.arange(200) < 120, 1.0, 1.25)
    found = steady_state(list(STEP * levels * noise(200, 0.01)))
    assert (found.first, found.changes) == (120, (120,))
    assert found.seconds == pytest.approx(1.25 * STEP, rel=0.01)


def test_a_change_near_the_end_is_no_steady_state_and_names_both_times() -> None:
    levels = np.where(np.arange(100) < 92, 5.1e-3, 5.6e-3)
    found = steady_state(list(levels * noise(100, 0.001)))
    assert (found.seconds, found.spread, found.first, found.count) == (None, None, 92, 8)
    assert found.reason == (
        "no steady state: the step time still changed at step 93 of 100 (from 5.10 ms to 5.60 ms)"
    )


def test_a_tenth_of_a_long_run_must_be_steady() -> None:
    levels = np.where(np.arange(2000) < 1850, 1.0, 1.1)
    found = steady_state(list(STEP * levels * noise(2000, 0.01)))
    assert found.seconds is None
    assert 1845 <= found.first <= 1855
    earlier = np.where(np.arange(2000) < 1750, 1.0, 1.1)
    found = steady_state(list(STEP * earlier * noise(2000, 0.01)))
    assert found.seconds == pytest.approx(1.1 * STEP, rel=0.01)


@pytest.mark.parametrize("change", [0.04, -0.04])
@pytest.mark.parametrize(("count", "correlation"), [(100, 0.0), (300, 0.5), (3000, 0.0)])
def test_a_drift_to_the_end_is_no_steady_state(
    count: int, correlation: float, change: float
) -> None:
    ramp = 1 + change * np.arange(count) / count
    found = steady_state(list(STEP * ramp * noise(count, 0.005, correlation)))
    assert found.seconds is None
    assert found.reason is not None
    late_note = "rose" if change > 0 else "fell"
    assert f"the step time still {late_note} at the end, over the last {count:,} of" in found.reason


def test_a_drift_that_ends_leaves_a_steady_state() -> None:
    ramp = 1 + 0.06 * np.minimum(np.arange(400) / 400, 0.5)
    found = steady_state(list(STEP * ramp * noise(400, 0.003)))
    assert found.seconds == pytest.approx(1.03 * STEP, rel=0.003)
    assert found.first > 120


def test_changes_under_half_a_per_cent_are_none() -> None:
    levels = np.where(np.arange(300) < 280, 1.0, 1.004)
    found = steady_state(list(STEP * levels * noise(300, 0.0005)))
    assert (found.first, found.changes) == (0, ())


def test_changes_under_the_noise_are_none() -> None:
    levels = np.where(np.arange(2000) < 1900, 1.0, 1.05)
    assert steady_state(list(STEP * levels * noise(2000, 0.2))).seconds is not None


@pytest.mark.parametrize("place", [0, 50, 98, 99])
def test_a_single_slow_step_is_no_change(place: int) -> None:
    times = STEP * noise(100, 0.01)
    times[place] *= 20
    found = steady_state(list(times))
    assert (found.first, found.changes) == (0, ())


@pytest.mark.parametrize("every", [2, 5, 10, 50])
@pytest.mark.parametrize("count", [200, 5000])
def test_steps_that_are_slow_regularly_are_no_change(every: int, count: int) -> None:
    slow = np.where(np.arange(count) % every == every - 1, 3.0, 1.0)
    found = steady_state(list(STEP * slow * noise(count, 0.01)))
    assert (found.first, found.changes) == (0, ())


def test_a_short_disturbance_is_passed_over() -> None:
    levels = np.where((np.arange(400) >= 200) & (np.arange(400) < 212), 2.0, 1.0)
    found = steady_state(list(STEP * levels * noise(400, 0.01)))
    assert (found.first, found.count) == (0, 400)
    assert found.changes == (200, 212)
    assert found.seconds == pytest.approx(STEP, rel=0.01)


@pytest.mark.parametrize("slow", [0.1, 0.2, 0.35, 0.5])
def test_steps_at_two_speeds_by_chance_are_hardly_ever_denied_a_steady_state(slow: float) -> None:
    runs = []
    for count in (30, 60, 100, 300):
        for seed in range(60):
            speeds = np.random.default_rng(seed).choice([1.0, 1.3], count, p=[1 - slow, slow])
            runs.append(steady_state(list(STEP * speeds * noise(count, 0.005, seed=seed))))
    assert sum(run.seconds is None for run in runs) < 0.02 * len(runs)
    assert sum(run.first > 0 for run in runs) < 0.04 * len(runs)


@pytest.mark.parametrize("spread", [0.001, 0.003, 0.01])
def test_two_slow_steps_near_the_end_are_no_change(spread: float) -> None:
    for seed in range(50):
        times = 20.1e-3 * noise(30, spread, seed=seed)
        times[26], times[28] = 23.4e-3, 27.7e-3
        found = steady_state(list(times))
        assert (found.first, found.changes, found.reason) == (0, (), None)


def test_a_change_of_level_among_regular_slow_steps_is_found() -> None:
    count = np.arange(100)
    slow = np.where(count % 10 == 9, 3.0, 1.0) * np.where(count >= 60, 1.1, 1.0)
    found = steady_state(list(STEP * slow * noise(100, 0.01)))
    assert 58 <= found.first <= 61


def test_a_small_change_is_given_in_per_cent_beside_times_that_look_equal() -> None:
    levels = np.where(np.arange(100) < 92, 20.1e-3, 20.1e-3 * 1.01)
    reason = steady_state(list(levels * noise(100, 0.0005))).reason
    assert reason is not None
    assert reason.endswith("step 93 of 100 (from 20.1 ms to 20.3 ms, +1.0 %)")


@pytest.mark.parametrize(("count", "rise"), [(100, 0.02), (30, 0.03), (300, 0.01)])
def test_a_drift_that_does_not_rise_out_of_the_noise_passes(count: int, rise: float) -> None:
    ramp = 1 + rise * np.arange(count) / count
    assert steady_state(list(STEP * ramp * noise(count, 0.01))).seconds is not None
    assert steady_state(list(STEP * ramp * noise(count, 0.001))).seconds is None


@pytest.mark.parametrize(("count", "noises"), [(30, 5.5), (100, 3.5), (300, 2.3)])
def test_a_drift_shows_from_so_many_times_the_noise_on(count: int, noises: float) -> None:
    ramp = np.exp(0.01 * np.arange(count) / count * noises)
    runs = [steady_state(list(STEP * ramp * noise(count, 0.01, seed=seed))) for seed in range(40)]
    assert sum(run.seconds is None for run in runs) > 20


def test_a_late_level_is_the_runs_value_and_is_told() -> None:
    levels = np.where(np.arange(100) < 88, 1.0, 1.1)
    found = steady_state(list(STEP * levels * noise(100, 0.003)))
    assert found.seconds == pytest.approx(1.1 * STEP, rel=0.01)
    assert found.share == 0.12
    told = "the step time changed its level; steady are only the last 12 of 100 steps"
    assert found.late and late_note([found]) == told


def test_a_steady_part_of_most_steps_is_no_news() -> None:
    levels = np.where(np.arange(100) < 19, 1.2, 1.0)
    assert not steady_state(list(STEP * levels * noise(100, 0.003))).late
    assert not steady_state([STEP] * 9).late


def test_a_hundred_thousand_even_steps_are_all_steady() -> None:
    found = steady_state(list(STEP * noise(100_000, 0.05)))
    assert (found.first, found.count) == (0, 100_000)


@settings(derandomize=True)
@given(st.lists(st.floats(1e-6, 1e3), max_size=80), st.floats(1e-3, 1e3))
def test_the_unit_of_time_makes_no_difference(times: list[float], factor: float) -> None:
    plain, scaled = steady_state(times), steady_state([factor * each for each in times])
    assert (plain.seconds is None) == (scaled.seconds is None)
    assert plain.first + plain.count == len(times)
    if plain.seconds is not None and scaled.seconds is not None:
        assert (plain.first, plain.changes) == (scaled.first, scaled.changes)
        assert scaled.seconds == pytest.approx(factor * plain.seconds)
        assert plain.count >= 10


def test_the_partition_is_the_best_of_all() -> None:
    values = np.array([0.0, 0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 1, 1, 1, 1, 1])
    assert partition(values, 1.0) == [0, 5, 11]
    assert partition(values, 500.0) == [0]


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.8])
def test_correlated_noise_is_known_by_its_differences_whatever_the_levels(
    correlation: float,
) -> None:
    values = np.log(noise(5000, 0.02, correlation)) + np.where(np.arange(5000) < 2500, 0.0, 0.5)
    found = noise_of(values)
    assert found.deviation == pytest.approx(0.02, rel=0.2)
    supposed = max(correlation, 0.5)
    expected = found.deviation**2 * (1 - correlation) * (1 + supposed) / (1 - supposed) ** 2
    assert found.long_run == pytest.approx(expected, rel=0.35)
