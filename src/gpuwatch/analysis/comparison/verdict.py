"""Verdicts on the times of runs: one environment against another.

All tests use natural logarithms, so that swapping the two sides mirrors the result. The trimmed
mean over the blocks gives estimate and intervals, two one-sided tests (Schuirmann 1987, J.
Pharmacokinetics and Biopharmaceutics 15) equivalence, Holm's procedure the levels where a question
has several values or comparisons. docs/statistics.md explains what each verdict means.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from gpuwatch.analysis.results import Kind, Verdict
from gpuwatch.analysis.statistics.intervals import (
    ALPHA,
    FEWEST,
    LEAST,
    Mean,
    finite,
    holm_adjusted,
    holm_levels,
    lower_end,
    mean_of,
    relative,
    welch,
)
from gpuwatch.analysis.statistics.power import (
    MOST,
    NOISE_GATE,
    NOISY_ALPHA,
    blocks_to_decide,
    ways_beyond,
)
from gpuwatch.core import units
from gpuwatch.core.lazy_dataclass import dataclass

_IDENTICAL = 1e-9
"""Standard deviation of log-ratios below which they differ only by rounding."""


@dataclass(frozen=True)
class Sample:
    """One value of one environment against the baseline, before margin and level; in log-ratios."""

    log_ratio: float | None
    mean: Mean | None
    noise: float | None
    pairs: int
    paired: bool

    @property
    def too_few(self) -> bool:
        """Whether there are too few pairs for a verdict."""
        return self.pairs < FEWEST

    @property
    def identical(self) -> bool:
        """Whether all values are equal except for rounding."""
        return self.mean is not None and not self.too_few and (self.noise or 0.0) < _IDENTICAL


@dataclass(frozen=True)
class Levels:
    """What Holm's procedure gives one value of one comparison."""

    zero: float
    """The level of its test of no difference."""
    beyond: float
    """The adjusted p value of :func:`_p_beyond`."""
    within: float
    """The level of its tests of equivalence: the values of a comparison must all pass them, so
    that only comparisons share it."""


@dataclass(frozen=True)
class Findings:
    """The result of each test of one value."""

    noisy: bool
    slower: bool
    """The estimate is above zero."""
    excluded: bool
    """The test excludes zero."""
    outside: bool
    """The interval lies wholly beyond the margin."""
    surely_outside: bool
    """The same adjusted for all tests, and surer above the noise gate."""
    beyond_noise: bool
    """The interval lies wholly beyond half the noise."""
    inside: bool
    """The equivalence interval lies inside the margin."""
    nearly_inside: bool
    """It would, without other comparisons."""


def findings(sample: Sample, mean: Mean, margin: float, levels: Levels) -> Findings:
    """Evaluate the tests of one value; ``margin`` is the relative change that matters."""
    edge = math.log1p(margin)
    noisy = (sample.noise or 0.0) > NOISE_GATE * margin
    low, high = mean.bounds(1 - levels.zero)
    outside = low > edge or high < -edge
    within = mean.p_within(edge)
    return Findings(
        noisy=noisy,
        slower=mean.value > 0,
        excluded=mean.p_zero() <= levels.zero,
        outside=outside,
        surely_outside=outside and levels.beyond <= ALPHA,
        beyond_noise=max(low, -high) > math.log1p((sample.noise or 0.0) / NOISE_GATE),
        inside=within <= levels.within,
        nearly_inside=within <= ALPHA,
    )


def kind_of(found: Findings) -> Kind:
    """The verdict on one value."""
    if found.excluded and found.surely_outside:
        return Kind.SLOWER if found.slower else Kind.FASTER
    if found.inside and not found.noisy:
        return Kind.SMALL if found.excluded else Kind.SAME
    return Kind.CANT_TELL


def joint(typical: Kind, total: Kind) -> tuple[Kind, bool]:
    """The verdict on both values, and whether all steps decide it against the typical one.

    What users pay, the time of all steps, decides if it is slower or faster; if it is neither, a
    typical step that differs is a difference within the margin.
    """
    decided = (Kind.SLOWER, Kind.FASTER)
    if total in decided:
        return total, total is not typical
    if typical in decided:
        return (typical, False) if total is Kind.CANT_TELL else (Kind.SMALL, True)
    if Kind.CANT_TELL in (typical, total):
        return Kind.CANT_TELL, False
    return (Kind.SMALL if Kind.SMALL in (typical, total) else Kind.SAME), False


