"""Reads a session's metrics as curves over time and steps, from few rows.

Imports numpy through the analysis; used in a thread of the compare screen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from gpuwatch.analysis.hardware.program import uncounted
from gpuwatch.analysis.samples.gauges import LOSS as LOSS
from gpuwatch.analysis.samples.gauges import POINTS, run_series, steps_at
from gpuwatch.analysis.samples.rates import StepLine, full_times, intervals, works
from gpuwatch.analysis.samples.source import Source
from gpuwatch.analysis.samples.step_lines import no_rates, several_writers
from gpuwatch.analysis.samples.window import first_timed
from gpuwatch.analysis.summary.summary import summarise_from
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import label
from gpuwatch.core.models import JSON, mapping
from gpuwatch.core.units import NS
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.rows import StepBucket, StepRow

_MOST_LINES = 20_000
"""Of more step lines, only two per point are read, spread evenly."""
STEP_TIME = "step time"
_NO_STEPS = "the run reported no steps"


@dataclass(frozen=True)
class Metric:
    """A metric of the histories."""

    key: str
    unit: str

    @property
    def title(self) -> str:
        return label(self.key)


METRICS = (
    Metric(STEP_TIME, "s"),
    Metric("hw.gpu.utilization", "1"),
    Metric("hw.gpu.memory.bandwidth", "By/s"),
    Metric("gpuwatch.flop.rate", "FLOP/s"),
    Metric("gpuwatch.bytes.rate", "By/s"),
    Metric("gpuwatch.throughput", "{sample}/s"),
    Metric(LOSS, ""),
    Metric("hw.gpu.power", "W"),
    Metric("hw.gpu.memory.usage", "By"),
    Metric("hw.gpu.clock.sm", "Hz"),
    Metric("hw.gpu.temperature", "Cel"),
    Metric("hw.cpu.utilization", "1"),
    Metric("process.memory.usage", "By"),
)
"""In the order of the ``m`` key."""


@dataclass(frozen=True)
class Curve:
    """One metric of one run, as points in order of time."""

    seconds: tuple[float, ...]
    """Since the start of the first timed step; without one, since the start of the recording."""
    steps: tuple[float | None, ...]
    """Timed steps done by then, negative in the warm-up; ``None`` outside all steps."""
    values: tuple[float | None, ...]
    method: str
    """``measured``, ``counted``, ``bound``."""
    gpus: int = 1
    """Number of GPUs the values are the mean of."""
    figure: float | None = None
    """As in ``gpuwatch show``: the mean over the timed steps, or the last loss."""


@dataclass(frozen=True)
class Curves:
    """All curves of one run."""

    path: Path
    curves: Mapping[str, Curve]
    """By the metric's key."""
    missing: Mapping[str, str]
    """Why a metric has no curve, by its key; only if known."""
    timed: bool
    """Whether there is a timed step to align by."""
    warmup_seconds: float = 0.0
    """From the start of the first step to the start of the first timed step."""
    warmup_steps: int = 0
    why: str | None = None
    """Why the session could not be read."""


def read_curves(path: Path, points: int = POINTS) -> Curves:
    """The curves of the session at ``path``, with at most ``points`` points each.

    The time that this takes hardly depends on the length of the session.

    Raises:
        NotASession, NewerSchema, StorageError: it cannot be read.
    """
    with SessionReader(path) as reader:
        sampled = run_series(reader, points)
        source = Source(reader)
        summary, every = summarise_from(reader, source), source.steps()
        meta = reader.meta()
        lines = _lines(reader, points)
        first = first_timed(reader)
        count = mapping(meta.get("count"))
        missing = {each.metric: each.reason for each in reader.channels() if each.reason}
    writers = several_writers(meta)
    doubt = no_rates(meta, [row for row in lines if not row.warmup])
    start, number = first if first is not None and not writers else (0, None)
    marks = []
    if number is not None and lines:
        marks = [(intervals(lines[:1])[0][0], lines[0].step - lines[0].count + 1 - number)]
        marks += [(row.t, row.step + 1 - number) for row in lines]
    steps = tuple(steps_at(marks, (start + seconds * NS for seconds in sampled.seconds)))
    curves = {
        name: Curve(
            sampled.seconds,
            steps,
            gauge.values,
            gauge.method.value,
            gauge.devices if name.startswith("hw.gpu.") else 1,
        )
        for name, gauge in sampled.metrics.items()
    }
    if not writers:
        curves.update(_step_curves(lines, every, start, marks, points, count, told=doubt is None))
    figures = {
        **{name: statistic.mean for name, statistic in summary.metrics.items()},
        STEP_TIME: summary.steps.mean_seconds,
        "gpuwatch.throughput": summary.steps.samples_per_second,
        LOSS: summary.steps.last_loss,
    }
    for name, what in (("gpuwatch.flop.rate", "FLOP"), ("gpuwatch.bytes.rate", "bytes")):
        missing[name] = (doubt or uncounted(count, what)) if lines else _NO_STEPS
    for name, why in ((STEP_TIME, "times"), ("gpuwatch.throughput", "samples")):
        missing[name] = (doubt or f"the run reported no {why}") if lines else _NO_STEPS
    missing[LOSS] = (writers or "the run reported no loss") if lines else _NO_STEPS
    missing = {name: why for name, why in missing.items() if name not in curves}
    warm = bool(marks) and lines[0].warmup
    return Curves(
        path,
        {name: replace(curve, figure=figures.get(name)) for name, curve in curves.items()},
        missing,
        first is not None,
        max(0.0, (start - marks[0][0]) / NS) if warm else 0.0,
        max(0, -marks[0][1]) if warm else 0,
    )


