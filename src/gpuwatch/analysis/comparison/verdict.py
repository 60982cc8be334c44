"""Verdicts on the step times of runs: one environment against another.

All tests use natural logarithms, so that swapping the two sides mirrors the result. Student's t
gives estimate and intervals, two one-sided tests (Schuirmann 1987, J. Pharmacokinetics and
Biopharmaceutics 15) equivalence, Holm's procedure the levels where a question has several
comparisons, and a rank test must agree if so few values can reach its level at all.
docs/statistics.md explains what each verdict means.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gpuwatch.analysis.comparison.decision import Comparison, findings, kind_of, reasons_of
from gpuwatch.analysis.results import Kind, Verdict
from gpuwatch.analysis.statistics.intervals import (
    ALPHA,
    LEAST,
    Mean,
    difference,
    finite,
    holm_adjusted,
    holm_levels,
    interval,
    mean_of,
    relative,
    welch,
)
from gpuwatch.analysis.statistics.power import FEWEST, blocks_to_decide
from gpuwatch.analysis.statistics.rank_tests import mann_whitney, signed_rank

__all__ = ["FEWEST", "difference", "interval", "invalid", "outliers", "paired", "unpaired"]

OUTLIER = 10.0
"""Scaled median absolute deviations from the median beyond which a value is an outlier."""
SCALE = 1.4826
"""Standard deviation of normal values over their median absolute deviation."""
_RESOLUTION = 1e-6
"""Relative difference that a clock cannot resolve."""


def paired(log_ratios: Sequence[Sequence[float]], margin: float) -> tuple[Verdict, ...]:
    """Verdicts on environments that ran in the same blocks; all share Holm's procedure.

    Args:
        log_ratios: for each comparison, the natural logarithms of other over baseline by block.
        margin: relative change that matters (0.01 is 1 %).

    Raises:
        ValueError: a value is not finite, or the margin is not above 0.
    """
    return _verdicts([_paired(finite(values)) for values in log_ratios], margin)


def unpaired(
    baseline: Sequence[float], others: Sequence[Sequence[float]], margin: float
) -> tuple[Verdict, ...]:
    """Verdicts on runs without shared blocks, from the natural logarithms of their values.

    Raises:
        ValueError: a value is not finite, or the margin is not above 0.
    """
    first = finite(baseline)
    return _verdicts([_unpaired(first, finite(values)) for values in others], margin)


def invalid(reasons: Sequence[str], margin: float, paired: bool, pairs: int) -> Verdict:
    """The verdict INVALID: the two are not comparable, for ``reasons``."""
    return Verdict(Kind.INVALID, None, None, margin, pairs, paired, None, reasons=tuple(reasons))


def outliers(values: Sequence[float]) -> tuple[bool, ...]:
    """Which of ``values`` lie more than ten scaled median absolute deviations from their median.

    The scale is at least a millionth of the median, the resolution of a clock, since it is zero
    where half of the values are equal. Fewer than three values have no outlier.

    Raises:
        ValueError: a value is not finite.
    """
    array = finite(values)
    if array.size < 3:
        return (False,) * array.size
    median = float(np.median(array))
    distance = np.abs(array - median)
    scale = max(SCALE * float(np.median(distance)), _RESOLUTION * abs(median))
    return tuple(bool(each) for each in distance > OUTLIER * scale)


def _paired(values: np.ndarray) -> Comparison:
    mean = mean_of(values)
    return Comparison(
        log_ratio=float(np.mean(values)) if values.size else None,
        mean=mean,
        noise=None if mean is None else mean.error * math.sqrt(values.size / 2),
        pairs=values.size,
        paired=True,
        ranks=lambda shift: signed_rank(values - shift),
        smallest=lambda shift: 0.5 ** int(np.count_nonzero(values - shift)),
    )


def _unpaired(baseline: np.ndarray, other: np.ndarray) -> Comparison:
    known = min(baseline.size, other.size)
    noise = None
    if known >= 2:
        squares = [float(np.var(each, ddof=1)) * (each.size - 1) for each in (baseline, other)]
        noise = math.sqrt(sum(squares) / (baseline.size + other.size - 2))
    return Comparison(
        log_ratio=float(np.mean(other) - np.mean(baseline)) if known else None,
        mean=welch(baseline, other),
        noise=noise,
        pairs=known,
        paired=False,
        ranks=lambda shift: mann_whitney(other - shift, baseline),
        smallest=lambda _: 1 / math.comb(baseline.size + other.size, other.size),
    )


def _verdicts(comparisons: Sequence[Comparison], margin: float) -> tuple[Verdict, ...]:
    if not margin > 0 or not math.isfinite(margin):
        raise ValueError("the margin must be above 0")
    edge = math.log1p(margin)
    judged = [each for each in comparisons if not each.too_few and not each.identical]
    means = [each.mean for each in judged if each.mean is not None]
    levels = iter(holm_levels([mean.p_zero() for mean in means]))
    beyond = iter(holm_adjusted([mean.p_beyond(edge) for mean in means]))
    within = iter(holm_adjusted([mean.p_within(edge) for mean in means]))
    return tuple(
        _undecidable(each, margin)
        if each.mean is None or each.too_few or each.identical
        else _verdict(each, each.mean, margin, next(levels), next(beyond), next(within), len(means))
        for each in comparisons
    )


def _undecidable(comparison: Comparison, margin: float) -> Verdict:
    """The verdict without a test: too few values, or all of them equal."""
    of = "pairs" if comparison.paired else "runs of each"
    if comparison.too_few:
        kind = Kind.DESCRIBED
        change = comparison.mean if comparison.pairs >= LEAST else None
        reason = f"a verdict needs {FEWEST} {of}; there are {comparison.pairs}"
    else:
        # An interval of no width would claim a certainty that a clock cannot give.
        kind, change = Kind.CANT_TELL, None
        same = "pairs have exactly the same ratio" if comparison.paired else f"{of} are equal"
        reason = f"all {comparison.pairs} {same}, as timings never are: "
        reason += "the clock is too coarse for these steps, or files are copies"
    return Verdict(
        kind,
        None if change is None else change.change(1 - ALPHA),
        None,
        margin,
        comparison.pairs,
        comparison.paired,
        comparison.noise,
        estimate=None if comparison.log_ratio is None else relative(comparison.log_ratio),
        reasons=(reason,),
    )


def _verdict(
    comparison: Comparison,
    mean: Mean,
    margin: float,
    level: float,
    beyond: float,
    within: float,
    comparisons: int,
) -> Verdict:
    """The verdict of one comparison; the arguments are those of :func:`findings`."""
    results = findings(comparison, mean, margin, level, beyond, within)
    kind = kind_of(results)
    change = mean.change(1 - level)
    reasons: tuple[str, ...] = ()
    more = None
    if kind is Kind.CANT_TELL:
        more = blocks_to_decide(change.estimate, results.noise, margin, comparisons)
        more = None if more is None else max(more, comparison.pairs + 1)
        reasons = tuple(reasons_of(results, comparison, margin, comparisons, more))
    return Verdict(
        kind,
        change,
        mean.change(1 - 2 * level),
        margin,
        comparison.pairs,
        comparison.paired,
        results.noise,
        p_zero=mean.p_zero(),
        p_rank=results.p_rank,
        comparisons=comparisons,
        more_blocks=more,
        estimate=change.estimate,
        reasons=reasons,
    )
