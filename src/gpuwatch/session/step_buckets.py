"""Reading the tier of steps; ``step_tier.py`` writes it."""

from __future__ import annotations

import math
import sys
from array import array

from gpuwatch.models import JSON, mapping, number
from gpuwatch.session.parsed import json_of
from gpuwatch.session.reader_bulk import floats
from gpuwatch.session.rows import Query, StepBucket
from gpuwatch.session.suspicion import whole

_PIECE = 1000
_MOST = 1_000_000
"""Rows of ten seconds: 115 days."""


def buckets(rows: Query, after: int = -1) -> list[StepBucket]:
    """The rows of the tier behind the step line ``after``, in order.

    Lines may be in none: those since the last row, and where one recorder followed another.
    """
    found: list[StepBucket] = []
    while len(found) < _MOST and (
        read := rows(
            "SELECT n, lines, t, start, step, count, warmup, partial, samples, taken, times, "
            "weights, loss, phases, flop, bytes FROM step_tier WHERE n > ? ORDER BY n LIMIT ?",
            (after, _PIECE),
        )
    ):
        for row in read:
            bucket = _bucket(row)
            if bucket.lines < 1 or bucket.n - bucket.lines < after:
                raise ValueError("a row of the tier covers lines of another one")
            found.append(bucket)
            after = bucket.n
    return found


def _bucket(row: tuple[JSON, ...]) -> StepBucket:
    n, lines, t, start, step, count, warmup, partial, samples, taken, *rest = row
    times, weights, loss, phases, flop, size = rest
    known = {str(name): number(value) for name, value in mapping(json_of(phases)).items()}
    together, single, several = number(taken), array("d"), array("I")
    told = (
        together is not None
        and _read(times, single)
        and (weights is None or _read(weights, several))
        and _are_times(single)
        and (weights is None or (len(several) == len(single) and min(several, default=0) > 0))
    )
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
        taken=together if together is not None and told else 0.0,
        times=single if told else None,
        weights=several if told and weights is not None else None,
        loss=floats(loss),
        phases={name: value for name, value in known.items() if value is not None},
        flop=number(flop),
        bytes=number(size),
    )


def _read(blob: object, into: array[float] | array[int]) -> bool:
    """Whether these are little-endian numbers, which are then in ``into``."""
    if not isinstance(blob, bytes) or len(blob) % into.itemsize:
        return False
    into.frombytes(blob)
    if sys.byteorder == "big":
        into.byteswap()
    return True


def _are_times(values: array[float]) -> bool:
    return not values or (min(values) > 0 and math.isfinite(sum(values)))
