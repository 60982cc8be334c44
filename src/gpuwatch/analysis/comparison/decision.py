"""From tests to a verdict: what each test says of a comparison, what they say together, and why."""

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
"""Standard deviation of log-ratios under which they are one value, but for rounding."""


@dataclass(frozen=True)
class Comparison:
    """Of one environment with the baseline, before margin and level."""

    log_ratio: float | None
    mean: Mean | None
    noise: float | None
    pairs: int
    paired: bool
    ranks: Callable[[float], Ranks]
    """Rank tests after so much was taken away from the log-ratios."""
    smallest: Callable[[float], float]
    """One-sided p value that ranks of so few values can reach, after so much was taken away: those
    that are then zero are in no signed-rank test."""

    @property
    def too_few(self) -> bool:
        return self.pairs < FEWEST

    @property
    def identical(self) -> bool:
        """All values are one, but for rounding."""
        return self.mean is not None and not self.too_few and (self.noise or 0.0) < _IDENTICAL


@dataclass(frozen=True)
class Findings:
    """What each test says, at the level of its comparison."""

    noise: float
    noisy: bool
    slower: bool
    """The estimate is above zero."""
    p_rank: float | None
    excluded: bool
    """Zero, by t."""
    ranks_exclude: bool
    """... and the ranks do not object."""
    outside: bool
    """The interval is wholly beyond the margin."""
    surely_outside: bool
    """... with all comparisons together, and above the noise gate at its own level."""
    inside: bool
    """The equivalence interval is inside the margin."""
    surely_inside: bool
    ranks_inside: bool


def findings(
    comparison: Comparison, mean: Mean, margin: float, level: float, beyond: float, within: float
) -> Findings:
    """``level`` is Holm's for this comparison; ``beyond`` and ``within`` are adjusted p values."""
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
    """The verdict that the tests give together."""
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
    """Why it cannot be told, the weightiest first."""
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
