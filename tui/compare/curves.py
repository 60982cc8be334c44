"""What a session's metrics did over time and over its steps: curves, read from few rows of it.

Imports numpy by way of the analysis: for a thread of the compare screen.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from pathlib import Path

from gpuwatch.analysis.hardware.program import uncounted
from gpuwatch.analysis.samples.gauges import POINTS, first_timed, run_series
from gpuwatch.analysis.samples.rates import bytes_of, full_times, intervals
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import label
from gpuwatch.core.models import mapping
from gpuwatch.core.units import NS
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.rows import StepRow

_MOST_LINES = 20_000
"""From more step lines on, two for each point are read, spread evenly."""
STEP_TIME, LOSS = "step time", "loss"
_NO_STEPS = "the run reported no steps"


@dataclass(frozen=True)
class Metric:
    """A metric that histories are drawn of."""

    key: str
    unit: str

    @property
    def title(self) -> str:
        return label(self.key)


METRICS = (
    Metric("hw.gpu.utilization", "1"),
    Metric("hw.gpu.memory.bandwidth", "By/s"),
    Metric("gpuwatch.flop.rate", "FLOP/s"),
    Metric("gpuwatch.bytes.rate", "By/s"),
    Metric(STEP_TIME, "s"),
    Metric("gpuwatch.throughput", "{sample}/s"),
    Metric(LOSS, ""),
    Metric("hw.gpu.power", "W"),
    Metric("hw.gpu.memory.usage", "By"),
    Metric("hw.gpu.clock.sm", "Hz"),
    Metric("hw.gpu.temperature", "Cel"),
    Metric("hw.cpu.utilization", "1"),
    Metric("process.memory.usage", "By"),
)
"""In the order in which people look at them."""


@dataclass(frozen=True)
class Curve:
    """One metric of one run: a point for each of some moments, in their order."""

    seconds: tuple[float, ...]
    """Since the first timed step began, negative before it; else since the recording began."""
    steps: tuple[float | None, ...]
    """Timed steps done by then, negative in the warm-up; ``None`` where no step ran."""
    values: tuple[float | None, ...]
    method: str
    """``measured``, ``counted``, ``bound``."""
    gpus: int = 1
    """How many GPUs it is the mean of."""


@dataclass(frozen=True)
class Curves:
    """All curves of one run."""

    path: Path
    curves: Mapping[str, Curve]
    """By the metric's key."""
    missing: Mapping[str, str]
    """Why there is none of a metric, where that is known."""
    timed: bool
    """A step was timed, so that there is something to align by."""
    warmup_seconds: float = 0.0
    """From the start of the first step to that of the first timed one."""
    warmup_steps: int = 0
    timed_seconds: float = math.inf
    """Of the timed steps together: figures of the run are of these, not of what comes after."""
    why: str | None = field(default=None)
    """Why the session could not be read."""


def read_curves(path: Path, points: int = POINTS) -> Curves:
    """The curves of the session at ``path``, of at most ``points`` points each, in about as long
    for a day as for a minute.

    Raises:
        NotASession, NewerSchema, StorageError: it cannot be read.
    """
    with SessionReader(path) as reader:
        sampled = run_series(reader, points)
        lines = _lines(reader, points)
        first = first_timed(reader)
        count = mapping(reader.meta().get("count"))
        why_not = {
            channel.metric: channel.reason for channel in reader.channels() if channel.reason
        }
    start, number = first if first is not None else (0, None)
    clock = _Clock(lines, start, number)
    curves = {
        name: Curve(
            sampled.seconds,
            tuple(map(clock.steps, sampled.seconds)),
            gauge.values,
            gauge.method.value,
            gauge.devices if name.startswith("hw.gpu.") else 1,
        )
        for name, gauge in sampled.metrics.items()
    }
    curves.update(_step_curves(lines, clock, points, bytes_of(count)))
    missing = dict(why_not)
    for name, what in (("gpuwatch.flop.rate", "FLOP"), ("gpuwatch.bytes.rate", "bytes")):
        missing[name] = uncounted(count, what) if lines else _NO_STEPS
    for name, why in ((STEP_TIME, "times"), (LOSS, "loss"), ("gpuwatch.throughput", "samples")):
        missing[name] = f"the run reported no {why}" if lines else _NO_STEPS
    missing = {name: why for name, why in missing.items() if name not in curves}
    spans = intervals(lines[:1])
    warm = bool(lines) and lines[0].warmup and first is not None
    ended = max((row.t for row in lines if not row.warmup), default=None)
    return Curves(
        path,
        curves,
        missing,
        first is not None,
        max(0.0, (start - spans[0][0]) / NS) if warm else 0.0,
        max(0, (number or 0) - (lines[0].step - lines[0].count + 1)) if warm else 0,
        math.inf if ended is None else (ended - start) / NS,
    )


