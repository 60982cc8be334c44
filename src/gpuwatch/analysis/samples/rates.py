"""Rates of counted work: work per step times the measured step rate."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from statistics import median

from gpuwatch.core.models import JSON, number
from gpuwatch.session.rows import StepBucket, StepRow

_LONGEST = 1e9
"""Seconds: a longer step line counts as having no times (30 years)."""

_PAUSE = 10
"""How many times as long as usual a time between two lines is a pause."""

StepLine = StepRow | StepBucket
"""A step line, or the step lines of ten seconds in one bucket."""
Span = tuple[int, int, StepLine]
"""Start and end of the time that a step line covers, in nanoseconds, and the line."""


def taken(row: StepLine) -> float | None:
    """Total seconds of a line's steps; ``None`` where it has no step times."""
    if isinstance(row, StepBucket):
        return row.taken
    return sum(row.seconds) if row.seconds else None


def timed_of(steps: Sequence[StepLine]) -> list[StepLine]:
    """The lines of the timed steps, without the first line of a run that does not tell when it
    began, where the next one tells its time."""
    timed = [row for row in steps if not row.warmup]
    known = [taken(row) is not None for row in timed[:2]]
    return timed[1:] if known == [False, True] and timed[0] is steps[0] else timed


def intervals(steps: Iterable[StepLine]) -> list[Span]:
    """The time that each step line covers; see :func:`spans`."""
    return list(spans(steps))


def spans(steps: Iterable[StepLine]) -> Iterator[Span]:
    """The time that each step line covers, one line after the other.

    The span ends with the line's last step, and begins with its first, but not before the line
    before ended; a first line without times covers no time.
    """
    before: int | None = None
    for row in steps:
        start = begin(row, before)
        yield start if before is None else min(max(start, before), row.t), row.t, row
        before = row.t


def begin(row: StepLine, before: int | None) -> int:
    """When the first step of a line began by the times of its steps, in nanoseconds; without them
    where the line ``before`` ended. Times of more than thirty years are ignored."""
    if isinstance(row, StepBucket):
        start = row.start
    elif row.seconds and abs(total := sum(row.seconds)) < _LONGEST:
        start = row.t - int(total * 1e9)
    else:
        start = row.t if before is None else before
    return min(start, row.t)


def rate_series(
    steps: Iterable[StepLine], work: Callable[[StepLine], float | None], edges: Sequence[int]
) -> list[float | None]:
    """Work per second between neighbouring ``edges`` (nanoseconds): one value fewer than edges.

    The work of a step line is spread evenly over the time it covers. ``None`` where the work is
    unknown or no step line covers the interval; partly covered intervals count the known part. The
    time of evaluations is in none.
    """
    return spread(spans(steps), work, edges)


def spread(
    covered: Iterable[Span], work: Callable[[StepLine], float | None], edges: Sequence[int]
) -> list[float | None]:
    """:func:`rate_series` of lines whose spans are known already."""
    totals: list[float | None] = [None] * max(0, len(edges) - 1)
    times = [float(end - start) for start, end in pairwise(edges)]
    first = 0
    for start, end, amount, evaluation in _pieces(covered, work):
        while first < len(totals) and edges[first + 1] <= start:
            first += 1
        index = first
        while index < len(totals) and edges[index] < end:
            overlap = min(end, edges[index + 1]) - max(start, edges[index])
            share = overlap / (end - start)
            times[index] -= evaluation * share
            if amount is not None:
                totals[index] = (totals[index] or 0.0) + amount * share
            index += 1
    return [
        None if total is None or time <= 0 else number(total / (time / 1e9))
        for total, time in zip(totals, times, strict=True)
    ]


def _pieces(
    covered: Iterable[Span], work: Callable[[StepLine], float | None]
) -> Iterator[tuple[int, int, float | None, float]]:
    """Start and end of the time of each line and of the evaluation before it, the work in it, and
    the nanoseconds of it that are an evaluation: those that its steps leave, as of a bucket."""
    before = 0
    for start, end, row in covered:
        evaluation = row.evaluation * 1e9
        inside = min(evaluation, max(0.0, end - start - (taken(row) or 0.0) * 1e9))
        begin = int(max(before, start - (evaluation - inside)))
        if begin < start and evaluation:
            yield begin, start, None, start - begin
        if end > start:
            yield start, end, work(row), inside
        before = end


def pause_share(lines: Sequence[StepLine]) -> float | None:
    """Share of the time from the first to the last line that one pause took; ``None``: no line
    came late by far."""
    gaps = [after.t - line.t for line, after in pairwise(lines)]
    usual = median(gaps) if gaps else 0
    if usual <= 0 or max(gaps) < _PAUSE * usual:  # lines that came in bursts have no times
        return None
    return max(gaps) / sum(gaps)


def mean_rate(
    timed: Sequence[StepLine], work: Callable[[StepLine], float | None], *, told: bool
) -> float | None:
    """Work per second of the time that the lines' steps took (:func:`duration`), without
    evaluations; ``None`` where the work of a line, or the time, is unknown, or it is not finite."""
    lines, before = (timed[1:], timed[0]) if timed and taken(timed[0]) is None else (timed, None)
    seconds = duration(lines, before, told=told)
    known = [amount for row in lines if (amount := work(row)) is not None]
    return number(sum(known) / seconds) if seconds and len(known) == len(lines) else None


