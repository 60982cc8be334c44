"""What samples cost, from the price of a machine's hour and the throughput of its runs."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace

from gpuwatch.analysis.comparison.cells import valued
from gpuwatch.analysis.results import Cell, Cost, Run, StudyResult
from gpuwatch.analysis.statistics.intervals import LEAST, difference
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core import units
from gpuwatch.core.lazy_dataclass import dataclass

_LEVEL = 0.95


@dataclass(frozen=True)
class Price:
    """What an hour costs of the machine that some sessions ran on."""

    per_hour: float
    """In EUR."""
    sessions: frozenset[str]
    """Paths of the sessions, without links."""


def with_costs(result: StudyResult, prices: Sequence[Price]) -> StudyResult:
    """``result`` with what samples cost in each cell whose sessions all have one of ``prices``."""
    questions = []
    for question in result.questions:
        cells = tuple(replace(cell, cost=_cost(cell, prices)) for cell in question.cells)
        questions.append(replace(question, cells=cells))
    return replace(result, questions=tuple(questions))


def _cost(cell: Cell, prices: Sequence[Price]) -> Cost | None:
    paths = {os.path.realpath(run.session.path) for run in cell.runs}
    price = next((each for each in prices if paths and paths <= each.sessions), None)
    if price is None:
        return None
    logs = [
        math.log(price.per_hour / 3600 * 1e6 * seconds)
        for run in valued(cell)
        if (seconds := _seconds_per_sample(run)) is not None
    ]
    found = difference(logs, _LEVEL)
    value, low, high = (
        (math.exp(sum(logs) / len(logs)) if logs else None, None, None)
        if found is None
        else (math.exp(found.estimate), math.exp(found.low), math.exp(found.high))
    )
    return Cost(price.per_hour, value, low, high, len(logs))


def _seconds_per_sample(run: Run) -> float | None:
    """Over all steps where that is known, since all of them are paid for."""
    seconds, samples = run.total or run.value, run.session.steps.samples_per_step
    return seconds / samples if seconds and samples else None


def cost_text(cost: Cost) -> str:
    """``2.31 EUR per million samples (2.28 to 2.35, 95 % interval of 7 runs), at 3.20 EUR an
    hour``."""
    hour = f"at {_number(cost.per_hour)} EUR an hour"
    if cost.per_million is None:
        return f"unknown {hour}: no run has both a step time and samples per step"
    runs = f"{cost.runs} run{'' if cost.runs == 1 else 's'}"
    basis = f"{runs}; an interval takes {LEAST}"
    if cost.low is not None and cost.high is not None:
        ends = f"{_number(cost.low)} to {_number(cost.high)}"
        basis = f"{ends}, {_LEVEL * 100:.0f} % interval of {runs}"
    return f"{_number(cost.per_million)} EUR per million samples ({basis}), {hour}"


def run_cost(session: Summary, per_hour: float) -> str:
    """``0.0178 EUR for 20.0 s at 3.20 EUR an hour; 1.02 EUR per million samples``."""
    seconds, rate = session.timing.real_seconds, session.steps.samples_per_second
    hour = f"at {_number(per_hour)} EUR an hour"
    parts = [f"unknown {hour}: the run has no end"]
    if seconds is not None:
        took = units.clock_time(seconds) if seconds >= 60 else units.quantity(seconds, "s")
        parts = [f"{_number(per_hour * seconds / 3600)} EUR for {took} {hour}"]
    if rate:
        parts.append(f"{_number(per_hour / 3600 * 1e6 / rate)} EUR per million samples")
    if session.tokens_per_second:
        tokens = per_hour / 3600 * 1e6 / session.tokens_per_second
        parts.append(f"{_number(tokens)} EUR per million tokens")
    return "; ".join(parts)


def _number(value: float) -> str:
    return units.significant(value)
