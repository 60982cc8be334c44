"""When in its interval each sample is taken."""

from __future__ import annotations

import random

STRIDE = 0.25
"""Most that the moment moves from one interval to the next, as a share of the interval."""


class Beat:
    """The moment of each sample within its interval: 0 is the beginning, 1 the end.

    A load whose period is the sampling interval looks constant to samples that are taken at the
    same moment of every interval. So the moment moves by random strides to the end of the interval
    and back, and is everywhere equally often. Two samples are 3/4 to 5/4 of the interval apart, and
    nothing drifts: each interval has its one sample.
    """

    def __init__(self, moment: float) -> None:
        """``moment``: of the first sample."""
        self._way = moment
        """How far it is on the way to the end (up to 1) and back (up to 2)."""

    def next(self) -> float:
        """The moment of the next sample."""
        self._way = (self._way + random.uniform(0, STRIDE)) % 2  # noqa: S311 (no secret)
        return 1 - abs(1 - self._way)
