"""Over many simulated runs, ranks that are not slow are seldom named, and slow ones are found."""

from __future__ import annotations

import pytest

from .simulated import share

pytestmark = pytest.mark.usefixtures("simulations")

RUNS = 400
MOST_WRONG = 0.07
"""5 %, and two standard errors of a share of 400 runs."""


@pytest.mark.parametrize("ranks", [2, 4, 8])
@pytest.mark.parametrize(("count", "noise"), [(10, 0.02), (30, 0.02), (30, 0.05), (150, 0.05)])
def test_a_rank_that_is_not_slow_is_seldom_named(ranks: int, count: int, noise: float) -> None:
    wrong, _ = share(RUNS, ranks, count, noise)
    assert wrong <= MOST_WRONG


@pytest.mark.parametrize("ranks", [2, 4, 8])
@pytest.mark.parametrize("slow", [0.05, 0.10, 0.30])
def test_a_slow_rank_is_found_and_no_other(ranks: int, slow: float) -> None:
    wrong, found = share(60, ranks, 30, 0.005, slow=slow)
    assert found >= 0.75 and wrong <= 0.05


@pytest.mark.parametrize("ranks", [2, 8])
def test_a_rank_that_becomes_slower_half_way_is_found(ranks: int) -> None:
    wrong, found = share(60, ranks, 150, 0.005, slow=0.10, since=0.5)
    assert found >= 0.9 and wrong <= 0.05
