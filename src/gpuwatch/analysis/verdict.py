"""Verdicts on the step times of runs: what can be said of one environment against another."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.analysis.results import Interval, Verdict

ALPHA = 0.05
"""Error that all comparisons of a question share."""
FEWEST = 5
"""Pairs, or runs on each side, that a verdict needs; with fewer the figures are described."""


def paired(log_ratios: Sequence[Sequence[float]], margin: float) -> tuple[Verdict, ...]:
    """Verdicts on environments that were run in the same blocks.

    ``log_ratios``: for each comparison the natural logarithms of other over baseline, one of each
    block. ``margin``: relative (0.01 is 1 %). All comparisons share Holm's procedure.

    Raises:
        ValueError: a value is not finite, or the margin is not above 0.
    """
    raise NotImplementedError


def unpaired(
    baseline: Sequence[float], others: Sequence[Sequence[float]], margin: float
) -> tuple[Verdict, ...]:
    """Verdicts on runs that share no blocks: natural logarithms of the values of each.

    Raises:
        ValueError: a value is not finite, or the margin is not above 0.
    """
    raise NotImplementedError


def invalid(reasons: Sequence[str], margin: float, paired: bool, pairs: int) -> Verdict:
    """The verdict on two that are not comparable, for ``reasons`` that name why."""
    raise NotImplementedError


def outliers(values: Sequence[float]) -> tuple[bool, ...]:
    """Which of ``values`` lie more than ten scaled median absolute deviations from their median."""
    raise NotImplementedError


def interval(log_ratios: Sequence[float], level: float = 0.95) -> Interval | None:
    """Student's t interval of the mean log-ratio, as a relative change; ``None`` under two."""
    raise NotImplementedError


def difference(values: Sequence[float], level: float = 0.95) -> Interval | None:
    """Student's t interval of the mean of ``values``, in their own unit; ``None`` under two."""
    raise NotImplementedError
