"""What samples cost, from the price of a machine's hour and the throughput of its runs."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace

from gpuwatch.analysis.comparison.cells import valued
from gpuwatch.analysis.hardware.energy import COUNTER, POWER, gpu_energy
from gpuwatch.analysis.measured_value import MeasuredValue, unknown
from gpuwatch.analysis.results import Cell, Cost, Run, StudyResult
from gpuwatch.analysis.samples.source import Source
from gpuwatch.analysis.samples.window import Window
from gpuwatch.analysis.statistics.intervals import LEAST, difference
from gpuwatch.analysis.summary.identity import used_gpus
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core import units
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.units import NS, three_figures
from gpuwatch.session.reading.reader import SessionReader

_LEVEL = 0.95
_KWH = 3.6e6
"""Joules."""


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
    seconds = {id(run): known for run in valued(cell) if (known := _seconds_per_sample(run))}
    used = [run.session.efficiency.energy.gpu_per_sample for run in cell.runs if id(run) in seconds]
    joules = [each.value for each in used if each.value]
    measured = bool(used) and len(joules) == len(used)
    ways = dict.fromkeys(each.source.partition(" (")[0] for each in used)
    paid = _mean([price.per_hour / 3600 * 1e6 * each for each in seconds.values()])
    kwh = _mean([each * 1e6 / _KWH for each in joules if measured])
    by = " and ".join(ways) if measured else ""
    return Cost(price.per_hour, *paid, len(seconds), *kwh, by)


def _mean(values: Sequence[float]) -> tuple[float | None, float | None, float | None]:
    """The trimmed geometric mean, and the ends of its interval where there are enough."""
    logs = [math.log(each) for each in values]
    found = difference(logs, _LEVEL)
    if found is None:
        return (math.exp(sum(logs) / len(logs)) if logs else None, None, None)
    return math.exp(found.estimate), math.exp(found.low), math.exp(found.high)


def _seconds_per_sample(run: Run) -> float | None:
    """The steady mean where that is known, since slow steps are paid for, too."""
    seconds, samples = run.total or run.value, run.session.steps.samples_per_step
    return seconds / samples if seconds and samples else None


def cost_text(cost: Cost) -> str:
    """``2.31 EUR per million samples (2.28 to 2.35, 95 % interval of 7 runs), at 3.20 EUR an
    hour``."""
    hour = f"at {cost.per_hour:.2f} EUR an hour"
    if cost.per_million is None:
        return f"unknown {hour}: no judged run has both a step time and samples per step"
    runs = units.counted(cost.runs, "run")
    basis = f"{runs}; an interval takes {LEAST}"
    if cost.low is not None and cost.high is not None:
        ends = f"{three_figures(cost.low)} to {three_figures(cost.high)}"
        basis = f"{ends}, {_LEVEL * 100:.0f} % interval of {runs}"
    text = f"{three_figures(cost.per_million)} EUR per million samples ({basis}), {hour}"
    if cost.kwh_per_million is None:
        return text
    ends = f"measured: {cost.kwh_by}"
    if cost.kwh_low is not None and cost.kwh_high is not None:
        ends = f"{three_figures(cost.kwh_low)} to {three_figures(cost.kwh_high)}, {ends}"
    return f"{text}; its GPUs used {three_figures(cost.kwh_per_million)} kWh for them ({ends})"


def run_energy(reader: SessionReader, session: Summary) -> MeasuredValue:
    """Joules that the GPUs used from the start of the run to its end, with profile and counters."""
    end, seconds = session.seconds, session.held_seconds
    if end is None or seconds is None:
        return unknown("J", "the run has no end")
    whole = Window("whole run", int((end - seconds) * NS), int(end * NS))
    gpus = [gpu.id for gpu in used_gpus(session)]
    return gpu_energy(Source(reader).samples((COUNTER, POWER), gpus, whole), gpus, whole)


def run_cost(session: Summary, per_hour: float, joules: MeasuredValue) -> str:
    """``0.0178 EUR for 20.0 s at 3.20 EUR an hour; its GPUs used 0.00297 kWh (measured: integral of
    power over time (...), ±1.2 %); its timed steps alone: 1.02 EUR per million samples``."""
    rate, seconds = session.steps.samples_per_second, session.held_seconds
    hour = f"at {per_hour:.2f} EUR an hour"
    parts = [f"unknown {hour}: the run has no end"]
    if seconds is not None:
        took = units.clock_time(seconds) if seconds >= 60 else units.quantity(seconds, "s")
        if behind := session.timing.profile_seconds:
            took += f" ({units.quantity(behind, 's')} of it profile and counters)"
        parts = [f"{three_figures(per_hour * seconds / 3600)} EUR for {took} {hour}"]
    if joules.value is not None:
        used = f"its GPUs used {three_figures(joules.value / _KWH)} kWh"
        parts.append(f"{used} ({joules.method.value}: {(joules.source or '').partition(': ')[0]})")
    rates = ((rate, "samples"), (session.tokens_per_second, "tokens"))
    steps = [
        f"{three_figures(per_hour / 3600 * 1e6 / of)} EUR per million {what}"
        for of, what in rates
        if of
    ]
    return "; ".join([*parts, *([f"its timed steps alone: {', '.join(steps)}"] if steps else [])])
