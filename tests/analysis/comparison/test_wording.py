"""Verdicts as sentences: what a person can quote, with nothing left out that it rests on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuwatch.analysis.comparison.verdict import invalid
from gpuwatch.analysis.comparison.wording import (
    Side,
    change_text,
    per_cent,
    same_environment,
    sentence,
    signed,
)
from gpuwatch.analysis.results import Evidence, Kind, Verdict
from gpuwatch.analysis.statistics.intervals import Interval

BARE, DOCKER = Side("bare", "bare", 7), Side("docker", "docker", 7)
FIRST, SECOND = Side("bare#1", "bare#1", 7), Side("bare#2", "bare#2", 7)


def interval(estimate: float, low: float, high: float, level: float = 0.95) -> Interval:
    """Of per cents."""
    return Interval(estimate / 100, low / 100, high / 100, level)


def verdict(kind: Kind, change: Interval | None = None, **options: object) -> Verdict:
    known = {
        "equivalence": None,
        "margin": 0.01,
        "pairs": 7,
        "paired": True,
        "noise": 0.004,
        "estimate": None if change is None else change.estimate,
    }
    return Verdict(kind, change, **{**known, **options})  # type: ignore[arg-type]


def said(found: Verdict, one: Side = BARE, two: Side = DOCKER, **options: object) -> str:
    return sentence(one, two, found, **{"metric": "step time", **options})  # type: ignore[arg-type]


def part(name: str, estimate: float, low: float, high: float) -> Evidence:
    return Evidence("host", f"{name} ...", interval(estimate, low, high), part=name)


def test_the_same() -> None:
    assert said(verdict(Kind.SAME, interval(0.2, -0.3, 0.7))) == (
        "docker costs less than 1 % here: step time +0.2 % (-0.3 to +0.7) against bare. "
        "7 paired blocks, noise 0.4 %."
    )


def test_the_same_shows_the_interval_that_is_within_the_margin() -> None:
    found = verdict(Kind.SAME, interval(0.3, -0.5, 1.1), equivalence=interval(0.3, -0.3, 0.9, 0.9))
    assert "less than 1 % here: step time +0.3 % (-0.3 to +0.9) against bare" in said(found)
    assert said(found).endswith(", 90 % interval.")


def test_an_interval_that_ends_between_the_margin_and_its_mirror_is_not_within_it() -> None:
    found = verdict(
        Kind.SAME,
        interval(-1.0, -4.9, 3.0),
        equivalence=interval(-1.0, -4.0, 2.0, 0.9),
        margin=0.05,
    )
    assert "less than 5 % here: step time -1.0 % (-4.0 to +2.0) against bare" in said(found)
    assert said(found).endswith(", 90 % interval.")
    evidence = (part("GPU kernel time", 0.2, -4.9, 3.0), part("host wait", 7.0, 6.0, 8.0))
    slower = verdict(Kind.SLOWER, interval(7.2, 6.0, 8.0), margin=0.05)
    assert "unchanged" not in said(slower, evidence=evidence)


def test_slower_with_what_goes_with_it() -> None:
    evidence = (
        part("GPU kernel time", 0.0, -0.1, 0.1),
        part("host wait", 2.9, 2.2, 3.6),
        part("copies to the GPU", 0.2, 0.1, 0.3),
        Evidence("host", "in none of kernels ...: +3.0 points", interval(3.0, 2.0, 4.0)),
        Evidence("versions", "torch 2.6 in bare, 2.7 in docker"),
    )
    assert said(verdict(Kind.SLOWER, interval(3.1, 2.4, 3.8)), evidence=evidence) == (
        "docker is slower than bare: step time +3.1 % (+2.4 to +3.8). "
        "GPU kernel time unchanged; host wait accounts for 2.9 of 3.1 points. "
        "7 paired blocks, noise 0.4 %."
    )


def test_kernel_time_that_may_have_changed_is_not_called_unchanged() -> None:
    evidence = (part("GPU kernel time", 0.5, -2.0, 3.0), part("host wait", 2.9, 2.2, 3.6))
    told = said(verdict(Kind.SLOWER, interval(3.1, 2.4, 3.8)), evidence=evidence)
    assert "+3.8). Host wait accounts for 2.9 of 3.1 points." in told


def test_a_part_that_goes_against_a_change_does_not_account_for_it() -> None:
    turned = part("the phase optimizer", 2.0, 1.8, 2.2)
    faster = verdict(Kind.FASTER, interval(-1.4, -1.7, -1.1))
    assert "phase" not in said(faster, evidence=(turned,)).casefold()
    told = said(faster, evidence=(turned, part("the phase forward", -1.9, -2.1, -1.7)))
    assert "Phase forward accounts for 1.9 of 1.4 points, phase optimizer for 2.0 against" in told


def test_two_parts_of_like_size_are_both_named_and_their_direction_told() -> None:
    evidence = (
        part("the phase forward", -2.0, -2.2, -1.8),
        part("the phase optimizer", 1.0, 0.8, 1.2),
        part("the phase copy", -0.4, -0.5, -0.3),
    )
    assert said(verdict(Kind.FASTER, interval(-1.4, -1.7, -1.1)), evidence=evidence) == (
        "docker is faster than bare: step time -1.4 % (-1.7 to -1.1). "
        "Phase forward accounts for 2.0 of 1.4 points, phase optimizer for 1.0 against it. "
        "7 paired blocks, noise 0.4 %."
    )


def test_a_level_that_holm_shares_is_said() -> None:
    found = verdict(Kind.SLOWER, interval(3.1, 2.4, 3.8, 1 - 0.05 / 3), comparisons=3)
    assert said(found) == (
        "docker is slower than bare: step time +3.1 % (+2.4 to +3.8). "
        "7 paired blocks, noise 0.4 %, 98.3 % interval (Holm, 3 tests)."
    )


def test_small() -> None:
    assert said(verdict(Kind.SMALL, interval(0.5, 0.2, 0.8), noise=0.002)) == (
        "docker and bare: a real difference, below your margin of 1 %: step time +0.5 % "
        "(+0.2 to +0.8). "
        "7 paired blocks, noise 0.2 %."
    )


def test_cant_tell_says_how_many_blocks_would_decide() -> None:
    found = verdict(Kind.CANT_TELL, interval(0.8, -0.9, 2.5), more_blocks=20)
    assert said(found) == (
        "docker: can't tell: step time +0.8 % (-0.9 to +2.5) against bare. If it really is about "
        "+0.8 %, a new study of about 20 blocks would show that it is below 1 % (in 4 of 5)."
    )


@pytest.mark.parametrize(
    ("typical", "estimates", "told"),
    [
        (Kind.CANT_TELL, (3.0, 0.5), "typical step by about +3.0 %, about 20 blocks would show it"),
        (Kind.CANT_TELL, (3.0, 4.0), "throughput by about -3.8 %, about 20 blocks would show it"),
        (Kind.SAME, (0.1, 3.0), "throughput by about -2.9 %, about 20 blocks would show it (in"),
        (
            Kind.SAME,
            (0.1, 0.5),
            "throughput by about -0.5 %, about 20 blocks would show that it is below",
        ),
        (Kind.CANT_TELL, (0.1, 3.0), "throughput by about -2.9 %, about 20 blocks would show it"),
    ],
)
def test_the_blocks_that_would_decide_are_told_of_what_is_open(
    typical: Kind, estimates: tuple[float, float], told: str
) -> None:
    first, total = (
        replace(verdict(Kind.CANT_TELL, interval(each, -9, 9), more_blocks=20), estimate=each / 100)
        for each in estimates
    )
    text = said(replace(first, typical=typical, total=total))
    assert told in text.replace("a new study of ", "").replace("really changes ", "")


def test_a_throughput_of_which_it_cannot_be_told_says_so_and_its_own_noise() -> None:
    first = verdict(Kind.SLOWER, interval(3.4, 1.8, 5.0))
    total = replace(verdict(Kind.CANT_TELL, interval(0.3, -6.5, 7.7)), noise=0.034)
    told = said(replace(first, typical=Kind.SLOWER, total=total))
    assert "steady throughput -0.3 % (-7.1 to +7.0), too uncertain to tell. " in told
    assert "noise 0.4 % (throughput 3.4 %)." in told
    alike = replace(first, typical=Kind.SLOWER, total=replace(first, noise=0.004))
    assert "noise 0.4 %." in said(alike) and "uncertain" not in said(alike)


def test_an_end_that_rounds_to_zero_is_not_zero_where_the_interval_excludes_it() -> None:
    assert change_text(Interval(0.02, 0.00002, 0.04, 0.95)) == "+2.0 % (+0.002 to +4.0)"
    assert change_text(Interval(0.02, -0.00002, 0.04, 0.95)) == "+2.0 % (+0.0 to +4.0)"


def test_cant_tell_says_why() -> None:
    found = verdict(Kind.CANT_TELL, reasons=("2 of 7 runs of docker failed", "and more"), pairs=5)
    assert said(found) == (
        "docker: can't tell against bare. 2 of 7 runs of docker failed; and more."
    )


def test_a_change_that_is_lost_in_noise_says_so_and_by_how_much() -> None:
    kind = Kind.DESCRIBED
    wide = verdict(kind, interval(63, -94, 4065), noise=1.4, pairs=3)
    told = "Very noisy: one run varies by 140 %, and the ends of the interval differ by"
    assert f"{told} a factor of 694." in said(wide)
    assert "Very noisy" not in said(verdict(kind, interval(3, -10, 20), noise=0.1, pairs=3))
    assert "Very noisy" not in said(replace(wide, kind=Kind.CANT_TELL)), "its reasons tell that"


def test_invalid_names_why_and_no_number() -> None:
    found = invalid(("different batch size: 32 against 64",), 0.01, True, 7)
    assert said(found) == (
        "docker is not comparable with bare: different batch size: 32 against 64."
    )


@pytest.mark.parametrize(
    ("pairs", "to_come", "told"),
    [
        (
            3,
            0,
            "docker: step time +3.1 % (+1.0 to +5.2) against bare. No verdict: 3 blocks, needs 5.",
        ),
        (3, 4, "docker: step time +3.1 % (+1.0 to +5.2) against bare. 3 blocks so far, 4 to come."),
        (
            1,
            0,
            "docker: step time +3.1 % (+1.0 to +5.2) against bare. No verdict: 1 block, needs 5.",
        ),
    ],
)
def test_few_blocks_give_no_verdict(pairs: int, to_come: int, told: str) -> None:
    found = verdict(Kind.DESCRIBED, interval(3.1, 1.0, 5.2), pairs=pairs)
    assert said(found, blocks_to_come=to_come) == told


@pytest.mark.parametrize(
    ("kind", "goes_on", "told"),
    [
        (Kind.SLOWER, True, "7 paired blocks so far, 3 to come, noise 0.4 %."),
        (Kind.CANT_TELL, True, "7 blocks so far, 3 to come."),
        (Kind.CANT_TELL, False, "7 blocks, 3 never ran."),
    ],
)
def test_a_verdict_before_the_studys_end_says_so(kind: Kind, goes_on: bool, told: str) -> None:
    found = verdict(kind, interval(3.1, -2.4, 8.8))
    assert said(found, blocks_to_come=3, goes_on=goes_on).endswith(f" {told}")


def test_one_run_each_gives_no_verdict() -> None:
    found = verdict(Kind.DESCRIBED, estimate=0.031, pairs=1, paired=False, noise=None)
    assert said(found, replace(BARE, runs=1), replace(DOCKER, runs=1)) == (
        "docker: step time +3.1 % against bare. No verdict: 1 run of each, needs 5."
    )


def test_nothing_yet_to_compare_with() -> None:
    found = verdict(Kind.DESCRIBED, pairs=0, noise=None)
    assert said(found) == "docker: there is nothing to compare with bare yet."


def test_runs_that_no_block_pairs_say_so() -> None:
    found = verdict(Kind.SLOWER, interval(3.1, 2.4, 3.8), pairs=5, paired=False)
    assert said(found, two=replace(DOCKER, runs=5)) == (
        "docker is slower than bare: step time +3.1 % (+2.4 to +3.8). "
        "Noise 0.4 %. 5 runs against 7, not paired, so that drift between them is in the "
        "difference."
    )


def test_whole_runs_say_so() -> None:
    found = verdict(Kind.SAME, interval(0.2, -0.3, 0.7))
    assert said(found, metric="whole run").endswith(" Start-up included.")


def test_an_environment_against_itself() -> None:
    assert said(verdict(Kind.SAME, interval(0.1, -0.3, 0.5)), FIRST, SECOND) == (
        "bare#2 and bare#1, two of the same: no difference of 1 % or more: "
        "step time +0.1 % (-0.3 to +0.5). 7 paired blocks, noise 0.4 %."
    )
    assert "They are the same: chance, or runs that disturb each other." in said(
        verdict(Kind.SLOWER, interval(3.1, 2.4, 3.8)), FIRST, SECOND
    )


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("bare#1", "bare#2", True),
        ("bare", "bare", False),
        ("bare#1", "docker#2", False),
        ("bare", "bare#2", False),
        ("bare#1", "bare#1", False),
    ],
)
def test_only_numbered_labels_of_one_environment_are_the_same(
    one: str, other: str, same: bool
) -> None:
    assert same_environment(one, other) is same


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (interval(3.14, 2.41, 3.83), "+3.1 % (+2.4 to +3.8)"),
        (interval(0.02, -0.05, 0.08), "+0.02 % (-0.05 to +0.08)"),
        (interval(-0.04, -0.9, 0.82), "+0.0 % (-0.9 to +0.8)"),
        (interval(120.0, 40.0, 246.0), "+120 % (+40 to +246)"),
        (interval(12.04, 12.0, 12.1), "+12.0 % (+12.0 to +12.1)"),
    ],
)
def test_a_change_has_as_many_decimals_as_its_interval_asks_for(
    change: Interval, text: str
) -> None:
    assert change_text(change) == text


def test_signs_are_always_shown_in_ascii() -> None:
    assert (signed(0.031), signed(-0.031), signed(-0.0001)) == ("+3.1", "-3.1", "+0.0")
    assert (per_cent(0.01), per_cent(0.005)) == ("1 %", "0.5 %")