def time_per_step(timed: Sequence[StepLine], first: int, *, told: bool) -> float | None:
    """Seconds per full step from the full step ``first`` (from 0) to the last line's end.

    It starts with the first line that begins there or later, else with the last line. A partial
    batch counts by its samples, where they are known. ``told``: as for :func:`duration`; ``None``
    where no time is known.
    """
    lines = list(timed[1:] if timed and taken(timed[0]) is None else timed)
    before = [0, *accumulate(row.count - _partial(row) for row in lines)]
    begin = next((at for at, place in enumerate(before[:-1]) if place >= first), len(lines) - 1)
    rest = lines[max(0, begin) :]
    seconds = duration(rest, timed[-len(rest) - 1] if len(rest) < len(timed) else None, told=told)
    steps = _full_steps(rest)
    return seconds / steps if seconds is not None and steps else None


def duration(lines: Sequence[StepLine], before: StepLine | None, *, told: bool) -> float | None:
    """Seconds that these lines' steps took, with all that happened between them but evaluations.

    Steps follow each other, so they take at least the sum of their own times: that alone is known
    of lines that arrive without the end of their last step, or tell only some of the steps.

    Args:
        before: the line before the first, whose end is the start where the first has no time.
        told: whether the workload tells when its steps end.
    """
    own = [taken(row) for row in lines]
    known = [value for value in own if value is not None]
    found = [sum(known)] if known and len(known) == len(own) else []
    if told and lines and not leaps(lines):
        first = lines[0]
        if isinstance(first, StepBucket):
            between = sum(row.evaluation for row in lines)
            found.append((lines[-1].t - first.start) / 1e9 - between)
        elif own[0] is not None:
            between = sum(row.evaluation for row in lines[1:])
            found.append((lines[-1].t - first.t) / 1e9 + own[0] - between)
        elif before is not None:
            found.append((lines[-1].t - before.t) / 1e9 - sum(row.evaluation for row in lines))
    return max(found, default=None)


def leaps(lines: Sequence[StepLine]) -> bool:
    """Whether the lines tell only some of the steps: their numbers rise by more than they count."""
    return any(after.step > before.step + after.count for before, after in pairwise(lines))


def _partial(row: StepLine) -> int:
    return row.partial if isinstance(row, StepBucket) else len(row.partial)


def _full_steps(lines: Sequence[StepLine]) -> float:
    """The number of steps; of lines that all tell their samples, in full steps."""
    samples = [row.samples for row in lines]
    full = per_step(lines, samples_of)
    if not full or None in samples:
        return float(sum(row.count for row in lines))
    return sum(value for value in samples if value is not None) / full


def per_step(lines: Iterable[StepLine], work: Callable[[StepLine], float | None]) -> float | None:
    """Mean work of a full step, by the lines without a partial batch; ``None``: not known."""
    total = steps = 0.0
    for row in lines:
        if not _partial(row) and (told := work(row)) is not None:
            total, steps = total + told, steps + row.count
    return total / steps if steps and 0 <= total < math.inf else None


def full_times(row: StepLine) -> Sequence[float]:
    """Seconds of each step of a line without the partial batches; empty where unknown."""
    if isinstance(row, StepBucket):
        return row.times
    if row.seconds is None:
        return []
    first = row.step - len(row.seconds) + 1
    partial = set(row.partial)
    return [value for at, value in enumerate(row.seconds, first) if at not in partial]


def samples_of(row: StepLine) -> float | None:
    """Training samples of a step line."""
    return row.samples


def flop_of(count: Mapping[str, JSON]) -> Callable[[StepLine], float | None]:
    """Model FLOP of a step line: its own figure, else that of ``count`` for a full step."""
    per_step, samples = number(count.get("flop_per_step")), number(count.get("samples"))
    return lambda row: _work(row.flop, per_step, samples, row)


def bytes_of(count: Mapping[str, JSON]) -> Callable[[StepLine], float | None]:
    """Algorithmic bytes of a step line: its own figure, else that of ``count`` for a full step."""
    per_step, samples = number(count.get("bytes_per_step")), number(count.get("samples"))
    return lambda row: _work(row.bytes, per_step, samples, row)


def count_of_mean(count: Mapping[str, JSON], timed: Sequence[StepLine]) -> Mapping[str, JSON]:
    """``count``, with the work of the mean step where steps tell their own, and all are known."""
    if all(row.flop is None for row in timed):
        return count
    means = dict(count)
    for name, work in (("flop_per_step", flop_of(count)), ("bytes_per_step", bytes_of(count))):
        known = None not in map(work, timed)
        if known and (mean := per_step(timed, work)) is not None:
            means[name] = mean
    return means


def works(count: Mapping[str, JSON]) -> dict[str, tuple[Callable[[StepLine], float | None], str]]:
    """For each derived metric the work of a step line, and how its rate follows from that."""
    return {
        "gpuwatch.flop.rate": (flop_of(count), "FLOP per step x step rate"),
        "gpuwatch.bytes.rate": (bytes_of(count), "algorithmic bytes per step x step rate"),
        "gpuwatch.throughput": (samples_of, "samples / step time"),
    }


def _work(
    own: float | None, per_step: float | None, samples: float | None, row: StepLine
) -> float | None:
    """Work in proportion to the samples, so that a partial batch does not count as a full one."""
    if own is not None or per_step is None:
        return own
    if samples and row.samples is not None:
        return per_step * row.samples / samples
    return per_step * row.count
