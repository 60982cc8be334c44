"""Sweeps: the best value, what ties with it, and what gave no figure."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from gpuwatch.analysis.results import Cell, MissingValues, Sweep
from gpuwatch.analysis.study.sweep import sweep_of, sweep_table
from gpuwatch.core.models import JSON, Problem
from gpuwatch.session.reading.status import State, Status
from gpuwatch.session.study.study_folder import NotRun

from ..cells import cell
from ..sessions import Make

BLOCKS = 7
DRIFT = [1.0, 1.05, 1 / 1.05, 1.1, 1 / 1.1, 1.03, 1 / 1.03]
"""What all runs of a block share: far more than what is to be told apart."""
NOISE = [0.0, 0.004, -0.004, 0.008, -0.008, 0.004, -0.004]
"""Of the logarithm of a step; the geometric mean of drift and noise together stays 1."""
OTHER_NOISE = [0.0, -0.004, 0.008, -0.008, 0.004, 0.004, -0.004]
QUIET = [each / 20 for each in NOISE]

Point = tuple[JSON, Cell | None, str | None]


def point(
    make: Make,
    value: JSON,
    rate: float,
    samples: int | None = None,
    noise: Sequence[float] = NOISE,
    blocks: int = BLOCKS,
) -> Point:
    """``rate`` samples per second in batches of ``samples`` (the value), in the drifting blocks."""
    size = value if samples is None else samples
    runs = [
        make(
            step_seconds=size / rate * DRIFT[block] * math.exp(noise[block]),
            run={"batch_size": size},
        )
        for block in range(blocks)
    ]
    return value, cell(f"batch size {value}", runs), None


def without_samples(make: Make, value: JSON, step: float) -> Point:
    runs = [make(step_seconds=step * drift, count={}) for drift in DRIFT]
    return value, cell(str(value), runs), None


def ended(make: Make, value: JSON, text: str, message: str | None = None) -> Point:
    """A value whose run failed before its first timed step."""
    failed = replace(
        make(steps=()),
        status=Status(State.FAILED, text, 1),
        error={} if message is None else {"message": message},
    )
    return value, cell(str(value), [failed], reasons=["failed"]), None


def sweep(points: Sequence[Point], parameter: str = "batch_size") -> Sweep:
    return sweep_of("mnist-cnn in docker: batch size", parameter, "docker", points, 0.01)


def test_a_value_that_cannot_be_told_from_the_best_is_named_beside_it(make: Make) -> None:
    found = sweep(
        [
            point(make, 32, 4600),
            point(make, 64, 5115, noise=[each / 4 for each in OTHER_NOISE]),
            point(make, 128, 5120, noise=QUIET),
        ]
    )
    assert found.best == 2
    assert [each.tied for each in found.points] == [False, True, True]
    assert found.sentence.startswith(
        "batch size 128 is best: 5,120 samples/s; 64 (5,115) can't be told from it; "
        "32 has 10 % fewer samples/s ("
    )


def test_the_drift_of_the_blocks_does_not_hide_a_difference_of_two_per_cent(make: Make) -> None:
    found = sweep([point(make, 64, 5000), point(make, 128, 5100, noise=QUIET)])
    loud = found.points[0].throughput
    assert loud is not None
    assert loud.estimate == pytest.approx(5000 / 5100 - 1, abs=1e-3)
    assert loud.high < 0
    assert not found.points[0].tied


def test_throughput_is_samples_over_the_steady_step_time(make: Make) -> None:
    found = sweep([point(make, 64, 5000)])
    only = found.points[0]
    assert only.step_seconds == pytest.approx(64 / 5000)
    assert only.samples_per_second == pytest.approx(5000)
    assert found.best == 0
    assert not only.tied
    assert found.sentence == "batch size 64: 5,000 samples/s, with no other to compare"


def test_three_blocks_are_too_few_for_a_verdict(make: Make) -> None:
    found = sweep([point(make, 32, 4000, blocks=3), point(make, 64, 5000, blocks=3)])
    assert found.sentence == (
        "batch size 64 was fastest: 5,000 samples/s; 32 has 20 % fewer samples/s; "
        "3 blocks, a verdict needs 5"
    )
    assert found.points[0].throughput is None and not found.points[0].tied
    assert [(row.change, row.rank) for row in sweep_table(found)] == [
        ("", "can't tell"),
        ("", "best"),
    ]


def test_only_what_is_the_same_within_the_margin_is_tied(make: Make) -> None:
    loud = [noise * 20 for noise in OTHER_NOISE]
    found = sweep([point(make, 32, 5000, noise=loud), point(make, 64, 5110)])
    other = next(each for each in found.points if each.throughput)
    assert other.throughput and other.throughput.low < 0 < other.throughput.high
    assert not any(each.tied for each in found.points)
    assert sorted(row.rank for row in sweep_table(found)) == ["best", "can't tell"]
    assert "can't be told from it" in found.sentence


def lacking(made: Point, *lost: int) -> Point:
    """``made``, its runs in the blocks ``lost`` out of memory."""
    value, of, why = made
    assert of is not None
    runs = tuple(
        replace(run, value=None, reason="out of memory") if run.block in lost else run
        for run in of.runs
    )
    text = f"{len(lost)} of {len(runs)} runs of docker failed (out of memory)"
    return value, replace(of, runs=runs, lack=MissingValues(text, len(lost) / len(runs))), why


def test_a_value_that_lost_most_of_its_runs_is_never_the_best(make: Make) -> None:
    found = sweep(
        [
            point(make, 32, 4000, noise=QUIET),
            point(make, 64, 5000),
            lacking(point(make, 128, 9000), 2, 3, 4, 5, 6, 7),
        ]
    )
    assert found.best == 1
    assert [each.lacking for each in found.points] == [False, False, True]
    assert found.points[2].samples_per_second is not None
    assert found.points[2].throughput is None
    assert found.points[0].pairs == 7, "the others are compared over all of their blocks"
    assert found.sentence == (
        f"batch size 64 is best: 5,000 samples/s; {found.sentence.split('; ')[1]}; "
        "128 (not compared: 6 of 7 runs of docker failed (out of memory))"
    )


def test_where_all_values_lost_too_many_runs_none_is_best(make: Make) -> None:
    found = sweep([lacking(point(make, size, 4000), 1, 2) for size in (32, 64)])
    assert found.best is None
    assert found.sentence.startswith("no batch size has enough runs to be the best; 32 (not comp")


def test_each_value_is_paired_over_the_blocks_that_it_has(make: Make) -> None:
    found = sweep(
        [
            lacking(point(make, 32, 4000), 2),
            point(make, 64, 5000, noise=QUIET),
            point(make, 16, 3000),
        ]
    )
    assert [each.pairs for each in found.points] == [6, None, 7]
    assert "; 6 of 7 blocks); 16 has 40 % fewer samples/s (" in found.sentence
    assert found.sentence.count("blocks") == 1


def test_a_value_that_is_close_in_fewer_blocks_says_so(make: Make) -> None:
    found = sweep(
        [
            lacking(point(make, 32, 4995, noise=OTHER_NOISE), 2),
            point(make, 64, 5000),
            point(make, 16, 3000),
        ]
    )
    assert found.points[0].throughput is not None and not found.points[0].tied
    assert found.best == 1, "a lost block of slow runs makes no value fast"
    assert found.sentence.endswith("; 32 in 6 of 7 blocks")


def test_one_run_each_gives_no_interval_and_no_tie(make: Make) -> None:
    found = sweep([point(make, 32, 4000, blocks=1), point(make, 64, 5000, blocks=1)])
    assert found.sentence == (
        "batch size 64 was fastest: 5,000 samples/s; 32 has 20 % fewer samples/s; "
        "1 block, a verdict needs 5"
    )
    assert found.points[0].throughput is None
    assert not any(each.tied for each in found.points)


def test_runs_without_blocks_are_compared_unpaired_and_it_is_said(make: Make) -> None:
    def apart(made: Point) -> Point:
        value, of, why = made
        assert of is not None
        return value, replace(of, runs=tuple(replace(run, block=None) for run in of.runs)), why

    found = sweep([apart(point(make, 32, 4000)), apart(point(make, 64, 5000))])
    assert found.points[0].throughput is not None
    assert found.sentence.endswith("7 runs of each, not paired")


def test_values_beyond_the_memory_are_told_together(make: Make) -> None:
    found = sweep(
        [
            point(make, 64, 5000),
            ended(make, 256, "exit code 1", "out of memory: CUDA out of memory. Tried to allocate"),
            ended(make, 512, "ended by SIGKILL (out of memory)"),
        ]
    )
    assert [each.why for each in found.points] == [None, "out of memory", "out of memory"]
    assert found.sentence.endswith("256 and more ran out of memory")


def test_values_that_were_not_tried_beyond_it_are_not_said_to_have_run(make: Make) -> None:
    out: list[Point] = [(256, None, "out of memory"), (512, None, "not run: 256 out of memory")]
    found = sweep([point(make, 64, 5000), *out])
    assert found.sentence.endswith("out of memory from 256 on")


def test_a_size_that_was_given_up_is_told_by_its_problem(make: Make) -> None:
    problem = Problem("out-of-memory", "mnist-cnn in docker ran out of memory at batch size 256")
    left = Cell("512", "docker", (), None, None, (NotRun("docker", (problem,)),))
    points = [point(make, 64, 5000), ended(make, 256, "x (out of memory)"), (512, left, None)]
    found = sweep(points)
    assert found.points[2].why == problem.text
    assert found.sentence.endswith("; out of memory from 256 on")


def test_a_middle_value_out_of_memory_is_named_alone(make: Make) -> None:
    found = sweep(
        [point(make, 64, 5000), ended(make, 128, "out of memory"), point(make, 256, 4000)]
    )
    assert "128 ran out of memory" in found.sentence
    assert "and more" not in found.sentence


def test_nothing_is_best_where_all_failed(make: Make) -> None:
    found = sweep([ended(make, 64, "exit code 3"), (128, None, "the image is missing\x1b[31m")])
    assert found.best is None
    assert found.sentence == ("no batch size has a figure; 64: failed; 128: the image is missing")


def test_values_that_are_no_numbers_work(make: Make) -> None:
    found = sweep(
        [
            point(make, "float32", 4000, samples=64),
            point(make, "bfloat16", 8000, samples=64),
            ended(make, "float16", "out of memory"),
        ],
        "dtype",
    )
    assert found.sentence.startswith(
        "dtype bfloat16 is best: 8,000 samples/s; float32 has 50 % fewer samples/s"
    )
    assert found.sentence.endswith("float16 ran out of memory")


def test_step_times_are_compared_where_the_work_of_a_step_stays_as_it_is(make: Make) -> None:
    found = sweep([without_samples(make, 0, 0.5), without_samples(make, 2, 0.4)], "workers")
    assert found.best == 1
    assert found.points[1].samples_per_second is None
    assert found.sentence.startswith("workers 2 is best: 400 ms a step; 0 has 20 % fewer steps/s")


def test_step_times_of_different_work_are_not_compared(make: Make) -> None:
    found = sweep([without_samples(make, 32, 0.5), without_samples(make, 64, 0.4)])
    assert found.best is None
    assert [each.why for each in found.points] == ["samples of a step are not known"] * 2
    assert all(each.step_seconds for each in found.points)


def test_equal_values_in_every_block_are_a_tie(make: Make) -> None:
    """Copies of one file say nothing about a difference."""
    found = sweep([point(make, 32, 5000), point(make, 64, 5000)])
    assert all(each.tied for each in found.points)


def test_a_hostile_value_is_cleaned(make: Make) -> None:
    found = sweep([point(make, "a\x1b[2Jb", 5000, samples=64)], "x\n")
    assert found.sentence == "x ab: 5,000 samples/s, with no other to compare"


def test_each_rank_has_its_share_of_what_one_does_alone_with_an_interval(make: Make) -> None:
    points = [
        point(make, 4, 240.0),
        point(make, 1, 100.0, noise=OTHER_NOISE),
        point(make, 2, 180.0, noise=QUIET),
    ]
    found = sweep(points, "nproc")
    four, one, two = (each.efficiency for each in found.points)
    assert one is None and four is not None and two is not None
    assert 0.58 < four.low < four.estimate < four.high < 0.62
    assert two.estimate == pytest.approx(0.9, abs=0.01)
    assert re.search(r"with 2 each has 90 % \(\S+ to \S+\) of its throughput alone", found.sentence)
    assert [bool(row.efficiency) for row in sweep_table(found)] == [True, False, True]
    assert all(each.efficiency is None for each in sweep(points).points)
