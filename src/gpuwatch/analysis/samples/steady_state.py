"""The steady part of a run: where the step time had stopped changing.

A run need not have one: its step times may change level near the end, or drift (Barrett et al.
2017, "Virtual machine warmup blows hot and cold", Proc. ACM Programming Languages 1, OOPSLA).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gpuwatch.analysis.samples.rates import StepLine
from gpuwatch.analysis.samples.step_lines import times_of
from gpuwatch.analysis.statistics import changepoints
from gpuwatch.core import units
from gpuwatch.core.lazy_dataclass import dataclass

StepTimes = tuple[np.ndarray, str | None]
"""Seconds of the full timed steps in their order, shape (n,); and why they are not step times."""


def series_of(timed: Sequence[StepLine]) -> StepTimes:
    """The step times of these lines; see :func:`times_of`."""
    times, reason = times_of(timed)
    return np.array(times), reason


@dataclass(frozen=True)
class Steady:
    """The steady part of one run's steps."""

    seconds: float | None
    """Median step time in it; ``None``: there is no steady state."""
    first: int
    """Index of its first step among the full timed steps, from 0."""
    count: int
    """Steps in it."""
    spread: float | None
    """Scaled median absolute deviation of its step times over their median."""
    changes: tuple[int, ...] = ()
    """Indices of the full timed steps at which the level changed."""
    reason: str | None = None
    """Why there is no steady state."""
    total: float | None = None
    """Seconds per step of the whole steady part, with slow steps, partial batches and what happens
    between steps."""
    quantiles: tuple[float, ...] = ()
    """Its step times at :data:`SHARES`, in seconds; empty: there is no steady state."""

    @property
    def share(self) -> float:
        """Share of all full timed steps in the steady part, 0 to 1; 0 without any step."""
        total = self.first + self.count
        return self.count / total if total else 0.0

    @property
    def late(self) -> bool:
        """Whether there is a steady part, and a fifth of the steps or more before it."""
        return self.seconds is not None and self.share <= _MOSTLY

    @property
    def small(self) -> bool:
        """Whether there is a steady part, and it is less than half of the steps."""
        return self.seconds is not None and self.share < _HALF

    @property
    def note(self) -> str | None:
        """What to know of the median of all steps: that the level changed, or did not settle."""
        if self.seconds is not None:
            at = units.milliseconds(self.seconds)
            return f"{late_note([self])}, at {at}" if self.late else None
        return self.reason if self.first + self.count >= FEWEST_STEPS else None


SHARES = tuple((place + 0.5) / 100 for place in range(100))
"""Shares of the steps for :attr:`Steady.quantiles`: the middle of each hundredth."""
FEWEST_STEPS = 10
LEAST_SHARE = 0.1
"""Smallest share of all steps for a steady part."""
RELEVANT = 0.005
"""Smallest relative change of level that counts; the noise, where that is larger."""
_PASSING = 0.05
"""Share of the steady part that may be at other levels, in between."""
_MOSTLY = 0.8
"""Share of the steps above which the steady part is not mentioned."""
_HALF = 0.5
ONLY = "steady are only the last"
"""What is told of a steady part that is :attr:`Steady.small`."""
_SMALL = 0.02
"""Relative change below which two times of three digits look alike."""
_MOST_VALUES = 500
_SCALE = 1.4826
_BENDS = 24


def steady_series(times: np.ndarray) -> Steady:
    """The steady part of ``times`` (n,): a run's full timed steps, in seconds and in order, all of
    them finite and above 0."""
    if times.size < FEWEST_STEPS:
        few = f"{times.size} timed steps are too few for a steady state"
        return _none(times, 0, (), f"{few}, which takes {FEWEST_STEPS}")
    width = math.ceil(times.size / _MOST_VALUES)
    left_out = times.size % width  # steps before the first value
    raw = np.log(np.median(times[left_out:].reshape(-1, width), axis=1))
    values = changepoints.without_spikes(raw)
    noise = changepoints.noise_of(values)
    relevant = max(math.log1p(RELEVANT), noise.deviation)
    penalty = changepoints.PENALTY * noise.long_run * math.log(values.size)
    starts = changepoints.supported(raw, changepoints.partition(values, penalty))
    levels = list(map(_level, np.split(values, starts[1:])))
    at = [_step_of(start, width, left_out) for start in starts]
    changes = tuple(
        step
        for step, level, before in zip(at[1:], levels[1:], levels[:-1], strict=True)
        if abs(level - before) >= relevant
    )
    first = _first(at, levels, times.size, relevant)
    fewest = max(FEWEST_STEPS, math.ceil(LEAST_SHARE * times.size))
    if times.size - first < fewest:
        return _none(times, first, changes, _changed(times, at, first))
    drift = _drift(values, starts, penalty, relevant, math.ceil(fewest / width))
    if drift is not None:
        since, bend = drift
        if bend is None:
            since = _step_of(since, width, left_out)
            return _none(times, first, changes, _drifted(times, since))
        first = max(first, _step_of(bend, width, left_out))
    median = _level(times[first:])
    spread = _SCALE * _level(np.abs(times[first:] - median)) / median
    quantiles = tuple(np.quantile(times[first:], SHARES).tolist())
    return Steady(median, first, times.size - first, spread, changes, quantiles=quantiles)


