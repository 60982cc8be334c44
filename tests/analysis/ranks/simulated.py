"""Own times of simulated ranks, and how often one is named.

``python -m tests.analysis.ranks.simulated`` prints the tables of docs/statistics.md.

Each cell of two seconds has white noise, and as much again that is correlated over ``memory`` cells
(AR(1)). All ranks share a drift, and one cell in fifty has a stall of 30 % on average.
"""

from __future__ import annotations

import numpy as np

from gpuwatch.analysis.ranks.own_time import Cells
from gpuwatch.analysis.ranks.stragglers import judge

STEP, OWN = 0.1, 0.04
"""Seconds of a step, and the own time in it."""
_STEPS = 20.0


def cells(
    rng: np.random.Generator,
    ranks: int,
    count: int,
    noise: float,
    memory: float,
    slow: float = 0.0,
    since: float = 0.0,
) -> Cells:
    """``count`` cells; the last rank is ``slow`` (relative) from the share ``since`` of them on."""
    kept = np.exp(-1 / memory)
    correlated = rng.normal(0, noise, (ranks, count))
    for index in range(1, count):
        fresh = correlated[:, index] * np.sqrt(1 - kept**2)
        correlated[:, index] = kept * correlated[:, index - 1] + fresh
    drift = np.cumsum(rng.normal(0, 0.003, count)) + 0.05 * np.sin(np.arange(count) / 40)
    stalls = (rng.random((ranks, count)) < 0.02) * rng.exponential(0.3, (ranks, count))
    white = rng.normal(0, noise, (ranks, count))
    own = OWN * np.exp(drift + correlated + white + stalls)
    own[-1, int(since * count) :] *= 1 + slow
    edges = np.arange(count) * 2e9
    pairs = np.column_stack([edges, edges + 2e9])
    return Cells(tuple(range(ranks)), pairs, np.full((ranks, count), _STEPS), own * _STEPS)


def share(
    runs: int,
    ranks: int,
    count: int,
    noise: float,
    memory: float = 3.0,
    slow: float = 0.0,
    since: float = 0.0,
) -> tuple[float, float]:
    """Share of runs that name a rank which is not slow, and that name the slow one."""
    rng = np.random.default_rng(1)
    wrong = found = 0
    for _ in range(runs):
        judged = judge(cells(rng, ranks, count, noise, memory, slow, since), STEP)
        names = {each.rank for each in judged.stragglers}
        wrong += bool(names - ({ranks - 1} if slow else set()))
        found += bool(slow) and ranks - 1 in names
    return wrong / runs, found / runs


def main(runs: int = 2000) -> None:
    print("false names, 2 / 4 / 8 ranks: cells, noise, memory in cells")
    for count in (10, 30, 150):
        for noise, memory in ((0.005, 3), (0.02, 3), (0.02, 15), (0.05, 3), (0.05, 15)):
            rates = [share(runs, ranks, count, noise, memory)[0] for ranks in (2, 4, 8)]
            print(count, noise, memory, " / ".join(f"{100 * rate:.1f}" for rate in rates))
    print("found, 2 / 4 / 8 ranks: cells, noise, slow by, since")
    for count in (15, 30, 150):
        for noise in (0.005, 0.02):
            for slow in (0.05, 0.1, 0.3):
                for since in (0.0, 0.5):
                    rates = [
                        share(runs // 10, ranks, count, noise, 3.0, slow, since)[1]
                        for ranks in (2, 4, 8)
                    ]
                    text = " / ".join(f"{100 * rate:.0f}" for rate in rates)
                    print(count, noise, slow, since, text)


if __name__ == "__main__":
    main()
