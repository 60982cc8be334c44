"""The step times of a run, as an array."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gpuwatch.analysis.samples.rates import StepLine
from gpuwatch.analysis.samples.step_lines import times_of


class Series:
    """The times of a run's full timed steps, in seconds and in their order."""

    def __init__(self, times: np.ndarray) -> None:
        """``times``: (n,), seconds."""
        self.times = times
        self._width, self._rest = 1, 0

    @property
    def size(self) -> int:
        """How many steps."""
        return int(self.times.size)

    def good(self) -> bool:
        """Whether each time is finite and above 0."""
        return bool((np.isfinite(self.times) & (self.times > 0)).all())

    def binned(self, most: int) -> np.ndarray:
        """Medians (b,), b <= ``most``, of equal numbers of neighbouring steps, in seconds; the last
        bin ends with the last step."""
        self._width = math.ceil(self.times.size / most)
        self._rest = self.times.size % self._width  # steps before the first bin, left out
        medians: np.ndarray = np.median(self.times[self._rest :].reshape(-1, self._width), axis=1)
        return medians

    def at(self, place: int) -> int:
        """First step of a bin of :meth:`binned`; 0 for the first bin."""
        return self._rest + self._width * place if place else 0

    def level(self, begin: int, end: int) -> float:
        """Median of the steps ``begin <= n < end``, in seconds."""
        return float(np.median(self.times[begin:end]))

    def spread(self, begin: int, around: float) -> float:
        """Median distance from ``around`` of the steps from ``begin`` on, in seconds."""
        return float(np.median(np.abs(self.times[begin:] - around)))

    def quantiles(self, *shares: float, begin: int = 0) -> list[float]:
        """Quantiles of the steps from ``begin`` on in seconds; 0 and 1 are the shortest and the
        longest."""
        return [float(value) for value in np.quantile(self.times[begin:], shares)]

    def mean(self) -> float:
        """Mean of all steps in seconds."""
        return float(self.times.mean())


StepTimes = tuple[Series, str | None]
"""Step times, and the reason where they are not step times."""


def series_of(timed: Sequence[StepLine]) -> StepTimes:
    """The step times of these lines; see :func:`times_of`."""
    times, reason = times_of(timed)
    return Series(np.array(times)), reason
