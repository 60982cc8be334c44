"""Intervals as rows of characters."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.analysis.results import Kind, Verdict
from gpuwatch.analysis.statistics.intervals import Interval
from gpuwatch.analysis.study.interval_plot import factors, rows


def verdict(
    estimate: float | None, low: float = 0.0, high: float = 0.0, *, margin: float = 0.01
) -> Verdict:
    change = None if estimate is None else Interval(estimate, low, high, 0.95)
    kind = Kind.INVALID if estimate is None else Kind.CANT_TELL
    return Verdict(kind, change, None, margin, 7, True, 0.004)


def test_zero_margin_estimate_and_interval_stand_on_one_axis() -> None:
    drawn = rows(
        [("docker", verdict(0.0, -0.005, 0.005)), ("sif", verdict(0.02, 0.015, 0.025))], 70
    )
    docker, sif, scale = drawn
    zero, low, high = sif.index("|"), sif.index(":"), sif.rindex(":")
    assert docker.index("*") == zero
    assert low < docker.index("[") < zero < docker.index("]") < high < sif.index("[")
    assert abs((high - zero) - (zero - low)) <= 1, "the margin is as wide on both sides"
    assert abs(sif.index("*") - zero - 2 * (high - zero)) <= 1, "twice the margin is twice as far"
    assert docker.endswith("+0.0 % (-0.5 to +0.5)")
    assert scale[zero] == "0" and "-1 %" in scale and "+1 %" in scale


def test_the_margin_below_is_the_mirror_of_the_one_above() -> None:
    (drawn, scale) = rows([("x", verdict(0.0, -0.2, 0.25, margin=1.0))], 90)
    zero, low, high = drawn.index("*"), drawn.index(":"), drawn.rindex(":")
    assert abs((high - zero) - 2 * (zero - low)) <= 2, "half as long below, twice as long above"
    assert "-50 %" in scale and "+100 %" in scale


def test_a_mark_inside_an_interval_is_seen_through_it() -> None:
    (drawn, _) = rows([("x", verdict(0.004, -0.02, 0.03))], 90)
    inside = drawn[drawn.index("[") : drawn.index("]")]
    assert inside.count(":") == 2 and inside.count("|") == 1 and inside.count("*") == 1


def test_a_wide_interval_stands_on_an_axis_of_factors() -> None:
    (drawn, scale) = rows([("x", verdict(1.73, -0.92, 88.8))], 80)
    zero, low, high = drawn.index("|"), drawn.index("["), drawn.index("]")
    assert zero - low > 10, "what is faster has room, too"
    assert abs((zero - low) / (high - low) - math.log(12.5) / math.log(89.8 * 12.5)) < 0.05
    assert scale.split() == ["/10", "1", "x10", "x100"] and scale[zero] == "1"
    (_, scale) = rows([("x", verdict(0.5, -0.5, 6.0))], 80)
    assert {"/2", "1", "x2", "x5"} <= set(scale.split()) and "%" not in scale
    assert "%" in rows([("x", verdict(0.5, -0.5, 3.9))], 80)[1]


def test_large_factors_have_short_names() -> None:
    one, *others = factors(math.log(1e-299), math.log(1e299)).values()
    assert one == "1" and all(re.fullmatch(r"[x/]1e\d+", each) for each in others)
    assert list(factors(0, math.log(6e5)).values())[-2:] == ["x10,000", "x100,000"]
    assert list(factors(math.log(9e5), math.log(6e6)).values()) == ["x1e6", "x2e6", "x5e6"]


def test_what_has_no_estimate_has_its_word() -> None:
    drawn = rows([("a", verdict(0.01, 0.0, 0.02)), ("b", verdict(None))], 70)
    assert "invalid" in drawn[1] and "*" not in drawn[1]
    assert rows([("b", verdict(None))], 70) == [] and rows([], 70) == []


def test_an_estimate_without_an_interval_is_a_star_alone() -> None:
    one = Verdict(Kind.DESCRIBED, None, None, 0.01, 1, False, None, estimate=0.03)
    (drawn, _) = rows([("a", one)], 70)
    assert "*" in drawn and "[" not in drawn and drawn.endswith("+3.0 %")


@pytest.mark.parametrize("width", [80, 60, 40])
def test_numbers_beside_the_axis_give_way_before_the_axis_does(width: int) -> None:
    (drawn, scale) = rows([("a name that is rather long", verdict(0.03, 0.02, 0.04))], width)
    assert ("to" in drawn.split("]")[1]) == (width >= 80)
    assert {"|", ":", "*"} <= set(drawn) and "0" in scale


def test_there_is_no_axis_without_room_for_one() -> None:
    assert rows([("a", verdict(0.03, 0.02, 0.04))], 20) == []


def test_names_from_outside_are_harmless() -> None:
    drawn = rows([("a\x1b[31m\u202e\nb", verdict(0.03, 0.02, 0.04))], 80)
    assert drawn[0].startswith("a b  ") and all(row.isprintable() for row in drawn)


@given(
    st.lists(
        st.tuples(
            st.text(max_size=40),
            st.none() | st.lists(st.floats(), min_size=3, max_size=3).map(sorted),
            st.floats(1e-6, 1.0),
        ),
        max_size=4,
    ),
    st.integers(0, 200),
)
def test_no_row_is_wider_than_asked_for(
    contrasts: list[tuple[str, list[float] | None, float]], width: int
) -> None:
    made = [
        (name, verdict(None if ends is None else ends[1], *(ends or [0, 0, 0])[::2], margin=margin))
        for name, ends, margin in contrasts
    ]
    drawn = rows(made, width)
    assert len(drawn) in (0, len(made) + 1)
    assert all(len(row) <= width for row in drawn)
