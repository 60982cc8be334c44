"""Summary statistics of samples, as tables show them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method


@dataclass(frozen=True)
class Statistic:
    """Statistics of a metric over a window, in ``unit``; ``None`` is unknown, for ``reason``.

    A counter starts from 0 at the window's start, so its ``max`` is the increase over the window.
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
    """Share of the window that a gauge's samples cover, 0 to 1; ``None`` for counters and rates."""


def describe(
    values: Sequence[float | int | None] | np.ndarray,
    *,
    unit: str,
    method: Method,
    source: str,
    reason: str,
) -> Statistic:
    """Statistics of the known values; ``reason`` is kept only if there are none.

    ``values``: shape (n,), in ``unit``; ``None`` in a sequence and NaN in an array are unknown.
    Percentiles interpolate linearly between order statistics (numpy's default).
    """
    if isinstance(values, np.ndarray):
        unknown = np.isnan(values)
        known = values[~unknown] if unknown.any() else values
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
    """A statistic without values, and why."""
    return Statistic(unit, Method.UNAVAILABLE, source, 0, None, None, None, None, reason)
