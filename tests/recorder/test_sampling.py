"""When samples are taken, and what is told of the machine's clocks: no load can stay in step with
the samples, and each interval has its one sample."""

from __future__ import annotations

import math
import random
import statistics
import time
from itertools import pairwise

import pytest

from gpuwatch.recorder.sampling import STRIDE, Beat, Clocks, Reading, read_clocks


def times(count: int) -> list[float]:
    """When samples are taken, in intervals."""
    beat = Beat(random.random())
    return [n + beat.next() for n in range(count)]


@pytest.fixture(autouse=True)
def _seeded() -> None:
    random.seed(7)


def test_every_sample_is_in_its_own_interval_and_near_the_next_one() -> None:
    taken = times(10_000)
    assert all(n <= t <= n + 1 for n, t in enumerate(taken))
    apart = [after - before for before, after in pairwise(taken)]
    assert min(apart) >= 1 - STRIDE and max(apart) <= 1 + STRIDE


def test_every_moment_of_the_interval_is_as_frequent_as_any_other() -> None:
    parts = [int(t % 1 * 10) for t in times(20_000)]
    assert all(parts.count(part) == pytest.approx(2_000, rel=0.1) for part in range(10))


@pytest.mark.parametrize("period", [0.25, 1 / 3, 0.5, 0.9, 1.0, 1.125, 2.0, 7.3])
def test_the_mean_of_samples_is_the_loads_whatever_its_period(period: float) -> None:
    """Busy a third of the time; each study of 60 samples begins at another moment of the load."""
    means = []
    for _ in range(300):
        begun = random.random()
        busy = [(t / period + begun) % 1 < 1 / 3 for t in times(60)]
        means.append(sum(busy) / len(busy))
    assert statistics.mean(means) == pytest.approx(1 / 3, abs=0.025), "no error that stays"
    independent = math.sqrt(1 / 3 * 2 / 3 / 60)
    assert statistics.stdev(means) < 2 * independent, "what four standard errors allow for"


S = 1_000_000_000
START = Reading(100 * S, 500 * S, 1_760_000_000 * S)


def told(monotonic: float, boot: float, wall: float) -> list[tuple[object, object]]:
    """Kinds and texts after the clocks went on by so many seconds each."""
    now = Reading(
        START.monotonic + int(monotonic * S), START.boot + int(boot * S), START.wall + int(wall * S)
    )
    rows = Clocks(START).look(int(monotonic * S), now)
    return [(values[1], values[3]) for _, values in rows]


def test_a_clock_that_is_kept_right_is_not_told() -> None:
    assert told(0.5, 0.5, 0.5) == []
    assert told(3600, 3600, 3600.9) == []


def test_sleep_is_no_step_of_the_wall_clock() -> None:
    assert told(0.5, 3600.5, 3600.5) == [
        ("suspended", "the machine slept for 60 min: times here do not count that")
    ]


def test_a_clock_that_was_set_while_the_machine_slept_is_both() -> None:
    (slept, stepped) = told(0.5, 30.5, 7230.5)
    assert slept[0] == "suspended" and "for 30 s" in str(slept[1])
    assert stepped[0] == "clock-stepped" and "forwards by 2.0 h" in str(stepped[1])


def test_a_step_is_told_once() -> None:
    clocks = Clocks(START)
    back = Reading(START.monotonic + S, START.boot + S, START.wall - 9 * S)
    (row,) = clocks.look(S, back)
    assert "backwards by 10 s" in str(row[1][3])
    on = Reading(START.monotonic + 2 * S, START.boot + 2 * S, START.wall - 8 * S)
    assert clocks.look(2 * S, on) == []


@pytest.mark.parametrize("clock", ["clock_gettime_ns", "time_ns"])
def test_a_recorder_that_stood_still_between_two_clocks_makes_no_sleep_up(
    monkeypatch: pytest.MonkeyPatch, clock: str
) -> None:
    before = read_clocks()
    asked, stops = getattr(time, clock), [1.1]

    def after_a_stop(*which: int) -> int:
        if stops:
            time.sleep(stops.pop())
        found: int = asked(*which)
        return found

    monkeypatch.setattr(time, clock, after_a_stop)
    now = read_clocks()
    assert Clocks(before).look(now.monotonic, now) == []
