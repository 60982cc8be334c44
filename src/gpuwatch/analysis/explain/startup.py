"""The cost of starting, apart from the steady state, and the number of steps until it no longer
matters: faster steps have made up for it, or it is below the margin."""

from __future__ import annotations

import math
from collections.abc import Callable

from gpuwatch.analysis.comparison.verdict import difference
from gpuwatch.analysis.explain.sides import Sides, median, plausible, step_seconds
from gpuwatch.analysis.results import Cell, Evidence, StartUp
from gpuwatch.analysis.statistics.intervals import Interval, lower_end
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core import units
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import number

_STAGES = (
    ("launch", "launch_seconds"),
    ("import", "import_seconds"),
    ("model and data", "model_seconds"),
    ("first step", "first_step_seconds"),
)


def start_up(sides: Sides) -> tuple[StartUp | None, Evidence | None]:
    """Start-up time of the other environment, and the sentence about it.

    ``None`` where a stage of the start is unknown.
    """
    first, second = sides.medians(seconds_of)
    if second is None:
        return None, None
    if first is None:
        return StartUp(second, None, None), None
    extra = second - first
    interval = _interval(sides)
    differs = interval is None or not interval.low <= 0 <= interval.high
    more = extra if differs and extra > 0 else None
    steps = None if more is None else _amortised(sides, more)
    even = None if more is None else _break_even(sides, more)
    text = f"start-up {sides.both(_time(first), _time(second))}"
    if differs and extra:
        text += f": {_time(abs(extra))} {'more' if extra > 0 else 'less'}{_stage(sides, extra)}"
    else:
        text += ": a difference within its error"
    if even is not None:
        text += f"; its faster steps make up for that after {even:,} steps (break-even)"
    elif steps is not None:
        text += f"; under {units.percent(sides.margin)} of the time after {steps:,} steps"
    source = "launch, import, model and data, first step; no part of the step time"
    return (
        StartUp(second, extra, steps, even),
        Evidence("start-up", text, None, Method.MEASURED, source),
    )


def seconds_of(session: Summary) -> float | None:
    """Seconds of launch, import, model and first step of one run; ``None`` unless all are known."""
    stages = [getattr(session.timing, key) for _, key in _STAGES]
    known = [float(stage) for stage in stages if stage is not None]
    return plausible(sum(known)) if len(known) == len(stages) else None


def _amortised(sides: Sides, extra: float) -> int | None:
    """Number of steps after which ``extra`` seconds are within the margin of their time."""
    step = _step(sides.baseline)
    return None if step is None or sides.margin <= 0 else _steps(extra, sides.margin * step)


def _break_even(sides: Sides, extra: float) -> int | None:
    """Number of steps that save ``extra`` seconds, if they are faster by more than the margin."""
    whole = sides.split({})
    first, second = map(_step, sides.cells)
    if whole is None or first is None or second is None:
        return None
    change = whole.remainder
    highest = change.estimate if change.interval is None else change.interval.high
    if highest > lower_end(sides.margin) or second >= first:
        return None
    return _steps(extra, first - second)


def _step(cell: Cell) -> float | None:
    return median([known for run in cell.judged if (known := step_seconds(run)) is not None])


def _steps(extra: float, each: float) -> int:
    """Number of steps that make up ``extra`` seconds at ``each`` seconds per step."""
    return math.ceil(round(extra / each, 6))


def _interval(sides: Sides) -> Interval | None:
    """Interval of the difference in seconds, paired by block; ``None`` under three pairs."""
    first, second = (_by_block(cell) for cell in sides.cells)
    added = [second[block] - first[block] for block in sorted(first.keys() & second.keys())]
    return difference(added)


def _by_block(cell: Cell) -> dict[int, float]:
    return {
        run.block: known
        for run in cell.judged
        if run.block is not None and (known := seconds_of(run.session)) is not None
    }


def _stage(sides: Sides, extra: float) -> str:
    """The stage with the largest part of the difference, in words."""
    added = []
    for name, key in _STAGES:
        first, second = sides.medians(_of(key))
        if first is not None and second is not None:
            added.append(((second - first) * math.copysign(1.0, extra), name))
    most, name = max(added)
    return f", {_time(most)} of it {name}"


def _of(key: str) -> Callable[[Summary], float | None]:
    return lambda session: number(getattr(session.timing, key))


def _time(seconds: float) -> str:
    return units.milliseconds(seconds) if seconds < 1 else f"{seconds:.2f} s"
