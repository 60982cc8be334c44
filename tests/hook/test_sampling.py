"""How many steps are sampled, by what sampling costs and how long the steps are."""

from __future__ import annotations

import pytest

from gpuwatch.hook.gpuwatch_hook.clocks import CpuClock
from gpuwatch.hook.gpuwatch_hook.sampling import BUDGET, Sampling

US = 1_000
STEPS = 20_000


class Run:
    """Steps whose callbacks take 4 us, and 10 us more for each of ten events."""

    def __init__(
        self, step_us: float, other_us: float = 4, read_us: float = 0, first_us: float = 0
    ) -> None:
        """``first_us``: what callbacks take besides in the first steps that are not sampled."""
        self.sampling, self.clock = Sampling("a run"), CpuClock()
        self.spent = self.events = 0.0
        self.drawn: set[int] = set()
        until = 0.0
        for number in range(STEPS):
            sampled = self.sampling.sampled
            events = 10 if sampled else int(self.clock.ends)
            early = first_us if number < 400 and not sampled else 0
            took = (other_us + early + 10 * events) * US
            if self.sampling.timed:
                self.sampling.spent += round(took)
            self.clock.marks = events
            self.sampling.next(self.clock)
            self.sampling.close()
            if number >= STEPS // 2:  # it has learnt what they cost
                self.spent += took
                self.drawn |= {number} if sampled else set()
                self.events += events
            until += step_us
            if until >= 150_000:
                reading = round(until / step_us * read_us * US)
                self.sampling.choose(self.clock, until * US, reading, 0)
                until = 0
        self.sampled = len(self.drawn)
        self.cost = self.spent / (STEPS // 2 * step_us * US)


@pytest.mark.parametrize("step_us", [300_000, 36_000])
def test_all_steps_are_sampled_where_that_is_cheap(step_us: float) -> None:
    run = Run(step_us)
    assert run.sampled == STEPS // 2 and run.cost <= BUDGET
    assert run.sampling.cost == pytest.approx(run.cost)


@pytest.mark.parametrize("step_us", [30_000, 10_000])
def test_else_as_many_as_the_budget_allows_and_the_end_of_every_step(step_us: float) -> None:
    run = Run(step_us)
    assert run.clock.ends and 0 < run.sampled < STEPS // 2
    assert run.cost == pytest.approx(BUDGET, rel=0.15)


def test_in_short_steps_their_ends_are_sampled_too(step_us: float = 3_000) -> None:
    run = Run(step_us)
    assert not run.clock.ends and run.events == 10 * run.sampled > 0
    assert run.cost == pytest.approx(BUDGET, rel=0.3)


def test_ranks_sample_the_same_steps_although_one_samples_fewer() -> None:
    more, fewer = Run(10_000), Run(9_000)
    assert 0 < fewer.sampled < more.sampled and fewer.drawn < more.drawn


def test_some_steps_are_sampled_although_the_rest_is_over_the_budget() -> None:
    run = Run(300, other_us=9)
    assert run.sampled > 0
    assert 9 / 300 < run.cost < 9 / 300 + 2 * 0.001
    assert run.sampling.cost == pytest.approx(run.cost, rel=0.5), "it is told as it is"


def test_to_read_steps_without_an_event_does_not_count_as_the_price_of_events() -> None:
    plain, reading = (Run(300, other_us=9, read_us=each) for each in (0, 2))
    assert reading.sampled > plain.sampled / 2


def test_what_the_first_steps_cost_is_not_believed_for_ever() -> None:
    assert Run(5_000, first_us=200).sampled == pytest.approx(Run(5_000).sampled, rel=0.2)