def reasons_of(
    found: Findings, noise: float, margin: float, tests: int, more: int | None, p_beyond: float
) -> Iterator[str]:
    """Why there is no verdict, the most important reason first; ``p_beyond``: as in
    :class:`Verdict`."""
    limit = f"{margin * 100:.3g} %"
    unsure = f"but not sure enough with {tests} tests together"
    vary = f"runs {_VARY.format(units.percent(noise))}"
    differs = "there is a difference, but " if found.excluded and not found.nearly_inside else ""
    if found.outside and found.noisy and not found.beyond_noise:
        asked = f"beyond {units.percent(noise / NOISE_GATE)}, or p at most {NOISY_ALPHA}"
        yield f"its interval is beyond {limit}, but as {vary} it must be {asked} (p {p_beyond:.2g})"
        return
    if found.noisy and not found.outside:
        yield f"{differs}{vary}, too much for a {limit} question"
    if found.outside:
        yield f"probably a difference of more than {limit}, {unsure}"
    elif differs and not found.noisy:
        yield f"{differs}it may be less than {limit}"
    elif found.nearly_inside and not found.inside:
        yield f"probably within {limit}, {unsure}"
    elif not found.inside and not found.noisy:
        yield f"it may be none, and it may be more than {limit}"
    if more is None and not found.noisy:
        yield f"no reasonable number of blocks ({MOST} or fewer) would decide it"


OUTLIER = 10.0
"""Scaled median absolute deviations from the median beyond which a value is an outlier."""
SCALE = 1.4826
"""Standard deviation of normal values over their median absolute deviation."""
_RESOLUTION = 1e-6
"""Relative difference that a clock cannot resolve."""

Values = Sequence[float]


def paired(
    log_ratios: Sequence[Values],
    margin: float,
    *,
    totals: Sequence[Values] = (),
    places: Sequence[Values] = (),
) -> tuple[Verdict, ...]:
    """Verdicts on environments that ran in the same blocks; all share Holm's procedure.

    Args:
        log_ratios: for each comparison, the natural logarithms of other over baseline by block, of
            the typical step.
        margin: relative change that matters (0.01 is 1 %).
        totals: the same of the time per step over all steps; empty: only one value is judged.
        places: for each comparison, by how many places the other ran after the baseline in each
            block; empty: not known.

    Raises:
        ValueError: a value is not finite, or the margin is not above 0.
    """
    where = places or [[0.0] * len(values) for values in log_ratios]
    samples = [
        [_paired(*each) for each in zip(values, where, strict=True)]
        for values in ((log_ratios, totals) if totals else (log_ratios,))
    ]
    return _verdicts(list(zip(*samples, strict=True)), margin)


def unpaired(
    baseline: Values,
    others: Sequence[Values],
    margin: float,
    *,
    totals: tuple[Values, Sequence[Values]] | None = None,
) -> tuple[Verdict, ...]:
    """Verdicts on runs without shared blocks, from the natural logarithms of their values.

    ``totals``: those of the time per step over all steps, of the baseline and of the others.

    Raises:
        ValueError: a value is not finite, or the margin is not above 0.
    """
    sides = [(baseline, others)] if totals is None else [(baseline, others), totals]
    samples = [[_unpaired(first, second) for second in rest] for first, rest in sides]
    return _verdicts(list(zip(*samples, strict=True)), margin)


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


def _paired(values: Values, places: Values) -> Sample:
    array = finite(values)
    mean = mean_of(array, finite(places))
    return Sample(
        log_ratio=None if not array.size else mean.value if mean else float(array[0]),
        mean=mean,
        noise=None if mean is None else mean.error / mean.wider * math.sqrt(array.size / 2),
        pairs=array.size,
        paired=True,
    )


def _unpaired(first: Values, second: Values) -> Sample:
    baseline, other = finite(first), finite(second)
    mean = welch(baseline, other)
    known = min(baseline.size, other.size)
    noise = None
    if mean is not None:
        noise = mean.error / math.sqrt(1 / baseline.size + 1 / other.size)
    return Sample(
        log_ratio=float(np.mean(other) - np.mean(baseline)) if known else None,
        mean=mean,
        noise=noise,
        pairs=known,
        paired=False,
    )


def _verdicts(comparisons: Sequence[tuple[Sample, ...]], margin: float) -> tuple[Verdict, ...]:
    """The verdict of each comparison, which has one or two values."""
    if not margin > 0 or not math.isfinite(margin):
        raise ValueError("the margin must be above 0")
    judged = [of for each in comparisons if (of := _testable(each))]
    edge, tested = math.log1p(margin), [each for of in judged for each in of]
    zero = iter(holm_levels([mean.p_zero() for mean, _ in tested]))
    beyond = iter(holm_adjusted([_p_beyond(*each, margin) for each in tested]))
    within = iter(holm_levels([max(mean.p_within(edge) for mean, _ in of) for of in judged]))
    found = []
    for each in comparisons:
        level = next(within) if _testable(each) else ALPHA
        alone = [
            _of_value(
                value, mean, margin, Levels(next(zero), next(beyond), level), len(judged), len(each)
            )
            if (mean := _mean_to_test(value)) is not None
            else _undecidable(value, margin)
            for value in each
        ]
        found.append(_joint(alone))
    return tuple(found)


def _mean_to_test(value: Sample) -> Mean | None:
    return None if value.too_few or value.identical else value.mean


