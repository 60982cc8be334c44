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
    assert found.sentence.count("step in") == 0, "no step is slower"