def _lines(reader: SessionReader, points: int) -> list[StepRow]:
    """All step lines; of very many, the first ones (the warm-up) and others spread evenly."""
    last = reader.last_step()
    if last < _MOST_LINES:
        return reader.some_steps()
    lines = reader.steps(limit=points)
    for place in range(2 * points):
        after = max(lines[-1].n, last * (place + 1) // (2 * points) - 1)
        lines += reader.steps(after, 1)
    return lines


_StepPoint = tuple[float, "float | None", bool, "tuple[float | None, ...]"]
"""A step line: seconds, steps done, whether warm-up, and a value for each curve."""


def _step_curves(
    lines: Sequence[StepRow],
    every: Sequence[StepLine],
    start: int,
    marks: Sequence[tuple[int, int]],
    points: int,
    count: Mapping[str, JSON],
    *,
    told: bool,
) -> dict[str, Curve]:
    """Curves from the step lines: time of the longest step, loss, and the rates of ``count``.

    ``every``: all lines, of which ``lines`` may be some; ``start``: of the first timed step, in
    nanoseconds; ``marks``: as in :func:`steps_at`; ``told``: whether the workload told when each
    line's last step ended.
    """
    work = {name: of for name, (of, _) in works(count).items()} if told else {}
    step_points: list[_StepPoint] = []
    done = steps_at(marks, [row.t for row in lines])
    for before, row, steps in zip([None, *lines], lines, done, strict=False):
        taken = _step_seconds(before if told else None, row)
        seconds = sum(row.seconds or ()) or row.count * (taken or 0.0)
        amounts = [of(row) for of in work.values()]
        rates = (None if each is None or not seconds else each / seconds for each in amounts)
        longest = max(full_times(row), default=taken)
        values = (longest, _mean(row.loss), *rates)
        step_points.append(((row.t - start) / NS, steps, row.warmup, values))
    peaks = _peaks(every)
    done = steps_at(marks, [t for t, *_ in peaks])
    with_peaks = step_points + [
        ((t - start) / NS, steps, warmup, (longest,))
        for (t, warmup, longest), steps in zip(peaks, done, strict=True)
    ]
    of_times = _thinned(sorted(with_peaks, key=itemgetter(0)), points)
    of_others = _thinned(step_points, points)
    curves = {}
    for at, key in enumerate((STEP_TIME, LOSS, *work)):
        of, thinned = (_longest, of_times) if key == STEP_TIME else (_mean, of_others)
        values = tuple(of([row[3][at] for row in rows]) for rows in thinned)
        if any(value is not None for value in values):
            curves[key] = Curve(
                tuple(rows[-1][0] for rows in thinned),
                tuple(rows[-1][1] for rows in thinned),
                values,
                "counted" if key in work else "measured",
            )
    return curves


def _peaks(every: Sequence[StepLine]) -> list[tuple[int, bool, float]]:
    """The longest step of each bucket: when it ended in nanoseconds, whether it is of the warm-up,
    and its seconds."""
    peaks = []
    for row in every:
        if isinstance(row, StepBucket) and row.times:
            longest = max(row.times)
            after = sum(row.times[row.times.index(longest) + 1 :])
            peaks.append((max(row.start, row.t - int(after * NS)), row.warmup, longest))
    return peaks


def _step_seconds(before: StepRow | None, row: StepRow) -> float | None:
    """Mean time of a full step in a line; without times in it, by the time since ``before``."""
    if row.seconds is not None:
        return _mean(full_times(row))
    if before is None or row.step <= before.step or row.t <= before.t:
        return None
    return (row.t - before.t) / NS / (row.step - before.step)


def _thinned(step_points: Sequence[_StepPoint], points: int) -> list[list[_StepPoint]]:
    """The points in groups, about ``points`` equal stretches of time; warm-up stays apart."""
    start = step_points[0][0] if step_points else 0.0
    stretch = max(1e-9, (step_points[-1][0] - start) / points if step_points else 0.0)

    def place(point: _StepPoint) -> tuple[bool, int]:
        return point[2], int((point[0] - start) / stretch)

    return [list(group) for _, group in groupby(step_points, key=place)]


def _longest(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _mean(values: Sequence[float | None] | None) -> float | None:
    known = [value for value in values or () if value is not None]
    return sum(known) / len(known) if known else None
