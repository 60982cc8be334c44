"""From tests to a verdict: the result of each test, the verdict from all, and the reasons."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from gpuwatch.analysis.results import Kind
from gpuwatch.analysis.statistics.intervals import ALPHA, Mean
from gpuwatch.analysis.statistics.power import FEWEST, MOST, NOISE_GATE, NOISY_ALPHA
from gpuwatch.analysis.statistics.rank_tests import Ranks
from gpuwatch.core import units
from gpuwatch.core.lazy_dataclass import dataclass

_IDENTICAL = 1e-9
"""Standard deviation of log-ratios below which they differ only by rounding."""


@dataclass(frozen=True)
class Comparison:
    """One environment against the baseline, before margin and level; in log-ratios."""

    log_ratio: float | None
    mean: Mean | None
    noise: float | None
    pairs: int
    paired: bool
    ranks: Callable[[float], Ranks]
    """Rank tests after subtracting a shift from the log-ratios."""
    smallest: Callable[[float], float]
    """Smallest one-sided p value that ranks can reach after subtracting a shift (the signed-rank
    test leaves out zeros)."""

    @property
    def too_few(self) -> bool:
        """Whether there are too few pairs for a verdict."""
        return self.pairs < FEWEST

    @property
    def identical(self) -> bool:
        """Whether all values are equal except for rounding."""
        return self.mean is not None and not self.too_few and (self.noise or 0.0) < _IDENTICAL


@dataclass(frozen=True)
class Findings:
    """The result of each test at the level of its comparison."""

    noise: float
    noisy: bool
    slower: bool
    """The estimate is above zero."""
    p_rank: float | None
    excluded: bool
    """The t test excludes zero."""
    ranks_exclude: bool
    """The rank test excludes zero too, or cannot reach the level."""
    outside: bool
    """The interval lies wholly beyond the margin."""
    surely_outside: bool
    """The same adjusted for all comparisons, and at the stricter level above the noise gate."""
    inside: bool
    """The equivalence interval lies inside the margin."""
    surely_inside: bool
    """The same adjusted for all comparisons."""
    ranks_inside: bool
    """The rank tests confirm it, or cannot reach the level."""


def findings(
    comparison: Comparison, mean: Mean, margin: float, level: float, beyond: float, within: float
) -> Findings:
    """Evaluate the tests of a comparison.

    Args:
        mean: mean log-ratio.
        margin: relative change that matters.
        level: Holm's level for this comparison.
        beyond: Holm-adjusted p value of a change within the margin.
        within: Holm-adjusted p value of a change beyond the margin.
    """
    edge = math.log1p(margin)
    noise = comparison.noise or 0.0
    noisy = noise > NOISE_GATE * margin
    low, high = mean.bounds(1 - level)
    lower, upper = mean.bounds(1 - 2 * level)
    outside = low > edge or high < -edge
    inside = -edge < lower and upper < edge
    at_zero = comparison.ranks(0.0) if 2 * comparison.smallest(0.0) <= level else None
    ranks_inside = (
        comparison.smallest(-edge) > level or comparison.ranks(-edge).above <= level
    ) and (comparison.smallest(edge) > level or comparison.ranks(edge).below <= level)
    return Findings(
        noise=noise,
        noisy=noisy,
        slower=mean.value > 0,
        p_rank=None if at_zero is None else at_zero.two_sided,
        excluded=mean.p_zero() <= level,
        ranks_exclude=at_zero is None
        or 2 * (at_zero.above if mean.value > 0 else at_zero.below) <= level,
        outside=outside,
        surely_outside=outside and beyond <= (NOISY_ALPHA if noisy else ALPHA),
        inside=inside,
        surely_inside=inside and within <= ALPHA,
        ranks_inside=ranks_inside,
    )


def kind_of(found: Findings) -> Kind:
    """The verdict of all tests together."""
    different = found.excluded and found.ranks_exclude
    if different and found.surely_outside:
        return Kind.SLOWER if found.slower else Kind.FASTER
    if found.surely_inside and found.ranks_inside and not found.noisy:
        if different:
            return Kind.SMALL
        if not found.excluded:
            return Kind.SAME
    return Kind.CANT_TELL


def reasons_of(
    found: Findings, comparison: Comparison, margin: float, comparisons: int, more: int | None
) -> Iterator[str]:
    """Why there is no verdict, the most important reason first."""
    limit = f"{margin * 100:.3g} %"
    test = "signed-rank" if comparison.paired else "Mann-Whitney"
    together = f"with {comparisons} comparisons together it is not certain enough that it is"
    if found.noisy:
        yield f"noise of {units.percent(found.noise)} is too much for a {limit} question"
    if found.excluded and not found.ranks_exclude:
        yield f"the {test} test does not confirm the difference (p = {found.p_rank:.2g})"
    elif found.outside and found.noisy:
        surer = f"{(1 - NOISY_ALPHA) * 100:g} % interval"
        yield f"at such noise the {surer}, too, must be beyond {limit}"
    elif found.outside:
        yield f"{together} more than {limit}"
    elif found.excluded and not found.inside:
        yield f"there is a difference, but whether it is more than {limit} cannot be told"
    elif found.inside and not found.surely_inside:
        yield f"{together} within {limit}"
    elif found.inside and not found.ranks_inside:
        yield f"the {test} test does not confirm that it is within {limit}"
    elif not found.inside and not found.noisy:
        yield f"it may be none, and it may be more than {limit}"
    if more is None and not found.noisy:
        yield f"no reasonable number of blocks ({MOST} or fewer) would decide it"
