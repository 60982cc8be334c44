"""The ranks of a session as JSON."""

from __future__ import annotations

from dataclasses import asdict

from gpuwatch.analysis.ranks.ranks import Ranks
from gpuwatch.analysis.ranks.stragglers import Excess
from gpuwatch.analysis.ranks.wording import sentences
from gpuwatch.core.models import JSON


def ranks(of: Ranks) -> dict[str, JSON]:
    """``ranks`` of ``gpuwatch show --format json``."""
    return {
        "world_size": of.world_size,
        "step_seconds": of.step_seconds,
        "slowest": of.slowest,
        "imbalance": of.imbalance,
        "text": sentences(of),
        "reason": of.reason,
        "stragglers": [
            {**_excess(each.excess), "goes_with": [asdict(reason) for reason in each.goes_with]}
            for each in of.stragglers
        ],
        "excesses": [_excess(each) for each in of.excesses],
        "figures": [asdict(each) for each in of.figures],
        "over_time": None
        if of.heat is None
        else {
            "start_seconds": [t / 1e9 for t in of.heat.starts],
            "end_seconds": [t / 1e9 for t in of.heat.ends],
            "own_time": [
                {"rank": rank, "relative": list(values)}
                for rank, values in zip(of.heat.ranks, of.heat.values, strict=True)
            ],
        },
    }


def _excess(of: Excess) -> dict[str, JSON]:
    return {
        "rank": of.rank,
        "seconds": of.seconds,
        "low_seconds": of.low,
        "high_seconds": of.high,
        "level": of.level,
        "relative": of.relative,
        "since_seconds": None if of.since is None else of.since / 1e9,
        "before_seconds": of.before,
    }
