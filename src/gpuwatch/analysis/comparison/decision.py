"""From tests to a verdict: the result of each test, the verdict from all, and the reasons."""

from __future__ import annotations

import math
from collections.abc import Iterator

from gpuwatch.analysis.results import Kind
from gpuwatch.analysis.statistics.intervals import ALPHA, FEWEST, Mean
from gpuwatch.analysis.statistics.power import MOST, NOISE_GATE, NOISY_ALPHA
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
    """The adjusted p value of a change within the margin."""
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
    """The same adjusted for all tests, and at the stricter level above the noise gate."""
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
        surely_outside=outside and levels.beyond <= (NOISY_ALPHA if noisy else ALPHA),
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
    found: Findings, noise: float, margin: float, comparisons: int, more: int | None
) -> Iterator[str]:
    """Why there is no verdict, the most important reason first."""
    limit = f"{margin * 100:.3g} %"
    together = f"with {comparisons} comparisons together it is not certain enough that it is"
    if found.noisy:
        yield f"noise of {units.percent(noise)} is too much for a {limit} question"
    if found.outside and found.noisy:
        surer = f"{(1 - NOISY_ALPHA) * 100:g} % interval"
        yield f"at such noise the {surer}, too, must be beyond {limit}"
    elif found.outside:
        yield f"{together} more than {limit}"
    elif found.excluded and not found.nearly_inside:
        yield f"there is a difference, but whether it is more than {limit} cannot be told"
    elif found.nearly_inside and not found.inside:
        yield f"{together} within {limit}"
    elif not found.inside and not found.noisy:
        yield f"it may be none, and it may be more than {limit}"
    if more is None and not found.noisy:
        yield f"no reasonable number of blocks ({MOST} or fewer) would decide it"
