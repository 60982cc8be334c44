"""What is promised of so many blocks is what simulated studies find."""

from __future__ import annotations

import numpy as np
import pytest

from gpuwatch.analysis.comparison.verdict import paired
from gpuwatch.analysis.results import Kind, Verdict
from gpuwatch.analysis.statistics.power import (
    blocks_to_decide,
    power_beyond,
    power_within,
    power_zero,
    resolves,
)

pytestmark = pytest.mark.usefixtures("simulations")

MARGIN = 0.01
STUDIES = 400
NEAR = 0.08
"""Three and a half standard errors of a share of that many studies, and the formulas' own error."""
UNDER = 0.16
"""By how much the formulas promise less of ten blocks, of which two are trimmed."""


def simulated(effect: float, noise: float, blocks: int) -> list[Verdict]:
    rng = np.random.default_rng([10_000 + round(effect * 1e4), round(noise * 1e5), blocks])
    log_ratios = rng.normal(np.log1p(effect), noise * np.sqrt(2), (STUDIES, blocks))
    places = [[1.0, -1.0] * (blocks // 2) + [1.0] * (blocks % 2)]
    return [paired([list(row)], MARGIN, places=places)[0] for row in log_ratios]


def share(found: list[Verdict], *kinds: Kind) -> float:
    return sum(each.kind in kinds for each in found) / len(found)


def zero_excluded(found: list[Verdict]) -> float:
    return float(np.mean([(each.p_zero or 0.0) <= 0.05 for each in found]))


@pytest.mark.parametrize("blocks", [5, 7, 10, 20])
@pytest.mark.parametrize("ratio", [1.0, 2.0])
def test_the_power_of_excluding_zero_is_that_of_simulated_studies(
    blocks: int, ratio: float
) -> None:
    noise = 0.003
    told = float(power_zero(ratio * noise, noise, np.array([blocks]))[0])
    found = zero_excluded(simulated(ratio * noise, noise, blocks))
    assert found - UNDER <= told <= found + NEAR


@pytest.mark.parametrize("blocks", [5, 7, 20])
@pytest.mark.parametrize(("effect", "noise"), [(0.015, 0.003), (0.03, 0.01), (-0.02, 0.006)])
def test_the_power_of_slower_and_faster_is_that_of_simulated_studies(
    blocks: int, effect: float, noise: float
) -> None:
    told = float(power_beyond(effect, noise, MARGIN, np.array([blocks]))[0])
    found = simulated(effect, noise, blocks)
    assert -UNDER <= told - share(found, Kind.SLOWER, Kind.FASTER) <= NEAR


@pytest.mark.parametrize("blocks", [5, 7, 20])
@pytest.mark.parametrize(("effect", "noise"), [(0.0, 0.003), (0.0, 0.006), (0.004, 0.004)])
def test_the_power_of_same_and_small_is_that_of_simulated_studies(
    blocks: int, effect: float, noise: float
) -> None:
    told = float(power_within(effect, noise, MARGIN, np.array([blocks]))[0])
    found = simulated(effect, noise, blocks)
    # Sums of two powers less one: too low where each is small.
    assert told <= share(found, Kind.SAME, Kind.SMALL) + NEAR
    if told > 0.3:
        assert told >= share(found, Kind.SAME, Kind.SMALL) - UNDER


@pytest.mark.parametrize(
    ("effect", "noise"), [(0.0, 0.008), (0.005, 0.003), (0.015, 0.004), (0.03, 0.01), (0.1, 0.03)]
)
def test_so_many_blocks_decide_four_of_five_studies(effect: float, noise: float) -> None:
    blocks = blocks_to_decide(effect, noise, MARGIN)
    assert blocks is not None
    found = simulated(effect, noise, blocks)
    assert 0.7 <= 1 - share(found, Kind.CANT_TELL) <= 0.97


def test_what_blocks_resolve_is_found_in_four_of_five_studies() -> None:
    found = resolves(0.003, MARGIN, 7)
    assert found.blocks == 7
    zero = [
        each.p_zero is not None and each.p_zero <= 0.025
        for each in simulated(found.excludes_zero, 0.003, 7)
    ]
    assert 0.8 - NEAR <= np.mean(zero) <= 0.8 + UNDER
    slower = simulated(found.beyond_margin, 0.003, 7)
    assert 0.8 - NEAR <= share(slower, Kind.SLOWER) <= 0.8 + UNDER
    assert found.same
    assert share(simulated(0.0, 0.003, 7), Kind.SAME) >= 0.8


def test_noise_that_hides_the_margin_resolves_no_sameness() -> None:
    found = resolves(0.03, MARGIN, 20)
    assert not found.same
    assert share(simulated(0.0, 0.03, 20), Kind.SAME) < 0.05


def test_an_effect_of_the_noise_needs_over_twenty_blocks_and_of_twice_the_noise_ten() -> None:
    assert resolves(0.01, MARGIN, 20).excludes_zero == pytest.approx(0.0114, rel=0.05)
    assert resolves(0.01, MARGIN, 10).excludes_zero == pytest.approx(0.019, rel=0.05)


def test_at_the_margin_itself_no_number_of_blocks_decides() -> None:
    assert blocks_to_decide(0.01, 0.003, MARGIN) is None
    assert blocks_to_decide(0.0, 0.03, MARGIN) is None


def test_a_faster_environment_needs_as_many_blocks_as_one_slower_by_the_same_ratio() -> None:
    assert blocks_to_decide(0.02, 0.01, MARGIN) == blocks_to_decide(1 / 1.02 - 1, 0.01, MARGIN)


def test_more_noise_and_more_comparisons_need_more_blocks() -> None:
    counts = [blocks_to_decide(0.02, noise, MARGIN) or 999 for noise in (0.002, 0.004, 0.008)]
    assert counts == sorted(counts)
    one, three = (blocks_to_decide(0.02, 0.006, MARGIN, comparisons) for comparisons in (1, 3))
    assert one is not None
    assert three is not None
    assert three > one


def test_without_noise_the_fewest_blocks_do() -> None:
    assert blocks_to_decide(0.02, 0.0, MARGIN) == 5
    found = resolves(0.0, MARGIN, 5)
    assert (found.same, found.beyond_margin) == (True, pytest.approx(MARGIN))


@pytest.mark.parametrize("blocks", [3, 4, 5, 6, 7, 10, 20])
@pytest.mark.parametrize("noise", [0.0, 0.01, 0.05, 1.0])
def test_three_blocks_or_more_resolve_something_at_any_noise(noise: float, blocks: int) -> None:
    found = resolves(noise, MARGIN, blocks)
    assert found.beyond_margin >= found.excludes_zero >= 0


def test_three_blocks_call_nothing_the_same() -> None:
    assert not resolves(0.0001, MARGIN, 3).same
