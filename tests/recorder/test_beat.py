"""No load can stay in step with the samples, and each interval has its one sample."""

from __future__ import annotations

import math
import random
import statistics
from itertools import pairwise

import pytest

from gpuwatch.recorder.beat import STRIDE, Beat


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
