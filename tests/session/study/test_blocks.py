"""The order of a study: complete blocks, counterbalanced, random, and the same for one seed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import groupby

import pytest

from gpuwatch.core.models import Environment, Workload
from gpuwatch.session.study.blocks import plan_runs
from gpuwatch.session.study.plan import WARM_UP, Part, PlannedRun


def part(cases: int, environments: int, blocks: int | None, **more: object) -> Part:
    return Part(
        "p",
        tuple(Workload(f"case{n}", "workload") for n in range(cases)),
        tuple(Environment("bare", f"bare#{n}") for n in range(environments)),
        blocks=blocks,
        **more,  # type: ignore[arg-type]
    )


def by_block(runs: tuple[PlannedRun, ...]) -> list[list[tuple[str, str]]]:
    """Of each judged block: case and environment in order."""
    judged = (run for run in runs if run.block != WARM_UP)
    return [
        [(run.workload.name, run.environment.label) for run in block]
        for _, block in groupby(judged, key=lambda run: run.block)
    ]


SHAPES = [(1, 2, 7), (1, 3, 7), (1, 3, 9), (2, 2, 8), (3, 4, 10), (2, 5, 3), (1, 1, 4), (4, 1, 5)]


@pytest.mark.parametrize(("cases", "environments", "blocks"), SHAPES)
@pytest.mark.parametrize("seed", range(20))
def test_every_block_has_every_case_in_every_environment_once_and_side_by_side(
    cases: int, environments: int, blocks: int, seed: int
) -> None:
    asked = part(cases, environments, blocks)
    everything = {(w.name, e.label) for w in asked.workloads for e in asked.environments}
    found = by_block(plan_runs([asked], seed))
    assert len(found) == blocks
    for block in found:
        assert len(block) == len(everything) and set(block) == everything
        assert len(list(groupby(block, key=lambda pair: pair[0]))) == cases


@pytest.mark.parametrize(("cases", "environments", "blocks"), SHAPES)
@pytest.mark.parametrize("seed", range(20))
def test_each_environment_stands_at_each_place_equally_often(
    cases: int, environments: int, blocks: int, seed: int
) -> None:
    places: Counter[tuple[str, str, int]] = Counter()
    for block in by_block(plan_runs([part(cases, environments, blocks)], seed)):
        for case, pairs in groupby(block, key=lambda pair: pair[0]):
            places.update((case, label, place) for place, (_, label) in enumerate(pairs))
    assert len(places) == cases * environments * min(blocks, environments)
    fewest, most = blocks // environments, -(-blocks // environments)
    assert all(fewest <= count <= most for count in places.values())


def test_the_odd_block_of_two_environments_begins_with_either() -> None:
    first = Counter(by_block(plan_runs([part(1, 2, 7)], seed))[6][0][1] for seed in range(200))
    assert 60 < first["bare#0"] < 140


def test_every_order_of_three_environments_occurs() -> None:
    orders = Counter(
        tuple(label for _, label in by_block(plan_runs([part(1, 3, 1)], seed))[0])
        for seed in range(300)
    )
    assert len(orders) == 6 and min(orders.values()) > 20


@pytest.mark.parametrize(("commands", "environments", "blocks"), [(2, 1, 7), (3, 1, 6), (2, 2, 8)])
@pytest.mark.parametrize("seed", range(20))
def test_each_command_in_each_environment_stands_at_each_place_equally_often(
    commands: int, environments: int, blocks: int, seed: int
) -> None:
    plain = part(commands, environments, blocks)
    labelled = tuple(replace(case, label=f"c{at}") for at, case in enumerate(plain.workloads))
    found = by_block(plan_runs([replace(plain, workloads=labelled)], seed))
    places = Counter((pair, place) for block in found for place, pair in enumerate(block))
    cells = commands * environments
    assert all(len(set(block)) == cells for block in found)
    assert len(places) == cells * min(blocks, cells)
    assert set(places.values()) <= {blocks // cells, -(-blocks // cells)}


def test_the_order_of_the_cases_is_random() -> None:
    first = Counter(by_block(plan_runs([part(3, 2, 1)], seed))[0][0][0] for seed in range(300))
    assert len(first) == 3 and min(first.values()) > 60


def test_one_seed_gives_one_order_and_another_seed_another() -> None:
    asked = [part(2, 3, 7), part(1, 2, 7)]
    assert plan_runs(asked, 42) == plan_runs(asked, 42)
    assert plan_runs(asked, 42) != plan_runs(asked, 43)


def test_the_warm_up_block_comes_first_and_as_asked() -> None:
    runs = plan_runs([part(2, 2, 3, warmup_blocks=1)], 1)
    assert [run.block for run in runs] == [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4
    assert [(run.workload.name, run.environment.label) for run in runs[:4]] == [
        ("case0", "bare#0"),
        ("case0", "bare#1"),
        ("case1", "bare#0"),
        ("case1", "bare#1"),
    ]


@pytest.mark.parametrize("blocks", [None, 3])
def test_a_sweep_over_the_batch_size_meets_the_largest_last(blocks: int | None) -> None:
    sizes = (64, 16, 256, 32)
    cases = tuple(Workload("w", "workload", (str(n),), {"batch_size": n}) for n in sizes)
    bare = (Environment("bare", "bare"),)
    asked = Part("p", cases, bare, blocks, int(blocks is not None), sweep={"batch_size": sizes})
    first = plan_runs([asked], 1)[:4]
    assert [run.workload.parameters["batch_size"] for run in first] == [16, 32, 64, 256]


def test_a_part_without_blocks_runs_each_once_as_asked_and_parts_follow_each_other() -> None:
    runs = plan_runs([part(1, 2, 2), part(2, 2, None)], 1)
    assert [run.part for run in runs] == [0] * 4 + [1] * 4
    assert [(run.workload.name, run.environment.label, run.block) for run in runs[4:]] == [
        ("case0", "bare#0", None),
        ("case0", "bare#1", None),
        ("case1", "bare#0", None),
        ("case1", "bare#1", None),
    ]


def test_files_sort_in_the_order_of_the_runs_however_many_there_are() -> None:
    for blocks, name in ((2, "01-bare-0.gpuwatch"), (50, "001-")):
        files = [run.file for run in plan_runs([part(1, 2, blocks)], 1)]
        assert files == sorted(files) and len(set(files)) == len(files)
        assert files[0].startswith(name[:3])


def test_labels_of_images_make_plain_file_names() -> None:
    where = (Environment("docker", "docker=a/b:c", "a/b:c"),)
    (run,) = plan_runs([Part("p", (Workload("w", "workload"),), where)], 1)
    assert run.file == "01-docker-a-b-c.gpuwatch"
