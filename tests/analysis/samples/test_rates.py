"""Counted work becomes a rate without gaining or losing any."""

from __future__ import annotations

from array import array
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.analysis.samples.rates import (
    count_of_mean,
    duration,
    flop_of,
    intervals,
    mean_rate,
    rate_series,
    samples_of,
)
from gpuwatch.analysis.samples.window import timed_window
from gpuwatch.session.rows import StepBucket, StepRow

SECOND = 1_000_000_000


def step(
    n: int,
    end: float,
    seconds: tuple[float, ...] | None,
    *,
    samples: float | None = 64.0,
    warmup: bool = False,
    count: int | None = None,
) -> StepRow:
    return StepRow(
        n=n,
        t=int(end * SECOND),
        step=n,
        count=count or (len(seconds) if seconds else 1),
        warmup=warmup,
        samples=samples,
        seconds=seconds,
        loss=None,
        acc1=None,
        acc5=None,
        phases={},
        partial=(),
        flop=None,
        bytes=None,
    )


def test_steady_steps_give_a_steady_rate_whatever_the_ticks() -> None:
    steps = [step(n, n * 0.1, (0.1,)) for n in range(1, 101)]
    edges = [int(t * SECOND) for t in (1.0, 1.37, 2.0, 2.93, 5.0)]
    assert rate_series(steps, samples_of, edges) == pytest.approx([640.0] * 4)


def test_a_rate_that_no_number_can_hold_is_unknown() -> None:
    steps = [step(n, n * 0.1, (0.1,)) for n in (1, 2)]
    work = flop_of({"flop_per_step": 1e26, "samples": 5e-324})
    assert rate_series(steps, work, [0, SECOND]) == [None]
    assert mean_rate(steps, work, told=True) is None


def test_what_no_step_reaches_is_unknown_not_zero() -> None:
    steps = [step(1, 1.0, (0.5,)), step(2, 5.0, (0.5,))]
    edges = [0, SECOND // 2, SECOND, 3 * SECOND, 4 * SECOND, 5 * SECOND]
    rates = rate_series(steps, samples_of, edges)
    assert rates == [None, pytest.approx(128), None, None, pytest.approx(64)]


def test_evaluations_are_in_no_rate_of_the_training() -> None:
    before, after = step(1, 1.0, (0.5,)), step(2, 5.0, (0.5,))
    lines = [before, replace(after, evaluation=3.0)]
    assert duration(lines, None, told=True) == pytest.approx(1.5), "with 0.5 s between them"
    assert duration([lines[1]], before, told=True) == pytest.approx(0.5)
    assert mean_rate(lines, samples_of, told=True) == pytest.approx(128 / 1.5)
    edges = [SECOND // 2, 3 * SECOND, 5 * SECOND]
    assert rate_series(lines, samples_of, edges) == pytest.approx([64 / 1.0, 64 / 0.5])


def test_time_between_the_steps_of_a_bucket_counts_as_between_lines() -> None:
    lines = [step(n, n * 1.0, (0.5,)) for n in range(1, 21)]
    times = array("d", (0.5,) * 10)
    buckets = [
        StepBucket(
            *(10 * at * SECOND, (10 * at - 10) * SECOND + SECOND // 2, 10 * at, 10, False, 0),
            *(640.0, 5.0, times, None, {}, None, None),
        )
        for at in (1, 2)
    ]
    assert mean_rate(lines, samples_of, told=True) == pytest.approx(20 * 64 / 19.5)
    assert mean_rate(buckets, samples_of, told=True) == pytest.approx(20 * 64 / 19.5)
    assert mean_rate(buckets, samples_of, told=False) == pytest.approx(20 * 64 / 10)


def test_unknown_work_is_an_unknown_rate() -> None:
    steps = [step(1, 1.0, (1.0,), samples=None)]
    assert rate_series(steps, samples_of, [0, SECOND]) == [None]
    assert rate_series(steps, flop_of({}), [0, SECOND]) == [None]
    assert rate_series(steps, flop_of({"flop_per_step": 3e9}), [0, SECOND]) == [pytest.approx(3e9)]


def test_the_work_of_the_mean_step_is_of_all_steps_or_none() -> None:
    lines = [step(n, n, (1.0,)) for n in (1, 2)]
    own = [replace(lines[0], flop=0.0), lines[1]]
    count = {"flop_per_step": 4e9}
    assert count_of_mean(count, own)["flop_per_step"] == 2e9
    assert count_of_mean(count, own[:1])["flop_per_step"] == 0.0
    assert "flop_per_step" not in count_of_mean({}, own)  # the second step's is not known
    partial = [replace(line, partial=(line.step,), flop=1e9) for line in lines]
    assert count_of_mean(count, partial) == count


def test_a_partial_batch_does_not_count_as_a_full_one() -> None:
    steps = [step(1, 1.0, (1.0,), samples=64), step(2, 2.0, (1.0,), samples=16)]
    work = flop_of({"flop_per_step": 8e9, "samples": 64})
    assert rate_series(steps, work, [0, SECOND, 2 * SECOND]) == pytest.approx([8e9, 2e9])


def test_steps_without_times_cover_the_time_between_their_lines() -> None:
    rows = [step(1, 1.0, None), step(2, 3.0, None)]
    assert [(start, end) for start, end, _ in intervals(rows)] == [
        (SECOND, SECOND),
        (SECOND, 3 * SECOND),
    ]


@given(
    st.lists(st.floats(0.001, 2.0), min_size=1, max_size=30),
    st.lists(st.floats(0.001, 3.0), min_size=1, max_size=30),
)
def test_no_work_is_gained_or_lost(durations: list[float], ticks: list[float]) -> None:
    end, steps = 0.0, []
    for n, seconds in enumerate(durations, 1):
        end += seconds
        steps.append(step(n, end, (seconds,)))
    edges = [0]
    for gap in ticks:
        edges.append(edges[-1] + int(gap * SECOND) + 1)
    edges.append(max(edges[-1] + 1, steps[-1].t + SECOND))
    rates = rate_series(steps, samples_of, edges)
    total = sum(
        rate * (after - before) / SECOND
        for rate, before, after in zip(rates, edges, edges[1:], strict=False)
        if rate is not None
    )
    assert total == pytest.approx(64 * len(durations), rel=1e-6)


def test_the_window_is_that_of_the_timed_steps() -> None:
    steps = [step(1, 2.0, (1.0,), warmup=True)] + [step(n, n + 1.0, (1.0,)) for n in (2, 3, 4)]
    window = timed_window(steps, [n * SECOND // 2 for n in range(20)])
    assert (window.kind, window.start, window.end) == ("timed steps", 2 * SECOND, 5 * SECOND)


def test_steps_too_short_for_two_ticks_leave_the_whole_run() -> None:
    window = timed_window([step(1, 1.0, (0.01,))], [0, SECOND, 2 * SECOND])
    assert (window.kind, window.end) == ("whole run", 2 * SECOND)
