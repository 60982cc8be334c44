"""What users pay is judged: slow steps and stalls, which the typical step says nothing of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.analysis.results import Contrast, Kind, Question
from gpuwatch.analysis.study.read import read_study
from tests.analysis.recorded_studies import BARE, DOCKER, WOBBLE, blocks_of, only, recorded
from tests.analysis.sessions import step_line

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
        usual = level * (1 + 1e-4 * (step % 3))
        made.append(step_line(step, taken if told else usual, end))
    return made


def study(folder: Path, steps: Callable[[int], list[dict[str, Any]]]) -> Question:
    """Of runs with the ``steps`` of their index, which is odd in the baseline."""
    options = {index: {"steps": steps(index)} for index in range(1, 17)}
    effects = {"bare": 1.0, "docker=image": 1.0}
    recorded(folder, [blocks_of(7, BARE, DOCKER)], effects, options=options)
    return only(read_study(folder))


def contrast(folder: Path, baseline: Seconds, other: Seconds, *, told: bool = True) -> Contrast:
    (found,) = study(
        folder, lambda index: lines(baseline if index % 2 else other, index, told=told)
    ).contrasts
    return found


def paid(found: Contrast) -> float:
    assert found.verdict.total is not None and found.verdict.total.change is not None
    return found.verdict.total.change.estimate


def test_without_slow_steps_both_values_are_the_same(tmp_path: Path) -> None:
    found = contrast(tmp_path, every(1, 1.0), every(1, 1.0))
    assert found.verdict.kind in (Kind.SAME, Kind.SMALL)
    assert not found.verdict.by_total


def test_accumulation_that_takes_longer_is_slower(tmp_path: Path) -> None:
    found = contrast(tmp_path, every(4, 2.0), every(4, 3.0))
    assert found.verdict.typical in (Kind.SAME, Kind.SMALL)
    assert found.verdict.kind is Kind.SLOWER and found.verdict.by_total
    assert paid(found) == pytest.approx(6 / 5 - 1, abs=0.005)
    assert (
        found.sentence.startswith("docker=image is slower than bare: throughput -16.7 % (")
        and "the typical step is the same (" in found.sentence
    )
    assert "1 step in 4 is slower (x1.5)" in found.sentence


def busy(step: int) -> float:
    """A little delayed by others now and then, beside the stalls."""
    return every(10, 3.0)(step) + (0.03 if step % 10 in (2, 5, 8) else 0)


@pytest.mark.parametrize(
    ("baseline", "other", "kind", "said"),
    [
        (every(1, 1.0), every(10, 3.0), Kind.SLOWER, "1 step in 10 is slower (x3)"),
        (every(1, 1.0), busy, Kind.SLOWER, "1 step in 10 is slower (x3)"),
        (every(10, 3.0), every(1, 1.0), Kind.FASTER, "1 step in 10 is faster (x3)"),
        (
            every(10, 3.5),
            every(1, 1.25),
            Kind.SMALL,
            "within 1 %, though the typical step is slower (+25",
        ),
    ],
)
def test_stalls_are_judged_and_told(
    tmp_path: Path, baseline: Seconds, other: Seconds, kind: Kind, said: str
) -> None:
    found = contrast(tmp_path, baseline, other)
    assert found.verdict.kind is kind and found.verdict.by_total
    assert said in found.sentence
    assert ("throughput +" in found.sentence) is (kind is not Kind.SLOWER)


def test_what_happens_between_the_steps_is_paid_too(tmp_path: Path) -> None:
    found = contrast(tmp_path, every(1, 1.0), every(20, 5.0), told=False)
    assert found.verdict.typical in (Kind.SAME, Kind.SMALL)
    assert found.verdict.kind is Kind.SLOWER
    assert paid(found) == pytest.approx(0.2, abs=0.01)
    assert "long steps are rare, or the time passes between steps" in found.sentence


def test_a_partial_batch_counts_by_its_samples(tmp_path: Path) -> None:
    def steps(run: int) -> list[dict[str, Any]]:
        made = lines(every(1, 1.0) if run % 2 else every(4, 0.75), run, told=True)
        for each in made[3::4] if run % 2 == 0 else ():
            each.update(samples=8, partial=[each["step"]])
        return made

    (found,) = study(tmp_path, steps).contrasts
    assert found.verdict.kind is Kind.SLOWER, "every fourth step trains an eighth"
    assert paid(found) == pytest.approx(3.75 / (3 + 1 / 8) - 1, abs=0.01)


def test_a_clock_too_coarse_for_the_steps_hides_no_stall(tmp_path: Path) -> None:
    def rounded(run: int) -> list[dict[str, Any]]:
        made = lines(every(1, 1.0) if run % 2 else every(10, 3.0), run, told=True)
        return [{**each, "seconds": round(each["seconds"], 2)} for each in made]

    (found,) = study(tmp_path, rounded).contrasts
    assert (found.verdict.kind, found.verdict.typical) == (Kind.SLOWER, Kind.CANT_TELL)


def test_the_arrival_of_lines_is_no_time_of_all_steps(tmp_path: Path) -> None:
    def arrived(run: int) -> list[dict[str, Any]]:
        return [{**each, "monotonic_ns": None} for each in lines(every(1, 1.0), run, told=True)]

    run = study(tmp_path, arrived).cells[0].runs[1]
    assert run.total == pytest.approx(run.value, rel=1e-3)
