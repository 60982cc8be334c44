"""What users pay is judged: slow steps and stalls, which the typical step says nothing of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.analysis.results import Contrast, Kind
from gpuwatch.analysis.study.read import read_study
from tests.analysis.recorded_studies import BARE, DOCKER, WOBBLE, blocks_of, recorded

STEPS = 80
Seconds = Callable[[int], float]
"""Of a step by its number, in units of the typical one."""


def every(nth: int, times: float) -> Seconds:
    return lambda step: times if step % nth == 0 else 1.0


def lines(seconds: Seconds, run: int, *, told: bool) -> list[dict[str, Any]]:
    """Step lines of steps of 10 ms; ``told``: they give the time of each step, else only its end,
    after a typical step that is told and a pause that is not."""
    level = 0.01 * WOBBLE[run % len(WOBBLE)] * WOBBLE[3 * run % len(WOBBLE)]
    end, made = 5.0, []
    for step in range(1, STEPS + 1):
        taken = level * seconds(step) * (1 + 1e-4 * (step % 3))
        end += taken
        made.append(
            {
                "event": "step",
                "step": step,
                "samples": 64,
                "seconds": taken if told else level * (1 + 1e-4 * (step % 3)),
                "monotonic_ns": round(end * 1e9),
            }
        )
    return made


def contrast(folder: Path, baseline: Seconds, other: Seconds, *, told: bool = True) -> Contrast:
    part = blocks_of(7, BARE, DOCKER)
    options = {
        index: {"steps": lines(baseline if index % 2 else other, index, told=told)}
        for index in range(1, 17)
    }
    recorded(folder, [part], {"bare": 1.0, "docker=image": 1.0}, options=options)
    (question,) = read_study(folder).questions
    (found,) = question.contrasts
    return found


def test_without_slow_steps_both_values_are_the_same(tmp_path: Path) -> None:
    found = contrast(tmp_path, every(1, 1.0), every(1, 1.0))
    assert found.verdict.kind in (Kind.SAME, Kind.SMALL)
    assert not found.verdict.by_total


def test_accumulation_that_takes_longer_is_slower(tmp_path: Path) -> None:
    found = contrast(tmp_path, every(4, 2.0), every(4, 3.0))
    assert found.verdict.typical in (Kind.SAME, Kind.SMALL)
    assert found.verdict.kind is Kind.SLOWER and found.verdict.by_total
    assert found.verdict.total is not None and found.verdict.total.change is not None
    assert found.verdict.total.change.estimate == pytest.approx(6 / 5 - 1, abs=0.005)
    assert (
        found.sentence.startswith("docker=image is slower than bare: throughput -16.7 % (")
        and "the typical step is the same (" in found.sentence
    )
    assert "1 step in 4 is slower (x1.5)" in found.sentence


def test_a_loader_that_stalls_every_tenth_step_is_slower(tmp_path: Path) -> None:
    found = contrast(tmp_path, every(1, 1.0), every(10, 3.0))
    assert found.verdict.kind is Kind.SLOWER and found.verdict.by_total
    assert "1 step in 10 is slower (x3)" in found.sentence


def test_steps_that_a_busy_machine_delays_a_little_are_not_counted_with_those_that_stall(
    tmp_path: Path,
) -> None:
    def busy(step: int) -> float:
        return every(10, 3.0)(step) + (0.03 if step % 10 in (2, 5, 8) else 0)

    found = contrast(tmp_path, every(1, 1.0), busy)
    assert "1 step in 10 is slower (x3)" in found.sentence


def test_stalls_that_only_the_baseline_has_make_the_other_faster(tmp_path: Path) -> None:
    found = contrast(tmp_path, every(10, 3.0), every(1, 1.0))
    assert found.verdict.kind is Kind.FASTER and found.verdict.by_total
    assert "throughput +" in found.sentence and "1 step in 10 is faster (x3)" in found.sentence


def test_what_happens_between_the_steps_is_paid_too(tmp_path: Path) -> None:
    found = contrast(tmp_path, every(1, 1.0), every(20, 5.0), told=False)
    assert found.verdict.typical in (Kind.SAME, Kind.SMALL)
    assert found.verdict.kind is Kind.SLOWER
    assert found.verdict.total is not None and found.verdict.total.change is not None
    assert found.verdict.total.change.estimate == pytest.approx(0.2, abs=0.01)
    assert "long steps are rare, or the time passes between steps" in found.sentence


def test_a_partial_batch_counts_by_its_samples(tmp_path: Path) -> None:
    def partial(run: int) -> list[dict[str, Any]]:
        made = lines(every(4, 0.75), run, told=True)
        for each in made[3::4]:
            each.update(samples=8, partial=[each["step"]])
        return made

    options = {
        index: {"steps": lines(every(1, 1.0), index, told=True) if index % 2 else partial(index)}
        for index in range(1, 17)
    }
    recorded(
        tmp_path, [blocks_of(7, BARE, DOCKER)], {"bare": 1.0, "docker=image": 1.0}, options=options
    )
    (question,) = read_study(tmp_path).questions
    (found,) = question.contrasts
    assert found.verdict.kind is Kind.SLOWER, "every fourth step trains an eighth"
    assert found.verdict.total is not None and found.verdict.total.change is not None
    assert found.verdict.total.change.estimate == pytest.approx(3.75 / (3 + 1 / 8) - 1, abs=0.01)


def test_a_typical_step_that_is_slower_at_the_same_throughput_is_small(tmp_path: Path) -> None:
    found = contrast(tmp_path, every(10, 3.5), every(1, 1.25))
    assert found.verdict.kind is Kind.SMALL and found.verdict.by_total
    assert "within 1 %, though the typical step is slower (+25" in found.sentence


def test_a_clock_too_coarse_for_the_steps_hides_no_stall(tmp_path: Path) -> None:
    def rounded(seconds: Seconds, run: int) -> list[dict[str, Any]]:
        made = lines(seconds, run, told=True)
        return [{**each, "seconds": round(each["seconds"], 2)} for each in made]

    options = {
        index: {"steps": rounded(every(1, 1.0) if index % 2 else every(10, 3.0), index)}
        for index in range(1, 17)
    }
    recorded(
        tmp_path, [blocks_of(7, BARE, DOCKER)], {"bare": 1.0, "docker=image": 1.0}, options=options
    )
    (question,) = read_study(tmp_path).questions
    (found,) = question.contrasts
    assert (found.verdict.kind, found.verdict.typical) == (Kind.SLOWER, Kind.CANT_TELL)


def test_the_arrival_of_lines_is_no_time_of_all_steps(tmp_path: Path) -> None:
    def arrived(run: int) -> list[dict[str, Any]]:
        made = lines(every(1, 1.0), run, told=True)
        for each in made:
            del each["monotonic_ns"]
        return made

    options = {index: {"steps": arrived(index)} for index in range(1, 17)}
    recorded(
        tmp_path, [blocks_of(7, BARE, DOCKER)], {"bare": 1.0, "docker=image": 1.0}, options=options
    )
    (question,) = read_study(tmp_path).questions
    run = question.cells[0].runs[1]
    assert run.total == pytest.approx(run.value, rel=1e-3)
