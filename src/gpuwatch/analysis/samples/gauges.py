"""The gauges of a run over time, thinned for charts."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import isfinite

from gpuwatch.analysis.samples.rates import rate_series, works
from gpuwatch.analysis.samples.step_lines import no_rates, several_writers
from gpuwatch.analysis.samples.window import first_timed
from gpuwatch.core.aggregate import average_of, grouped
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import CATALOGUE, Kind, Method
from gpuwatch.core.models import JSON, mapping
from gpuwatch.core.units import NS
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.rows import ChannelRow, StepRow

POINTS = 300
"""Points of a curve that a chart of a page's width can show."""
FEWEST_POINTS = 20
LOSS = "loss"
"""The one that a point may lack between two that have it: many programs tell it now and then."""
_SHOWN = """
    hw.gpu.utilization hw.gpu.memory.bandwidth gpuwatch.flop.rate hw.gpu.power hw.gpu.memory.usage
    hw.gpu.clock.sm hw.gpu.temperature hw.cpu.utilization process.memory.usage gpuwatch.throughput
"""
SHOWN = (*_SHOWN.split(), LOSS)
"""Metrics that get a chart, in reading order."""

_ALL_RUNS = 8400
"""Most points of all runs on a page together."""
_MOST_LINES = 20_000
"""Step lines from which on only an even selection is read, one for each point."""


@dataclass(frozen=True)
class Gauge:
    """One metric of a run, one value for each of the run's points."""

    unit: str
    method: Method
    source: str
    devices: int
    """Number of devices averaged."""
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class RunSeries:
    """The gauges of one session over time; ``seconds``, ``steps`` and every gauge's values have one
    entry for each point."""

    session: str
    """Id of the session."""
    path: str
    """Its file, as in ``Summary.path``."""
    seconds: tuple[float, ...]
    """Since ``zero``; negative before it."""
    zero: str
    """``first timed step`` (its start), or ``start of the recording`` where no step is timed."""
    steps: tuple[float | None, ...]
    """Timed steps done by then, with fractions; ``None`` outside the timed steps."""
    metrics: Mapping[str, Gauge]
    """Metrics with a known value, by name, in reading order."""
    merged: int
    """Largest number of samples averaged in one point; 1: the points are the samples."""


@dataclass(frozen=True)
class _Points:
    """The points of a run, in nanoseconds since the session's start."""

    times: tuple[int, ...]
    """Mean time of each point's rows."""
    ends: tuple[int, ...]
    """Time of each point's last row."""
    rows: tuple[tuple[int, int], ...]
    """First row of each point, and the row after its last."""


