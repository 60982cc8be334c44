"""Simulated studies of two environments: drift over the runs, log-normal noise, a true effect."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from gpuwatch.analysis.comparison.verdict import paired
from gpuwatch.analysis.results import Verdict
from gpuwatch.core.models import Environment, Workload
from gpuwatch.session.study.blocks import plan_runs
from gpuwatch.session.study.plan import Part

MARGIN = 0.01
BLOCKS = 7
DRIFT = 0.02
"""Relative, from the first run of a study to its last."""


def log_times(
    rng: np.random.Generator, studies: int, runs: int, noise: float, drift: float = DRIFT
) -> np.ndarray:
    """Logarithms of the step times of ``runs`` runs one after the other, one row for each study."""
    slope = np.log1p(drift * np.arange(runs) / (runs - 1))
    return slope + rng.normal(0, noise, (studies, runs))


def places(blocks: int, seed: int, environments: int = 2) -> np.ndarray:
    """For each block the place among all runs of each environment, as a study plans them."""
    names = [f"bare#{number}" for number in range(1, environments + 1)]
    part = Part(
        name="A/A",
        workloads=(Workload("mnist-cnn", "workload"),),
        environments=tuple(Environment("bare", name) for name in names),
        blocks=blocks,
    )
    planned = plan_runs([part], seed)
    found = np.zeros((blocks, environments), dtype=int)
    for place, run in enumerate(planned):
        assert run.block is not None
        found[run.block - 1, names.index(run.environment.label)] = place
    return found


@lru_cache
def verdicts(
    noise: float, effect: float, blocks: int = BLOCKS, studies: int = 1000
) -> tuple[Verdict, ...]:
    """Of as many studies in blocks, the second environment being slower by ``effect``."""
    rng = np.random.default_rng([round(noise * 1e4), round(effect * 1e4), blocks])
    times = log_times(rng, studies, 2 * blocks, noise)
    found = []
    for seed, row in enumerate(times):
        where = places(blocks, seed)
        ran = row[where]
        found += paired(
            [list(ran[:, 1] - ran[:, 0] + np.log1p(effect))],
            MARGIN,
            places=[list((where[:, 1] - where[:, 0]).astype(float))],
        )
    return tuple(found)