def _lines(reader: SessionReader, points: int) -> list[StepRow]:
    """All step lines; of very many the first ones, where a warm-up is, and others spread evenly."""
    last = reader.last_step()
    if last < _MOST_LINES:
        return reader.some_steps()
    lines = reader.steps(limit=points)
    for place in range(2 * points):
        after = max(lines[-1].n, last * (place + 1) // (2 * points) - 1)
        lines += reader.steps(after, 1)
    return lines


class _Clock:
    """Which step ran when."""

    def __init__(self, lines: Sequence[StepRow], start: int, number: int | None) -> None:
        """``start``: of the first timed step, in nanoseconds; ``number``: its number."""
        self._start = start
        self._first = number
        marks = []
        if number is not None and lines:
            marks = [(intervals(lines[:1])[0][0], lines[0].step - lines[0].count + 1 - number)]
            marks += [(row.t, row.step + 1 - number) for row in lines]
        self._times = [t for t, _ in marks]
        self._done = [done for _, done in marks]

    def seconds(self, t: int) -> float:
        return (t - self._start) / NS

    def steps(self, seconds: float) -> float | None:
        """Timed steps done ``seconds`` after the first began, with fractions."""
        t = self._start + seconds * NS
        place = bisect_right(self._times, t)
        if place == 0 or place == len(self._times):
            at_end = bool(self._times) and t == self._times[-1]
            return float(self._done[-1]) if at_end else None
        left, right = self._times[place - 1], self._times[place]
        share = (t - left) / max(1, right - left)
        return self._done[place - 1] + share * (self._done[place] - self._done[place - 1])


_StepPoint = tuple[float, "float | None", bool, "float | None", "float | None", "float | None"]
"""Of a step line: seconds, steps, whether it is warm-up; time of a step, loss, bytes per second."""


def _step_curves(
    lines: Sequence[StepRow],
    clock: _Clock,
    points: int,
    work: Callable[[StepRow], float | None],
) -> dict[str, Curve]:
    """What the step lines tell: the time of a step, the loss, the algorithmic bytes per second."""
    step_points: list[_StepPoint] = []
    for before, row in pairwise([None, *lines]):
        assert row is not None
        taken = _step_seconds(before, row)
        amount = work(row)
        rate = None if amount is None or not taken else amount / row.count / taken
        loss = _mean(row.loss)
        seconds = clock.seconds(row.t)
        step_points.append((seconds, clock.steps(seconds), row.warmup, taken, loss, rate))
    thinned = _thinned(step_points, points)
    curves = {}
    named = ((STEP_TIME, 3, "measured"), (LOSS, 4, "measured"))
    for key, at, method in (*named, ("gpuwatch.bytes.rate", 5, "counted")):
        values = tuple(_mean([row[at] for row in rows]) for rows in thinned)
        if any(value is not None for value in values):
            curves[key] = Curve(
                tuple(rows[-1][0] for rows in thinned),
                tuple(rows[-1][1] for rows in thinned),
                values,
                method,
            )
    return curves


def _step_seconds(before: StepRow | None, row: StepRow) -> float | None:
    """The time of a full step of a line; without its own times, that since the line before."""
    if row.seconds is not None:
        return _mean(full_times(row))
    if before is None or row.step <= before.step or row.t <= before.t:
        return None
    return (row.t - before.t) / NS / (row.step - before.step)


def _thinned(step_points: Sequence[_StepPoint], points: int) -> list[list[_StepPoint]]:
    """Neighbours of about ``points`` equal stretches of time together; warm-up stays apart."""
    start = step_points[0][0] if step_points else 0.0
    stretch = max(1e-9, (step_points[-1][0] - start) / points if step_points else 0.0)
    groups: list[list[_StepPoint]] = []
    place = (False, -1)
    for point in step_points:
        here = (point[2], int((point[0] - start) / stretch))
        if here != place:
            groups.append([])
        place = here
        groups[-1].append(point)
    return groups


def _mean(values: Sequence[float | None] | None) -> float | None:
    known = [value for value in values or () if value is not None]
    return sum(known) / len(known) if known else None
