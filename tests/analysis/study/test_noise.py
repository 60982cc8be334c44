"""The noise floor: what one environment against itself says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gpuwatch.analysis.comparison.verdict import invalid, paired, unpaired
from gpuwatch.analysis.results import Contrast, Explanation, NoiseFloor, Verdict
from gpuwatch.analysis.statistics.power import resolves
from gpuwatch.analysis.study.overall import noise_floor

MARGIN = 0.01
QUIET = [0.004, -0.004, 0.002, -0.002, 0.001, -0.001, 0.0]
"""Log-ratios of seven blocks: their variance is 42e-6 / 6, so one run's is half of it."""


def contrast(verdict: Verdict) -> Contrast:
    return Contrast(0, 1, verdict, (), Explanation((), (), (), None), "")


def floor(log_ratios: list[float], margin: float = MARGIN) -> NoiseFloor:
    (verdict,) = paired([log_ratios], margin)
    found = noise_floor("mnist-cnn in bare", "B against A", contrast(verdict), margin)
    assert found is not None
    return found


def test_the_noise_of_one_run_is_that_of_a_difference_over_the_root_of_two() -> None:
    found = floor(QUIET[:5])
    assert found.noise == pytest.approx(np.std(QUIET[:5], ddof=1) / math.sqrt(2))
    assert found.change.low < 0 < found.change.high


def test_the_noise_has_an_interval_of_its_own() -> None:
    found = floor(QUIET)
    # Chi-square of 5 degrees of freedom: 12.8325 at 97.5 %, 0.83121 at 2.5 %.
    assert found.noise_low == pytest.approx(found.noise * math.sqrt(5 / 12.8325), rel=1e-4)
    assert found.noise_high == pytest.approx(found.noise * math.sqrt(5 / 0.83121), rel=1e-4)


def test_the_interval_of_the_noise_holds_the_true_one_nineteen_times_in_twenty() -> None:
    draws = np.random.default_rng(5).normal(0, 0.01 * math.sqrt(2), (400, 5))
    found = [floor(list(each)) for each in draws]
    held = [(f.noise_low or 1) <= 0.01 <= (f.noise_high or 0) for f in found]
    assert 0.92 < np.mean(held) < 0.98


def test_a_change_that_no_environment_makes_is_not_put_in_figures() -> None:
    found = floor([each * 250 for each in QUIET])
    assert found.resolves[2].excludes_zero > 1
    assert found.sentence.endswith(
        "That is too much noise to compare anything here: 10 blocks find no change under 100 %."
    )


def test_it_says_what_five_to_twenty_blocks_can_tell() -> None:
    found = floor(QUIET)
    assert [each.blocks for each in found.resolves] == [5, 7, 10, 20]
    assert found.resolves[2] == resolves(found.noise, MARGIN, 10)
    usual = found.resolves[2]
    assert found.sentence == (
        "B against A: one run varies by 0.2 % (0.1 to 0.5 % by 7 blocks; drift taken out). "
        f"10 blocks find a change of {usual.excludes_zero * 100:.1f} % or more, and call it SLOWER "
        f"from {usual.beyond_margin * 100:.1f} % on (in 4 of 5 studies); SAME needs 5 blocks."
    )


def test_the_number_of_blocks_that_same_takes_is_the_first_that_reaches_it() -> None:
    found = floor([each * 2.6 for each in QUIET])
    first = next(each.blocks for each in found.resolves if each.same)
    assert first > 5
    assert f"SAME needs {first} blocks." in found.sentence


def test_a_machine_too_noisy_for_the_margin_is_told_so() -> None:
    found = floor([each * 10 for each in QUIET])
    assert "SAME takes more than 20 blocks." in found.sentence


def test_a_difference_where_there_is_none_is_said_plainly() -> None:
    found = floor([each + 0.02 for each in QUIET])
    assert found.change.low > 0
    assert "Here the second looked 2.0 % slower (1.8 to 2.3 %), though the two are the same" in (
        found.sentence
    )
    assert "5 in 100 do so by chance" in found.sentence
    assert "the runs disturb each other" in found.sentence


def test_a_faster_second_is_called_faster() -> None:
    assert "looked 2.0 % faster (1.7 to 2.2 %)" in floor([e - 0.02 for e in QUIET]).sentence


def test_three_blocks_give_a_rough_figure() -> None:
    assert "3 blocks are few: the figure is rough." in floor(QUIET[:3]).sentence


def test_runs_without_blocks_keep_their_drift() -> None:
    (verdict,) = unpaired(QUIET, [QUIET[::-1]], MARGIN)
    found = noise_floor("x", "B against A", contrast(verdict), MARGIN)
    assert found is not None
    assert "% by 7 runs of each; drift included, as the runs share no blocks)" in found.sentence


@pytest.mark.parametrize(
    "verdict", [invalid(["not the same GPU"], MARGIN, True, 7), paired([[0.001]], MARGIN)[0]]
)
def test_without_a_spread_there_is_no_noise_floor(verdict: Verdict) -> None:
    assert noise_floor("x", "B against A", contrast(verdict), MARGIN) is None
