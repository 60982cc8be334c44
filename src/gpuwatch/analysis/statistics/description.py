"""Describing samples: what a table shows of a metric."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method


@dataclass(frozen=True)
class Statistic:
    """A metric over a window, in the metric's unit; ``None`` is unknown, and ``reason`` says why.

    A counter counts from the window's start, so that its ``max`` is what the window added.
    """

    unit: str
    method: Method
    source: str
    count: int
    mean: float | None
    p50: float | None
    p95: float | None
    max: float | None
    reason: str | None
    coverage: float | None = None
    """Share of the window that the samples of a gauge cover, 0 to 1; not of counters and rates."""


def describe(
    values: Sequence[float | int | None] | np.ndarray,
    *,
    unit: str,
    method: Method,
    source: str,
    reason: str,
) -> Statistic:
    """Statistics of the values that are known; ``reason`` is given only if there are none.

    A NaN in an array is unknown. Percentiles interpolate linearly between order statistics
    (numpy's default).
    """
    if isinstance(values, np.ndarray):
        known = values[~np.isnan(values)]
    else:
        known = np.array([value for value in values if value is not None], dtype=float)
    if not known.size:
        return Statistic(unit, Method.UNAVAILABLE, source, 0, None, None, None, None, reason)
    p50, p95 = np.percentile(known, (50, 95))
    return Statistic(
        unit,
        method,
        source,
        int(known.size),
        float(known.mean()),
        float(p50),
        float(p95),
        float(known.max()),
        None,
    )


def unavailable(unit: str, source: str, reason: str) -> Statistic:
    return Statistic(unit, Method.UNAVAILABLE, source, 0, None, None, None, None, reason)
