"""Step lines in ten-second buckets, from the tier that ``step_tier.py`` writes or computed here."""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence

from gpuwatch.core.models import JSON, number
from gpuwatch.session.reading import limits
from gpuwatch.session.reading.base import floats
from gpuwatch.session.reading.parsed import bytes_of, phases_of, step_of
from gpuwatch.session.reading.validation import whole
from gpuwatch.session.rows import Query, StepBucket, StepRow
from gpuwatch.session.schema import TIER_SECONDS, WARMUP

_BUCKET_NS = TIER_SECONDS * 1_000_000_000
_PIECE = 1000
_MOST_TOGETHER = 20_000
"""Most lines in one bucket."""


def buckets(rows: Query, after: int = -1) -> list[StepBucket]:
    """The rows of the tier after step line ``after``, in order.

    Some lines are in no row: those since the last row, and those between two recorders.
    """
    result: list[StepBucket] = []
    while len(result) < limits.BUCKETS and (
        batch := rows(
            f"SELECT n, lines, t, start, step, count, {WARMUP}, partial, samples, "  # noqa: S608
            "taken, times, weights, loss, phases, flop, bytes FROM step_tier WHERE n > ? "
            "ORDER BY n LIMIT ?",
            (after, _PIECE),
        )
    ):
        for row in batch:
            bucket = _bucket(row)
            if bucket.lines < 1 or bucket.n - bucket.lines < after:
                raise ValueError("two rows of the tier cover the same lines")
            result.append(bucket)
            after = bucket.n
    return result


def folded(
    rows: Query, after: int, upto: int, leave_out: Callable[[str], None]
) -> Iterator[StepRow | StepBucket]:
    """The step lines with ``after < n <= upto``, combined into ten-second buckets with the time of
    every full step.

    A line without a time for each of its steps stays a line. ``leave_out`` gets a sentence if the
    lines are too many or too large.
    """
    group: list[tuple[JSON, ...]] = []
    lines, bytes_left = 0, limits.OF_LINES
    while batch := rows(
        f"SELECT n, t, step, count, {WARMUP}, samples, seconds, loss, acc1, acc5, phases, "  # noqa: S608
        "partial, flop, bytes FROM step WHERE n > ? AND n <= ? ORDER BY n LIMIT ?",
        (after, upto, _PIECE),
    ):
        for row in batch:
            lines, bytes_left = lines + 1, bytes_left - bytes_of(row[6:12])
            if lines > limits.LINES or (bytes_left < 0 and lines > 1):
                leave_out(f"only the first {lines - 1:,} step lines outside the tier are read")
                yield from _together(group)
                return
            seconds = row[6]
            timed = isinstance(seconds, bytes) and len(seconds) == 8 * whole(row[3]) > 0
            if group and not (
                timed
                and len(group) < _MOST_TOGETHER
                and group[0][1] // _BUCKET_NS == whole(row[1]) // _BUCKET_NS
                and group[0][4] == row[4]
            ):
                yield from _together(group)
                group = []
            if timed:
                group.append(row)
            else:
                yield step_of(row)
        after = whole(batch[-1][0])
    yield from _together(group)


def _together(group: list[tuple[JSON, ...]]) -> Iterable[StepRow | StepBucket]:
    times = array("d")
    if not group or not _read(b"".join(row[6] for row in group), times) or not _are_times(times):
        return map(step_of, group)
    first, last, offset = group[0], group[-1], 0
    full = times
    partial: set[int] = set()
    phases: dict[str, float] = {}
    if any(row[11] is not None for row in group):
        full = array("d")
        for line in map(step_of, group):
            first_step = line.step - line.count + 1
            full.extend(
                seconds
                for step, seconds in enumerate(times[offset : offset + line.count], first_step)
                if step not in line.partial
            )
            partial.update(line.partial)
            offset += line.count
    evaluation, sampled, count = 0.0, 0.0, sum(row[3] for row in group)
    for row in group:
        told, evaluated, of = phases_of(row[10]) if row[10] is not None else ({}, 0.0, None)
        evaluation += evaluated
        sampled += row[3] if of is None else of
        for name, value in told.items():
            phases[name] = phases.get(name, 0.0) + value
    losses = [*(floats(first[7]) or ())[:1], *(floats(last[7]) or ())[-1:]]
    bucket = StepBucket(
        n=whole(last[0]),
        lines=len(group),
        t=whole(last[1]),
        start=min(whole(first[1]) - int(sum(times[: first[3]]) * 1e9), whole(last[1])),
        step=whole(last[2]),
        count=count,
        warmup=bool(first[4]),
        partial=len(partial),
        samples=_sum([number(row[5]) for row in group]),
        taken=sum(times),
        times=full,
        weights=None,
        loss=tuple(losses) or None,
        phases=phases,
        flop=_sum([number(row[12]) for row in group]),
        bytes=_sum([number(row[13]) for row in group]),
        evaluation=evaluation,
        sampled=sampled if sampled < count else None,
    )
    return (bucket,)


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _bucket(row: tuple[JSON, ...]) -> StepBucket:
    n, lines, t, start, step, count, warmup, partial, samples, taken, *rest = row
    times, weights, loss, phases, flop, size = rest
    total, step_times, step_counts = number(taken), array("d"), array("I")
    valid = (
        total is not None
        and _read(times, step_times)
        and (weights is None or _read(weights, step_counts))
        and (weights is None or len(step_counts) == len(step_times))
    )
    by_phase, evaluation, sampled = phases_of(phases)
    return StepBucket(
        n=whole(n),
        lines=whole(lines),
        t=whole(t),
        start=min(whole(start), whole(t)),
        step=whole(step),
        count=max(1, whole(count)),
        warmup=bool(warmup),
        partial=max(0, whole(partial)),
        samples=number(samples),
        taken=total if total is not None and valid else 0.0,
        times=step_times if valid else None,
        weights=step_counts if valid and weights is not None else None,
        loss=floats(loss),
        phases=by_phase,
        flop=number(flop),
        bytes=number(size),
        evaluation=evaluation,
        sampled=sampled,
    )


def _read(blob: object, into: array[float] | array[int]) -> bool:
    """Decode little-endian numbers into ``into``; returns whether the blob is valid."""
    if not isinstance(blob, bytes) or len(blob) % into.itemsize or len(blob) > limits.OF_LINES:
        return False
    into.frombytes(blob)
    if sys.byteorder == "big":
        into.byteswap()
    return True


def _are_times(values: array[float]) -> bool:
    return not values or (min(values) > 0 and math.isfinite(sum(values)))
