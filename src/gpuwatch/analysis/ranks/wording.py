"""Sentences on the ranks of a run, for terminals, reports and screens."""

from __future__ import annotations

from gpuwatch.analysis.ranks.ranks import Ranks, Straggler
from gpuwatch.analysis.ranks.stragglers import DATA_WAIT, MARGIN
from gpuwatch.core import units


def sentences(ranks: Ranks) -> list[str]:
    """Who is slower and what goes with it; or that nobody stands out; or why that is unknown."""
    if ranks.reason is not None:
        return [f"can't tell whether a rank is slower than the others: {ranks.reason}"]
    if ranks.stragglers:
        return [straggler(each, ranks) for each in ranks.stragglers]
    margin = units.percent(MARGIN)
    text = f"no rank's own time stands out by more than {margin} of the step and the noise"
    if ranks.imbalance is not None:
        text += f"; imbalance {units.percent(ranks.imbalance)}"
    return [text]


def straggler(found: Straggler, ranks: Ranks) -> str:
    """``rank 1 is slower than rank 0: its own time is 12 % longer ...``"""
    excess = found.excess
    ids = [each.rank for each in ranks.figures]
    others = (
        f"rank {ids[0] if ids[1] == excess.rank else ids[1]}"
        if len(ids) == 2
        else "the median of the others"
    )
    low, high = (
        units.milliseconds(bound) if bound >= 0 else f"-{units.milliseconds(-bound)}"
        for bound in (excess.low, excess.high)
    )
    text = (
        f"rank {excess.rank} is slower than {others}: own time "
        f"{change(excess.relative)}, {units.milliseconds(excess.seconds)} a step ({low} to {high})"
    )
    if ranks.step_seconds:
        text += f", {units.percent(excess.seconds / ranks.step_seconds)} of the step"
    if excess.since is not None and excess.before is not None:
        before = excess.before / excess.median if excess.median > 0 else 0.0
        text += f"; since {units.clock_time(excess.since / 1e9)}, {change(before)} before"
    texts = [reason.text for reason in found.goes_with]
    if all(reason.phase is not None for reason in found.goes_with):
        texts.append("no sampled metric differs")
    return f"{text}. Goes with: {'; '.join(texts)}"


def short(ranks: Ranks) -> str:
    """``2 ranks · slowest 1, +12 %, data wait``; for a line of a screen."""
    count = ranks.counted
    if ranks.stragglers:
        first = ranks.stragglers[0]
        name = leading(first)
        parts = (f"slowest {first.excess.rank}", change(first.excess.relative), name)
        return f"{count} · {', '.join(filter(None, parts))}"
    if ranks.reason is not None:
        return count
    return f"{count} · none stands out"


def leading(found: Straggler) -> str | None:
    """The name of what goes with a straggler first of all: a wait for data, else a metric."""
    reasons = found.goes_with
    order = sorted(reasons, key=lambda each: (each.name != DATA_WAIT, each.phase is not None))
    return order[0].name if order else None


def change(relative: float) -> str:
    """``+12 %``."""
    sign = "-" if relative < 0 else "+"
    return f"{sign}{units.percent(abs(relative))}"