def _step_of(place: int, width: int, left_out: int) -> int:
    """First of the ``width`` steps of a value; 0 for the first value."""
    return left_out + width * place if place else 0


def _first(at: Sequence[int], levels: Sequence[float], count: int, relevant: float) -> int:
    """First step of the longest tail of the run at the last level, short disturbances included."""
    first, disturbed = at[-1], 0
    for place in range(len(at) - 2, -1, -1):
        if abs(levels[place] - levels[-1]) >= relevant:
            disturbed += at[place + 1] - at[place]
        elif disturbed <= _PASSING * (count - at[place]):
            first = at[place]
    return first


def _drift(
    values: np.ndarray, starts: Sequence[int], penalty: float, relevant: float, fewest: int
) -> tuple[int, int | None] | None:
    """Where the drift to the end of ``values`` (n,) starts, and where it ends if it does.

    The series drifts where a line fits its tail better than levels do. A drift that bends into a
    level of ``fewest`` values or more has ended there.
    """
    errors = [changepoints.squared_error(level)[0] for level in np.split(values, starts[1:])]
    for place, start in enumerate(starts):
        end = values[start:]
        time = np.arange(end.size, dtype=float)
        error, line = changepoints.squared_error(end, time)
        stairs = sum(errors[place:]) + penalty * (len(errors) - place - 1)
        third = math.ceil(end.size / 3)
        shift = _level(end[-third:]) - _level(end[:third])  # two thirds of a line's rise
        rise = (line[-1] - line[0]) * np.sign(shift)
        if min(rise, 2 * abs(shift)) < relevant or error + penalty > stairs:
            continue
        last = end.size - fewest
        bends = sorted({int(bend) for bend in np.linspace(1, last, _BENDS) if last > 1})
        bent = [
            (changepoints.squared_error(end, np.minimum(time, bend))[0], bend) for bend in bends
        ]
        best, bend = min(bent, default=(math.inf, 0))
        return start, start + bend if best + penalty / changepoints.PENALTY < error else None
    return None


def late_note(late: Sequence[Steady]) -> str:
    """What is told of runs that are ``late``: ``the step time changed its level; steady are the
    last 12 of 100 steps``."""
    least = min(late, key=lambda each: each.share)
    more = " or more" if len(late) > 1 else ""
    steady = ONLY if least.small else "steady are the last"
    part = f"{least.count:,} of {least.first + least.count:,} steps{more}"
    return f"the step time changed its level; {steady} {part}"


def _changed(times: np.ndarray, at: Sequence[int], first: int) -> str:
    before = max(step for step in at if step < first)
    where = f"step {first + 1:,} of {times.size:,}"
    figures = _from_to(_level(times[before:first]), _level(times[first:]))
    return f"no steady state: the step time still changed at {where} ({figures})"


def _drifted(times: np.ndarray, since: int) -> str:
    tenth = max(1, (times.size - since) // 10)
    old, new = _level(times[since : since + tenth]), _level(times[-tenth:])
    direction = "rose" if new > old else "fell"
    span = f"over the last {times.size - since:,} of {times.size:,} steps"
    figures = _from_to(old, new)
    return f"no steady state: the step time still {direction} at the end, {span} ({figures})"


def _from_to(old: float, new: float) -> str:
    """Both times, and their change where the digits hardly show it."""
    change = new / old - 1
    detail = f", {change * 100:+.1f} %" if abs(change) < _SMALL else ""
    return f"from {units.milliseconds(old)} to {units.milliseconds(new)}{detail}"


def _level(times: np.ndarray) -> float:
    return float(np.median(times))


def _none(times: np.ndarray, first: int, changes: tuple[int, ...], reason: str) -> Steady:
    return Steady(None, first, times.size - first, None, changes, reason)
