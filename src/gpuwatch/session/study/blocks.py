"""Orders the runs of a study in blocks, counterbalanced and randomised."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product

from gpuwatch.core.models import Environment, Workload
from gpuwatch.session.schema import SUFFIX
from gpuwatch.session.study.plan import WARM_UP, Part, PlannedRun
from gpuwatch.session.study.study_folder import slug

_Pair = tuple[Workload, Environment]


def plan_runs(parts: Sequence[Part], seed: int) -> tuple[PlannedRun, ...]:
    """Every run of ``parts`` in execution order, reproducible by ``seed``.

    The parts follow one another. A part without blocks runs each case once in each environment, in
    the given order. Within a block the cases are in random order, with the environments of a case
    next to each other; over the blocks of a case each environment takes each place equally often,
    as far as the number of blocks allows. Where commands are compared, this holds for every command
    in every environment: all stand in one order. The warm-up block, and a part without blocks,
    sweep ``batch_size`` upwards, so that the first size too large for memory comes before the
    larger ones.
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
            file=f"{index:0{width}d}-{slug(_name(workload, environment))}{SUFFIX}",
            workload=workload,
            environment=environment,
            part=place,
            block=block,
        )
        for index, (place, block, (workload, environment)) in enumerate(listed, 1)
    )


def _name(workload: Workload, environment: Environment) -> str:
    label = environment.label
    return label if workload.label is None else f"{workload.label}-{label}"


def _asked(part: Part) -> list[_Pair]:
    """Every case in every environment, in the given order."""
    cases = list(part.workloads)
    if "batch_size" in part.sweep:
        cases.sort(key=lambda case: case.parameters.get("batch_size") or 0)
    return list(product(cases, part.environments))


def _blocks(part: Part, blocks: int, rng: random.Random) -> list[list[_Pair]]:
    if part.compares_commands:
        cells = list(product(part.workloads, part.environments))
        return [[cells[at] for at in order] for order in _orders(len(cells), blocks, rng)]
    places = range(len(part.workloads))
    orders = [_orders(len(part.environments), blocks, rng) for _ in places]
    result = []
    for block in range(blocks):
        cases = rng.sample(places, len(places))
        result.append(
            [
                (part.workloads[case], part.environments[environment])
                for case in cases
                for environment in orders[case][block]
            ]
        )
    return result


def _orders(count: int, blocks: int, rng: random.Random) -> list[list[int]]:
    """An order of ``count`` items for each block: the rows of cyclic Latin squares.

    Each square has random symbols and its rows in random order; the last square may be cut. Every
    second block takes from squares of its own, as far as they are whole, in random order: so a
    disturbance that comes in every block, or in every second, meets all environments alike.
    """
    rows: list[list[int]] = []
    while len(rows) < blocks:
        symbols = rng.sample(range(count), count)
        starts = rng.sample(range(count), count)
        rows += [[symbols[(start + place) % count] for place in range(count)] for start in starts]
    sizes = ((blocks + 1) // 2, blocks // 2)
    whole = [size - size % count for size in sizes]
    cut = rows[sum(whole) : blocks]
    odd = rows[: whole[0]] + cut[: sizes[0] - whole[0]]
    even = rows[whole[0] : sum(whole)] + cut[sizes[0] - whole[0] :]
    rng.shuffle(odd)
    rng.shuffle(even)
    return [(even if block % 2 else odd)[block // 2] for block in range(blocks)]
