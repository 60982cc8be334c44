"""The order of a study's runs: block by block, counterbalanced and random."""

from __future__ import annotations

import random
from collections.abc import Sequence

from gpuwatch.core.models import Environment, Workload
from gpuwatch.session.schema import SUFFIX
from gpuwatch.session.study.plan import WARM_UP, Part, PlannedRun
from gpuwatch.session.study.study_folder import slug

_Pair = tuple[Workload, Environment]


def plan_runs(parts: Sequence[Part], seed: int) -> tuple[PlannedRun, ...]:
    """Every run of ``parts``, in the order in which they are to be run; the same for one ``seed``.

    The parts come one after the other. A part without blocks runs each case in each environment
    once, as they were asked for. In a block the cases stand in random order, the environments of a
    case next to each other, and over the blocks of a case each environment stands at each place
    equally often, as far as their number allows. The warm-up block, and a part without blocks,
    go through the sizes of a sweep over ``batch_size`` upwards, so that the one that does not fit
    into memory is met before those above it.
    """
    rng = random.Random(seed)  # noqa: S311 (an order, no secret)
    listed: list[tuple[int, int | None, _Pair]] = []
    for place, part in enumerate(parts):
        if part.blocks is None or part.warmup_blocks:
            block = None if part.blocks is None else WARM_UP
            listed += [(place, block, pair) for pair in _asked(part)]
        if part.blocks is not None:
            for block, pairs in enumerate(_blocks(part, part.blocks, rng), 1):
                listed += [(place, block, pair) for pair in pairs]
    width = max(2, len(str(len(listed))))
    return tuple(
        PlannedRun(
            index=index,
            file=f"{index:0{width}d}-{slug(environment.label)}{SUFFIX}",
            workload=workload,
            environment=environment,
            part=place,
            block=block,
        )
        for index, (place, block, (workload, environment)) in enumerate(listed, 1)
    )


def _asked(part: Part) -> list[_Pair]:
    """Every case in every environment, as they were asked for."""
    cases = list(part.workloads)
    if "batch_size" in part.sweep:
        cases.sort(key=lambda case: case.parameters.get("batch_size") or 0)
    return [(case, environment) for case in cases for environment in part.environments]


def _blocks(part: Part, blocks: int, rng: random.Random) -> list[list[_Pair]]:
    places = range(len(part.workloads))
    orders = [_orders(len(part.environments), blocks, rng) for _ in places]
    found = []
    for block in range(blocks):
        cases = rng.sample(places, len(places))
        found.append(
            [
                (part.workloads[case], part.environments[environment])
                for case in cases
                for environment in orders[case][block]
            ]
        )
    return found


def _orders(count: int, blocks: int, rng: random.Random) -> list[list[int]]:
    """For each block an order of ``count`` environments: the rows of Latin squares.

    The rows of a square stand in random order, its symbols are given out at random, and of the last
    square only as many rows are taken as are needed.
    """
    rows: list[list[int]] = []
    while len(rows) < blocks:
        symbols = rng.sample(range(count), count)
        starts = rng.sample(range(count), count)
        rows += [[symbols[(start + place) % count] for place in range(count)] for start in starts]
    return rows[:blocks]
