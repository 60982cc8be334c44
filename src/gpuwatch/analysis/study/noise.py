"""The noise floor of a machine: one environment compared with itself."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gpuwatch.analysis.results import Contrast, NoiseFloor, Verdict
from gpuwatch.analysis.statistics.intervals import FEWEST, Interval, freedom
from gpuwatch.analysis.statistics.power import POWER, DetectableChange, resolves
from gpuwatch.core import units

BLOCKS = (5, 7, 10, 20)
"""Numbers of blocks whose resolution is reported."""
_USUAL = 10
"""Default number of blocks of a study."""
_TAIL = 0.025
"""Error on each side of the 95 % interval of the noise."""
_ABSURD = 1.0
"""Relative change from which on the exact size is not reported."""


def noise_floor(label: str, contrast: Contrast, margin: float) -> NoiseFloor | None:
    """The noise floor from an environment compared with itself; ``None`` if noise or interval is
    unknown.

    ``margin``: relative change that matters.
    """
    verdict = contrast.verdict
    if verdict.noise is None or verdict.change is None or not math.isfinite(verdict.noise):
        return None
    detectable = tuple(resolves(verdict.noise, margin, blocks) for blocks in BLOCKS)
    out = "drift taken out" if verdict.paired else "drift included, as the runs share no blocks"
    low, high = _interval(verdict)
    shared = "blocks" if verdict.paired else "runs of each"
    between = f"{_range(low, high)} by {verdict.pairs} {shared}"
    sentences = [f"One run here varies by {units.percent(verdict.noise)} ({between}; {out})."]
    if verdict.pairs < FEWEST:
        sentences.append(f"{verdict.pairs} {shared} are few: the figure is rough.")
    sentences.append(_resolution(detectable))
    sentences += _disturbed(verdict.change)
    text = " ".join(sentences)
    return NoiseFloor(label, verdict.noise, verdict.change, detectable, text, low, high)


def _interval(verdict: Verdict) -> tuple[float, float]:
    """95 % interval of the noise, from the chi-square distribution of its square."""
    from scipy.special import chdtri

    noise = verdict.noise or 0.0
    placed = verdict.paired and verdict.pairs >= FEWEST
    degrees = freedom(verdict.pairs, placed=placed) * (1 if verdict.paired else 2)
    low, high = (noise * math.sqrt(degrees / float(chdtri(degrees, p))) for p in (_TAIL, 1 - _TAIL))
    return low, high


def _range(low: float, high: float) -> str:
    return f"{units.percent(low).removesuffix(' %')} to {units.percent(high)}"


def _resolution(detectable: Sequence[DetectableChange]) -> str:
    usual = next(each for each in detectable if each.blocks == _USUAL)
    reach = next((each.blocks for each in detectable if each.same), None)
    same = (
        f"SAME is not within reach with {detectable[-1].blocks} blocks"
        if reach is None
        else f"SAME is within reach with {reach}"
    )
    detected = f"{usual.blocks} blocks detect {_least(usual.excludes_zero)}"
    power = f"with {units.percent(POWER)} power"
    if usual.excludes_zero >= _ABSURD:
        return f"That is too much noise to compare anything here: {detected} {power}."
    return f"{detected} {power}, and call {_least(usual.beyond_margin)} SLOWER; {same}."


def _least(change: float) -> str:
    """``2.5 % or more``; unrealistically large changes are not named."""
    if change >= _ABSURD:
        return f"nothing under {units.percent(_ABSURD)}"
    return f"{units.percent(change)} or more"


def _disturbed(change: Interval) -> list[str]:
    """A sentence if a difference shows although there is none."""
    if change.low <= 0 <= change.high:
        return []
    low, high = sorted((abs(change.low), abs(change.high)))
    word = "slower" if change.estimate > 0 else "faster"
    between = _range(low, high)
    chance = f"{(1 - change.level) * 100:.0f} in 100"
    return [
        f"Here the second looked {units.percent(abs(change.estimate))} {word} ({between}), though "
        f"the two are the same: {chance} do so by chance; where it happens more often, the runs "
        "disturb each other."
    ]