def points_for(runs: int) -> int:
    """Points per curve that keep a page of ``runs`` runs under a megabyte."""
    return max(FEWEST_POINTS, min(POINTS, _ALL_RUNS // max(1, runs)))


def run_series(reader: SessionReader, points: int = POINTS) -> RunSeries:
    """Read the gauges of a session, at most ``points`` values each.

    More samples than that are averaged over equal stretches of time, and several used devices are
    averaged too.

    Raises:
        NotASession: the file is damaged.
    """
    meta = reader.meta()
    used = {device.id for device in reader.devices() if device.used}
    channels = [
        channel
        for channel in reader.channels()
        if channel.metric in SHOWN
        and channel.device in used
        and channel.kind == Kind.GAUGE.value
        and channel.sampled_as is not Method.UNAVAILABLE
    ]
    read = reader.samples([channel.id for channel in channels])
    placed = _placed(read.t, max(1, points))
    lines, source, doubt = _step_lines(reader, meta, points)
    first = first_timed(reader)
    start = first[0] if first else 0
    metrics = _sampled(channels, read.values, placed)
    if doubt is None:
        metrics.update(_derived(mapping(meta.get("count")), lines, placed, source))
    if several_writers(meta) is None:
        metrics.update(_loss(lines, placed.ends, source))
    return RunSeries(
        session=str(mapping(meta.get("session")).get("id", "")),
        path=str(reader.path),
        seconds=tuple((t - start) / NS for t in placed.times),
        zero="first timed step" if first else "start of the recording",
        steps=_steps_done(lines, None if several_writers(meta) else first, placed.times),
        metrics={name: metrics[name] for name in SHOWN if name in metrics},
        merged=max((end - begin for begin, end in placed.rows), default=1),
    )


def _placed(times: Sequence[int], points: int) -> _Points:
    """One point per row, or per non-empty one of ``points`` equal stretches of time."""
    if len(times) <= points:
        return _Points(tuple(times), tuple(times), tuple((at, at + 1) for at in range(len(times))))
    low, span = times[0], max(1, times[-1] - times[0] + 1)
    rows: list[tuple[int, int]] = []
    begin = 0
    for stretch in range(1, points + 1):
        end = bisect_right(times, low + stretch * span // points - 1, begin)
        if end > begin:
            rows.append((begin, end))
        begin = end
    return _Points(
        tuple(sum(times[begin:end]) // (end - begin) for begin, end in rows),
        tuple(times[end - 1] for _, end in rows),
        tuple(rows),
    )


def _sampled(
    channels: Sequence[ChannelRow], columns: Sequence[Sequence[float]], placed: _Points
) -> dict[str, Gauge]:
    places = grouped((channel.metric, place) for place, channel in enumerate(channels))
    gauges = {}
    for name, of_metric in places.items():
        values = tuple(
            average_of([v for place in of_metric for v in columns[place][begin:end] if v == v])
            for begin, end in placed.rows
        )
        if any(value is not None for value in values):
            channel = channels[of_metric[0]]
            gauges[name] = Gauge(
                channel.unit, channel.sampled_as, channel.source, len(of_metric), values
            )
    return gauges


def _step_lines(
    reader: SessionReader, meta: Mapping[str, JSON], points: int
) -> tuple[list[StepRow], str, str | None]:
    """The step lines, a note for the source, and why no rate follows from them.

    Of very many, only a selection is read; each then stands for the steps since the one before.
    """
    last = reader.last_step()
    if last < _MOST_LINES:
        rows = reader.some_steps()
        return rows, "", no_rates(meta, _timed(rows))
    picked: list[StepRow] = []
    for place in range(points + 1):
        rows = reader.steps(last * place // points - 1, 1)
        if rows and (not picked or rows[0].n > picked[-1].n):
            picked.append(rows[0])
    folded = [_standing_for(row, row.step - before.step) for before, row in pairwise(picked)]
    note = f", of {len(picked)} step lines spread evenly"
    return [*picked[:1], *folded], note, no_rates(meta, _timed(picked))


def _timed(rows: Sequence[StepRow]) -> list[StepRow]:
    return [row for row in rows if not row.warmup]


def _standing_for(row: StepRow, count: int) -> StepRow:
    """``row`` scaled to ``count`` steps of the same work each."""
    count = max(1, count)
    share = count / row.count
    return replace(
        row,
        count=count,
        seconds=None,
        samples=None if row.samples is None else row.samples * share,
        flop=None if row.flop is None else row.flop * share,
    )


def _steps_done(
    lines: Sequence[StepRow], first: tuple[int, int] | None, times: Sequence[int]
) -> tuple[float | None, ...]:
    """Timed steps done at each of ``times``, interpolated linearly between step lines."""
    if first is None:
        return (None,) * len(times)
    known = [(first[0], 0)]
    for row in lines:
        if not row.warmup and row.t > known[-1][0]:
            known.append((row.t, row.step - first[1] + 1))
    return tuple(steps_at(known, times))


def steps_at(marks: Sequence[tuple[int, int]], times: Iterable[float]) -> list[float | None]:
    """Steps done at each of ``times``, interpolated linearly between ``marks``: times in their
    order, and steps done by then; ``None`` outside them."""
    ends = [t for t, _ in marks]
    done: list[float | None] = []
    for t in times:
        place = bisect_right(ends, t)
        if place == 0 or place == len(marks):
            done.append(float(marks[-1][1]) if place and t == ends[-1] else None)
            continue
        (left, before), (right, after) = marks[place - 1], marks[place]
        done.append(before + (after - before) * (t - left) / max(1, right - left))
    return done


def _derived(
    count: Mapping[str, JSON], lines: Sequence[StepRow], placed: _Points, source: str
) -> dict[str, Gauge]:
    """Rates of counted work; unknown at the first point, which has no point before it."""
    gauges = {}
    for name, (work, how) in works(count).items():
        values = (None, *rate_series(lines, work, placed.ends))[: len(placed.ends)]
        if any(value is not None for value in values):
            gauges[name] = Gauge(CATALOGUE[name].unit, Method.COUNTED, f"{how}{source}", 1, values)
    return gauges


def _loss(lines: Sequence[StepRow], ends: Sequence[int], source: str) -> dict[str, Gauge]:
    """The mean of the losses told since the point before; not finite where one of them is not."""
    told: dict[int, list[float]] = {}
    for row in lines:
        point = min(bisect_left(ends, row.t), len(ends) - 1)
        told.setdefault(point, []).extend(row.loss or ())
    values = tuple(average_of(told.get(point, ())) for point in range(len(ends)))
    if not any(value is not None and isfinite(value) for value in values):
        return {}
    how = f"as the program told it, mean since the point before{source}"
    return {LOSS: Gauge("", Method.MEASURED, how, 1, values)}