def _testable(values: Sequence[Sample]) -> list[tuple[Mean, float]]:
    """Mean and noise of each."""
    means = ((_mean_to_test(each), each.noise or 0.0) for each in values)
    return [(mean, noise) for mean, noise in means if mean is not None]


def _p_beyond(mean: Mean, noise: float, margin: float) -> float:
    """p value of a change within the margin, as strict as the noise asks."""
    return min(1.0, *(mean.p_beyond(at) / factor for at, factor in ways_beyond(noise, margin)))


def _undecidable(sample: Sample, margin: float) -> Verdict:
    """The verdict without a test: too few values, or all of them equal."""
    of = "pairs" if sample.paired else "runs of each"
    if sample.too_few:
        kind = Kind.DESCRIBED
        change = sample.mean if sample.pairs >= LEAST else None
        reason = f"a verdict needs {FEWEST} {of}; there are {sample.pairs}"
    else:
        # An interval of no width would claim a certainty that a clock cannot give.
        kind, change = Kind.CANT_TELL, None
        same = "pairs have exactly the same ratio" if sample.paired else f"{of} are equal"
        reason = f"the {sample.pairs} {same}, as timings never are: "
        reason += "the clock is too coarse for these steps, or files are copies"
    return Verdict(
        kind,
        None if change is None else change.change(1 - ALPHA),
        None,
        margin,
        sample.pairs,
        sample.paired,
        sample.noise,
        estimate=None if sample.log_ratio is None else relative(sample.log_ratio),
        reasons=(reason,),
    )


def _joint(alone: Sequence[Verdict]) -> Verdict:
    """The verdict of one comparison from those on its values, the typical step first."""
    first, total = alone[0], alone[-1]
    if len(alone) == 1:
        return first
    kind, by_total = first.kind, False
    if kind is not Kind.DESCRIBED:
        kind, by_total = joint(first.kind, total.kind)
    reasons: tuple[str, ...] = ()
    more = None
    if kind is Kind.DESCRIBED:
        reasons = first.reasons
    elif kind is Kind.CANT_TELL:
        open_ = [each for each in alone if each.kind is Kind.CANT_TELL]
        deciding = beyond_margin(open_)
        needed = [each.more_blocks for each in deciding or open_]
        known = [each for each in needed if each is not None]
        if deciding:  # one that is SLOWER or FASTER is enough, for SAME it takes both
            more = min(known, default=None)
        else:
            more = None if None in needed else max(known)
        reasons = first.reasons
        # Without their noises the reasons of two values may be one, that names both.
        both = [
            [reason.replace(_VARY.format(units.percent(of.noise)), _VARY) for reason in of.reasons]
            for of in alone
        ]
        if len(open_) > 1 and both[0] == both[1] and first.reasons != total.reasons:
            noise = f"{units.percent(first.noise)} (throughput by {units.percent(total.noise)})"
            reasons = tuple(each.replace(_VARY, _VARY.format(noise)) for each in both[0])
        elif first.reasons != total.reasons:
            named = zip(("typical step", "throughput"), alone, strict=True)
            reasons = tuple(
                f"{name}: {', '.join(each.reasons)}" for name, each in named if each in open_
            )
    return replace(
        first,
        kind=kind,
        total=total,
        typical=first.kind,
        by_total=by_total,
        reasons=reasons,
        more_blocks=more,
    )


def beyond_margin(values: Sequence[Verdict]) -> list[Verdict]:
    """Those whose estimates are beyond the margin."""
    return [
        each
        for each in values
        if not lower_end(each.margin) <= (each.estimate or 0.0) <= each.margin
    ]


_VARY = "vary by {}"


def _of_value(
    sample: Sample, mean: Mean, margin: float, levels: Levels, comparisons: int, values: int
) -> Verdict:
    """The verdict on one value alone."""
    found = findings(sample, mean, margin, levels)
    kind = kind_of(found)
    change = mean.change(1 - levels.zero)
    noise = sample.noise or 0.0
    reasons: tuple[str, ...] = ()
    more = None
    edge, beyond = math.log1p(margin), _p_beyond(mean, noise, margin)
    # Adjusted as that which decides was, so that the two never contradict each other.
    p_beyond = min(1.0, mean.p_beyond(edge) * (levels.beyond / beyond if beyond else 1.0))
    if kind is Kind.CANT_TELL:
        more = blocks_to_decide(change.estimate, noise, margin, comparisons, values)
        more = None if more is None else max(more, sample.pairs + 1)
        reasons = tuple(reasons_of(found, noise, margin, comparisons * values, more, p_beyond))
    return Verdict(
        kind,
        change,
        mean.change(1 - 2 * levels.within),
        margin,
        sample.pairs,
        sample.paired,
        noise,
        p_zero=mean.p_zero(),
        p_beyond=p_beyond,
        comparisons=comparisons,
        more_blocks=more,
        estimate=change.estimate,
        reasons=reasons,
    )
