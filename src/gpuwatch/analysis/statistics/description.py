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
    """Share of the window that its samples cover, 0 to 1; ``None`` for rates. For a counter only
    where its increase is of this share alone, a lower bound."""

    def per_second(self, seconds: float) -> float | None:
        """A counter's mean rate over the part of the window, of ``seconds``, that is known."""
        known = seconds * (1.0 if self.coverage is None else self.coverage)
        return None if self.max is None or known <= 0 else self.max / known


def describe(
    values: Sequence[float | None] | np.ndarray,
    *,
    unit: str,
    method: Method,
    source: str,
    reason: str,
) -> Statistic:
    """Statistics of the known values; ``reason`` is kept only if there are none.

    ``values``: shape (n,), in ``unit``; ``None`` and NaN are unknown. Percentiles interpolate
    linearly between order statistics (numpy's default).
    """
    every = np.asarray(values, dtype=float)
    known = every[~np.isnan(every)]
    if not known.size:
        return unavailable(unit, source, reason)
    mean, most = float(known.mean()), float(known.max())
    p50, p95 = np.percentile(known, (50, 95)).tolist()
    return Statistic(unit, method, source, int(known.size), mean, p50, p95, most, None)


def unavailable(unit: str, source: str, reason: str) -> Statistic:
    """A statistic without values, and why."""
    return Statistic(unit, Method.UNAVAILABLE, source, 0, None, None, None, None, reason)
