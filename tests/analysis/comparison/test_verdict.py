"""Verdicts agree with scipy and with published examples, and with themselves."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from gpuwatch.analysis.comparison.verdict import invalid, outliers, paired, unpaired
from gpuwatch.analysis.results import Kind, Verdict
from gpuwatch.analysis.statistics.intervals import (
    difference,
    holm_adjusted,
    holm_levels,
    interval,
    mean_of,
    welch,
)

MARGIN = 0.01
MIRRORED = {Kind.SLOWER: Kind.FASTER, Kind.FASTER: Kind.SLOWER}

# Student (1908): hours of sleep gained by ten patients with two drugs; R's data set ``sleep``.
DRUG_1 = np.array([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0])
DRUG_2 = np.array([1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4])
QUIET = [0.001, -0.001, 0.002, -0.002, 0.0005, -0.0004, 0.0001]


def one(log_ratios: Sequence[float], margin: float = MARGIN) -> Verdict:
    return paired([log_ratios], margin)[0]


def shifted(change: float, by: Sequence[float] = QUIET) -> list[float]:
    """Log-ratios about a relative change."""
    return [math.log1p(change) + each for each in by]


def test_under_ten_values_it_is_students_t() -> None:
    # R: t.test(c(0.7, -1.6, -0.2, -1.2, -0.1, 3.4)) gives t = 0.22, df = 5, p = 0.8346.
    mean = mean_of(DRUG_1[:6])
    assert mean is not None
    assert mean.p_zero() == pytest.approx(stats.ttest_1samp(DRUG_1[:6], 0).pvalue)
    assert mean.freedom == 5


def test_of_ten_hours_of_sleep_the_shortest_and_the_longest_are_trimmed() -> None:
    # Tukey and McLaughlin, as scipy computes it.
    found = difference(list(DRUG_1 - DRUG_2))
    assert found is not None
    expected = stats.mstats.trimmed_mean_ci(DRUG_1 - DRUG_2, (0.1, 0.1), alpha=0.05)
    assert (found.low, found.high) == pytest.approx(tuple(float(end) for end in expected))


def test_two_groups_are_told_apart_as_scipys_yuen_does() -> None:
    mean = welch(DRUG_2, DRUG_1)
    test = stats.ttest_ind(DRUG_1, DRUG_2, equal_var=False, trim=0.1)
    assert mean is not None
    assert mean.freedom == pytest.approx(test.df)
    assert mean.p_zero() == pytest.approx(test.pvalue)


def test_two_small_groups_give_rs_welch_and_equivalence_tests() -> None:
    first, second = DRUG_2[:6], DRUG_1[:6]
    mean = welch(first, second)
    assert mean is not None
    test = stats.ttest_ind(second, first, equal_var=False)
    assert mean.p_zero() == pytest.approx(test.pvalue)
    one_sided = stats.ttest_ind(second + 1.0, first, equal_var=False, alternative="greater")
    assert mean.p_within(1.0) == pytest.approx(one_sided.pvalue)


def test_the_effect_of_the_place_is_the_median_slope() -> None:
    # Worked by hand: 13.5, 14.5, 15, 16, 16 and 17.5 thousandths, so 15.5.
    places = np.array([1.0, -1.0, 1.0, 1.0, -1.0])
    values = np.array([0.021, -0.008, 0.024, 0.019, -0.011])
    mean = mean_of(values, places)
    left = values - 0.0155 * places
    assert mean is not None
    assert mean.value == pytest.approx(left.mean())
    error = left.std(ddof=1) / math.sqrt(5) * math.sqrt(4 / 3 * (1 + 0.04 / 0.96))
    assert mean.error == pytest.approx(error)
    assert mean.freedom == 3


def test_an_effect_of_the_place_hides_no_difference() -> None:
    places = [1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0]
    values = [each + 0.02 * place for each, place in zip(shifted(0.02), places, strict=True)]
    assert one(values).kind is Kind.CANT_TELL
    assert paired([values], MARGIN, places=[places])[0].kind is Kind.SLOWER


@pytest.mark.parametrize("outlier", [0.3, -0.3])
def test_one_outlying_run_in_ten_blocks_hides_no_difference(outlier: float) -> None:
    values = shifted(0.03, [*QUIET, 0.0006, -0.0007, 0.0003])
    values[3] += outlier
    assert one(values).kind is Kind.SLOWER


def test_holm_rejects_the_two_smallest_of_four_and_stops() -> None:
    # Worked by hand: 0.005 <= 0.05/4, 0.01 <= 0.05/3, 0.03 > 0.05/2; R's p.adjust(, "holm").
    p_values = [0.01, 0.04, 0.03, 0.005]
    levels = holm_levels(p_values)
    assert levels == pytest.approx([0.05 / 3, 0.05 / 2, 0.05 / 2, 0.05 / 4])
    assert [p <= level for p, level in zip(p_values, levels, strict=True)] == [
        True,
        False,
        False,
        True,
    ]
    assert holm_adjusted(p_values) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_a_p_value_is_within_its_level_exactly_where_holm_rejects_it(p_values: list[float]) -> None:
    levels, adjusted = holm_levels(p_values), holm_adjusted(p_values)
    for p, level, by_adjusting in zip(p_values, levels, adjusted, strict=True):
        if abs(p - level) > 1e-12 and abs(by_adjusting - 0.05) > 1e-12:
            assert (p <= level) == (by_adjusting <= 0.05)


@pytest.mark.parametrize("count", [5, 6, 7, 12, 20, 60])
def test_a_paired_comparison_is_scipys(count: int) -> None:
    values = np.random.default_rng(count).normal(0.004, 0.01, count)
    found = one(list(values))
    cut = count // 10 / count + 1e-9
    expected = stats.mstats.trimmed_mean_ci(values, (cut, cut), alpha=0.05)
    assert found.change is not None
    assert (found.change.low, found.change.high) == pytest.approx(np.expm1(np.array(expected)))


@pytest.mark.parametrize(("first", "second"), [(5, 5), (10, 10), (6, 20)])
def test_an_unpaired_comparison_is_scipys(first: int, second: int) -> None:
    rng = np.random.default_rng(first * second)
    baseline, other = rng.normal(0, 0.01, first), rng.normal(0.004, 0.02, second)
    (found,) = unpaired(list(baseline), [list(other)], MARGIN)
    test = stats.ttest_ind(other, baseline, equal_var=False, trim=0.1 + 1e-9)
    assert found.p_zero == pytest.approx(test.pvalue)
    assert found.change is not None
    expected = np.expm1(test.confidence_interval(0.95))
    assert (found.change.low, found.change.high) == pytest.approx(list(expected))
    assert (found.pairs, found.paired) == (min(first, second), False)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (0.0, Kind.SAME),
        (0.004, Kind.SMALL),
        (-0.004, Kind.SMALL),
        (0.03, Kind.SLOWER),
        (-0.03, Kind.FASTER),
        (0.01, Kind.CANT_TELL),
    ],
)
def test_quiet_runs_are_told_apart(change: float, kind: Kind) -> None:
    found = one(shifted(change))
    assert found.kind is kind
    assert found.change is not None
    assert found.change.estimate == pytest.approx(change, abs=1e-3)
    assert found.estimate == found.change.estimate
    assert bool(found.reasons) == (kind is Kind.CANT_TELL)


def test_a_difference_about_as_large_as_the_margin_names_why_it_cannot_be_told() -> None:
    found = one(shifted(0.01))
    assert found.more_blocks is None
    assert found.reasons == (
        "there is a difference, but it may be less than 1 %",
        "no reasonable number of blocks (200 or fewer) would decide it",
    )


def test_a_difference_that_more_blocks_would_show_says_how_many() -> None:
    found = one(shifted(0.013, [4 * each for each in QUIET]))
    assert found.kind is Kind.CANT_TELL
    assert found.more_blocks is not None
    assert 7 < found.more_blocks <= 200


def test_noise_over_twice_the_margin_is_never_the_same() -> None:
    noisy = [25 * each for each in QUIET] * 30
    found = one(noisy)
    assert found.equivalence is not None
    assert -MARGIN < found.equivalence.low < found.equivalence.high < MARGIN
    assert found.kind is Kind.CANT_TELL
    assert found.more_blocks is None
    (reason,) = found.reasons
    assert reason.startswith("runs vary by 2.")
    assert reason.endswith(", too much for a 1 % question")


def test_a_large_difference_is_seen_through_noise() -> None:
    found = one(shifted(0.2, [20 * each for each in QUIET]))
    assert found.kind is Kind.SLOWER


FIVE_NOISY = [25 * each for each in (0.001, -0.001, 0.002, -0.002, 0.0005)]


def test_noise_asks_for_an_interval_beyond_half_of_it() -> None:
    found = one(shifted(0.062, FIVE_NOISY))
    assert found.change is not None and found.noise is not None
    assert MARGIN < found.change.low < found.noise / 2
    assert found.kind is Kind.CANT_TELL
    (reason,) = found.reasons
    assert found.p_beyond is not None and found.p_zero is not None
    assert 0.01 < found.p_zero < found.p_beyond < 0.05
    assert reason == (
        "its interval is beyond 1 %, but as runs vary by 2.8 % it must be beyond 1.4 %, "
        f"or p at most 0.01 (p {found.p_beyond:.2g})"
    )
    surer = one(shifted(0.066, FIVE_NOISY))
    assert surer.change is not None and surer.change.low > found.noise / 2
    assert surer.kind is Kind.SLOWER


@pytest.mark.parametrize("change", [0.062, 0.066, 0.08, 0.2, -0.08])
def test_what_is_beyond_a_margin_is_beyond_each_smaller_one(change: float) -> None:
    kinds = [one(shifted(change, FIVE_NOISY), margin / 1000).kind for margin in range(1, 100)]
    assert kinds == sorted(kinds, key=lambda kind: kind not in (Kind.SLOWER, Kind.FASTER))


def both(typical: Sequence[float], total: Sequence[float]) -> Verdict:
    return paired([typical], MARGIN, totals=[total])[0]


@pytest.mark.parametrize(
    ("typical", "total", "kind", "by_total"),
    [
        (0.0, 0.0, Kind.SAME, False),
        (0.0, 0.004, Kind.SMALL, False),
        (0.0, 0.2, Kind.SLOWER, True),
        (0.0, -0.2, Kind.FASTER, True),
        (0.03, 0.03, Kind.SLOWER, False),
        (0.03, 0.0, Kind.SMALL, True),
        (-0.03, 0.03, Kind.SLOWER, True),
        (0.0, 0.01, Kind.CANT_TELL, False),
    ],
)
def test_both_values_are_judged(typical: float, total: float, kind: Kind, by_total: bool) -> None:
    found = both(shifted(typical), shifted(total))
    assert (found.kind, found.by_total) == (kind, by_total)
    assert found.total is not None and found.total.change is not None
    assert found.total.change.estimate == pytest.approx(total, abs=1e-3)
    assert found.leading is (found.total if by_total else found)


def test_two_values_share_the_error_of_a_difference_and_not_of_sameness() -> None:
    found = both(shifted(0.0), shifted(0.0001))
    assert found.change is not None and found.equivalence is not None
    assert found.change.level == pytest.approx(0.975)
    assert found.equivalence.level == pytest.approx(0.90)


def test_what_of_the_throughput_cannot_be_told_is_named() -> None:
    found = both(shifted(0.0), shifted(0.01))
    assert found.reasons[0].startswith("throughput: there is a difference")


def test_the_blocks_are_those_of_the_value_that_needs_fewer_to_be_beyond_the_margin() -> None:
    noisy = [80 * each for each in QUIET]
    found, alone = both(shifted(0.05, noisy), shifted(0.08, noisy)), shifted(0.0, noisy)
    assert found.total is not None and found.kind is Kind.CANT_TELL
    assert found.more_blocks == found.total.more_blocks
    assert found.more_blocks is not None
    turned = both(shifted(0.08, noisy), shifted(0.05, noisy))
    assert turned.total is not None and turned.total.more_blocks is not None
    assert turned.more_blocks == found.more_blocks < turned.total.more_blocks
    within = both(alone, shifted(0.08, noisy))
    assert within.more_blocks == found.more_blocks, "of the other no number would do"


def test_the_noise_of_both_values_is_one_reason() -> None:
    found = both(shifted(0.0, [40 * e for e in QUIET]), shifted(0.0, [80 * e for e in QUIET]))
    (reason,) = found.reasons
    assert reason.count("too much for a 1 % question") == 1
    assert re.match(r"runs vary by [\d.]+ % \(throughput by [\d.]+ %\), too", reason)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4])
def test_fewer_than_five_pairs_are_described(count: int) -> None:
    found = one(shifted(0.03, QUIET[:count]))
    assert (found.kind, found.pairs) == (Kind.DESCRIBED, count)
    assert (found.change is None) == (count < 3), "an interval of two spans everything"
    assert (found.estimate is None) == (count == 0)
    assert (found.p_zero, found.equivalence) == (None, None)
    assert found.reasons == (f"a verdict needs 5 pairs; there are {count}",)


def test_fewer_than_five_runs_of_one_side_are_described() -> None:
    (found,) = unpaired([0.0, 0.001, 0.002, 0.003, 0.004, 0.005], [[0.03, 0.031, 0.029]], MARGIN)
    assert (found.kind, found.pairs) == (Kind.DESCRIBED, 3)
    assert found.change is not None


@pytest.mark.parametrize("value", [0.0, 0.05])
def test_runs_that_are_all_equal_claim_no_certainty(value: float) -> None:
    found = one([value] * 7)
    assert (found.kind, found.change, found.p_zero) == (Kind.CANT_TELL, None, None)
    assert found.estimate == pytest.approx(math.expm1(value))
    assert "exactly the same ratio" in found.reasons[0]
    (apart,) = unpaired([1.0] * 7, [[1.0 + value] * 7], MARGIN)
    assert (apart.kind, apart.change) == (Kind.CANT_TELL, None)


def test_several_comparisons_share_the_error() -> None:
    alone = one(shifted(0.0015))
    first, second, third = paired([shifted(0.0015), shifted(0.0), shifted(0.0001)], MARGIN)
    assert (alone.kind, first.kind) == (Kind.SMALL, Kind.SAME)
    assert {each.comparisons for each in (first, second, third)} == {3}
    assert first.change is not None
    assert alone.change is not None
    assert first.change.level == pytest.approx(1 - 0.05 / 3)
    assert first.equivalence is not None
    assert first.equivalence.level == pytest.approx(0.90), "the others pass at stricter levels"
    assert first.change.low < 0 < alone.change.low


def test_what_cannot_be_judged_takes_no_share_of_the_error() -> None:
    judged, few, equal = paired([shifted(0.0015), [0.01, 0.02], [0.01] * 7], MARGIN)
    assert judged == one(shifted(0.0015))
    assert (few.kind, equal.kind) == (Kind.DESCRIBED, Kind.CANT_TELL)


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_never_enters(wrong: float) -> None:
    values = [0.0, 0.1, 0.2, wrong, 0.1]
    for function in (one, interval, difference, outliers):
        with pytest.raises(ValueError, match="finite"):
            function(values)
    with pytest.raises(ValueError, match="finite"):
        unpaired(values, [[0.0] * 5], MARGIN)


@pytest.mark.parametrize("size", [50.0, 1e5])
def test_absurd_ratios_stay_numbers(size: float) -> None:
    found = one([size, -size, size / 2, -size / 3, size / 5, 0.0])
    assert found.kind is Kind.CANT_TELL
    assert found.change is not None
    assert -1 < found.change.low < found.change.high < math.inf
    assert one([-size, -size + 1, -size - 1, -size, -size]).kind is Kind.FASTER


@pytest.mark.parametrize("margin", [0.0, -0.01, math.nan, math.inf])
def test_a_margin_is_above_zero(margin: float) -> None:
    with pytest.raises(ValueError, match="margin"):
        one(QUIET, margin)


def test_an_invalid_comparison_has_reasons_and_no_figures() -> None:
    found = invalid(["different GPUs: A and B"], MARGIN, paired=True, pairs=7)
    assert (found.kind, found.reasons) == (Kind.INVALID, ("different GPUs: A and B",))
    assert (found.change, found.estimate, found.p_zero) == (None, None, None)


def test_an_outlier_is_ten_scaled_deviations_away() -> None:
    assert outliers([5.0, 5.1, 4.9, 5.05, 9.0]) == (False, False, False, False, True)
    assert not any(outliers([5.0, 5.1, 4.9, 5.05, 5.5]))


def test_values_that_a_clock_cannot_tell_apart_are_no_outliers() -> None:
    assert not any(outliers([5.0, 5.0, 5.0, 5.0, 5.00004]))
    assert outliers([5.0, 5.0, 5.0, 5.0, 5.1]) == (False, False, False, False, True)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 100.0]])
def test_two_values_have_no_outlier(values: list[float]) -> None:
    assert outliers(values) == (False,) * len(values)


def test_under_three_values_there_is_no_interval() -> None:
    assert interval([]) is interval([0.1]) is interval([0.1, 0.2]) is None
    assert difference([0.1]) is difference([0.1, 0.2]) is None


MANY = settings(max_examples=60)
whole = st.integers(-3000, 3000).map(lambda value: value / 1e5)
several = st.integers(5, 9).flatmap(
    lambda count: st.lists(st.lists(whole, min_size=count, max_size=count), min_size=1, max_size=3)
)


def figures(verdict: Verdict) -> list[float]:
    """All numbers of a verdict that do not depend on the sign of the change."""
    known = (verdict.noise, verdict.p_zero)
    return [verdict.pairs, verdict.comparisons, *(-1.0 if each is None else each for each in known)]


def ends(verdict: Verdict) -> list[float]:
    """Ends of the intervals as log-ratios."""
    both = (verdict.change, verdict.equivalence)
    return [math.log1p(end) for each in both if each for end in (each.low, each.high)]


@MANY
@given(several, st.randoms(use_true_random=False))
def test_the_order_of_the_blocks_makes_no_difference(
    log_ratios: list[list[float]], random: object
) -> None:
    order = list(range(len(log_ratios[0])))
    random.shuffle(order)  # type: ignore[attr-defined]
    before = paired(log_ratios, MARGIN)
    after = paired([[values[place] for place in order] for values in log_ratios], MARGIN)
    for one_, other in zip(before, after, strict=True):
        assert one_.kind is other.kind
        assert figures(one_) == pytest.approx(figures(other))
        assert ends(one_) == pytest.approx(ends(other))


@MANY
@given(several)
def test_swapping_the_baseline_inverts_the_ratio(log_ratios: list[list[float]]) -> None:
    for one_, other in zip(
        paired(log_ratios, MARGIN),
        paired([[-value for value in values] for values in log_ratios], MARGIN),
        strict=True,
    ):
        assert other.kind is MIRRORED.get(one_.kind, one_.kind)
        assert figures(one_) == pytest.approx(figures(other))
        assert sorted(ends(one_)) == pytest.approx(sorted(-end for end in ends(other)))
        assert one_.more_blocks == other.more_blocks
        assert one_.reasons == other.reasons


@MANY
@given(st.lists(whole, min_size=5, max_size=8), st.lists(whole, min_size=5, max_size=8))
def test_swapping_two_unpaired_sides_inverts_the_ratio(
    baseline: list[float], other: list[float]
) -> None:
    (there,), (back,) = (unpaired(baseline, [other], MARGIN), unpaired(other, [baseline], MARGIN))
    assert back.kind is MIRRORED.get(there.kind, there.kind)
    assert figures(there) == pytest.approx(figures(back))
    assert sorted(ends(there)) == pytest.approx(sorted(-end for end in ends(back)))


@MANY
@given(st.lists(st.tuples(whole, whole), min_size=5, max_size=9), st.floats(1e-3, 1e3))
def test_scaling_both_sides_makes_no_difference(
    logs: list[tuple[float, float]], factor: float
) -> None:
    times = [(math.exp(a), math.exp(b)) for a, b in logs]
    plain = one([math.log(b / a) for a, b in times])
    scaled = one([math.log((b * factor) / (a * factor)) for a, b in times])
    assert plain.kind is scaled.kind
    assert ends(plain) == pytest.approx(ends(scaled), abs=1e-9)
