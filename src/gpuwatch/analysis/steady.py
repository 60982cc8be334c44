"""The steady part of a run: where the step time had stopped changing."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.analysis.results import Steady


def steady_state(seconds: Sequence[float]) -> Steady:
    """The steady part of ``seconds``, the times of a run's full timed steps in their order.

    Raises:
        ValueError: a time is not finite and above 0.
    """
    raise NotImplementedError
