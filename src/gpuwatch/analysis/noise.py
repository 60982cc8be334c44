"""The noise floor: what one environment against itself says of this machine."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gpuwatch import units
from gpuwatch.analysis.power import resolves
from gpuwatch.analysis.results import Contrast, Interval, NoiseFloor, Resolves
from gpuwatch.analysis.verdict import FEWEST

BLOCKS = (5, 7, 10, 20)
"""Numbers of blocks that are told of."""
_USUAL = 7
"""What a study has unless it is asked for another number."""


def noise_floor(label: str, contrast: Contrast, margin: float) -> NoiseFloor | None:
    """What a contrast of an environment with itself says, with ``margin`` as the relative change
    that matters; ``None`` where its noise or its interval is not known."""
    verdict = contrast.verdict
    if verdict.noise is None or verdict.change is None or not math.isfinite(verdict.noise):
        return None
    told = tuple(resolves(verdict.noise, margin, blocks) for blocks in BLOCKS)
    out = "drift taken out" if verdict.paired else "drift included, as the runs share no blocks"
    sentences = [f"One run here varies by {units.percent(verdict.noise)} ({out})."]
    if verdict.pairs < FEWEST:
        shared = "blocks" if verdict.paired else "runs of each"
        sentences.append(f"{verdict.pairs} {shared} are few: the figure is rough.")
    sentences.append(_found(told))
    sentences += _disturbed(verdict.change)
    return NoiseFloor(label, verdict.noise, verdict.change, told, " ".join(sentences))


def _found(told: Sequence[Resolves]) -> str:
    usual = next(each for each in told if each.blocks == _USUAL)
    reach = next((each.blocks for each in told if each.same), None)
    same = (
        f"SAME is not within reach with {told[-1].blocks} blocks"
        if reach is None
        else f"SAME is within reach with {reach}"
    )
    return (
        f"{usual.blocks} blocks find a change of {units.percent(usual.excludes_zero)} in 4 of 5 "
        f"studies, and call {units.percent(usual.beyond_margin)} SLOWER; {same}."
    )


def _disturbed(change: Interval) -> list[str]:
    """That a difference was seen where there is none."""
    if change.low <= 0 <= change.high:
        return []
    low, high = sorted((abs(change.low), abs(change.high)))
    word = "slower" if change.estimate > 0 else "faster"
    between = f"{units.percent(low).removesuffix(' %')} to {units.percent(high)}"
    chance = f"{(1 - change.level) * 100:.0f} in 100"
    return [
        f"Here the second looked {units.percent(abs(change.estimate))} {word} ({between}), though "
        f"the two are the same: {chance} do so by chance; where it happens more often, the runs "
        "disturb each other."
    ]
