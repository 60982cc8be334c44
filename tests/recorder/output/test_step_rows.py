"""Step lines of a fast program that are read at once share a row; a step keeps its own figures."""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from typing import Any

import pytest

from gpuwatch.core.models import Output
from gpuwatch.recorder.output.intake import Intake
from gpuwatch.recorder.output.step_lines import PREFIX

SECOND = 1_000_000_000


def line(step: int, seconds: float | None = 0.01, **more: Any) -> dict[str, Any]:
    told = {"seconds": [seconds], "monotonic_ns": round((step + 1) * (seconds or 1) * SECOND)}
    return {"event": "step", "step": step, **(told if seconds is not None else {}), **more}


def rows(lines: Sequence[dict[str, Any]], *, t: int = 90 * SECOND) -> list[Any]:
    """The rows of ``step`` of lines that are read at once."""
    text = "".join(f"{PREFIX}{json.dumps(each)}\n" for each in lines)
    intake = Intake(0)
    found = intake.take([Output(t, "stdout", text.encode())])
    assert intake.finish(t) == []
    return [values for sql, values in found if sql.startswith("INSERT INTO step ")]


def counts(lines: Sequence[dict[str, Any]]) -> list[tuple[int, int]]:
    """Step and count of each row."""
    return [(values[1], values[2]) for values in rows(lines)]


def test_times_and_scores_stay_those_of_each_step_and_the_rest_is_summed() -> None:
    (row,) = rows(
        [
            line(
                step,
                0.01 + step / 1000,
                loss=[1.0 / step],
                samples=64,
                flop=2.0,
                phases={"forward": 0.004},
                monotonic_ns=round(step * 0.012 * SECOND),
            )
            for step in range(1, 6)
        ]
    )
    t, step, count, warmup, samples, seconds, loss, acc1, _, phases, partial, flop, size = row
    assert (step, count, warmup, samples, flop, size) == (5, 5, 0, 320, 10.0, None)
    assert array("d", seconds).tolist() == [0.01 + step / 1000 for step in range(1, 6)]
    assert array("d", loss).tolist() == [1.0 / step for step in range(1, 6)]
    assert (acc1, partial, t) == (None, None, round(5 * 0.012 * SECOND))
    assert json.loads(phases) == {"forward": pytest.approx(0.02)}


def test_phases_of_some_steps_and_partial_batches_keep_their_numbers() -> None:
    lines = [line(1), line(2, partial=[2]), line(3, phases={"forward": 0.002}, sampled=0)]
    (row,) = rows(lines)
    assert json.loads(row[10]) == [2]
    assert json.loads(row[9]) == {"forward": 0.002, "sampled steps": 2}


@pytest.mark.parametrize(
    ("lines", "apart"),
    [
        ([line(1, 0.06), line(2, 0.06)], "slow steps"),
        ([line(1), line(3)], "numbers with a gap"),
        ([line(1, warmup=True), line(2)], "the end of the warm-up"),
        ([line(1, loss=[1.0]), line(2)], "a loss that only one tells"),
        ([line(1, samples=1), line(2)], "samples that only one tells"),
        ([line(1), line(2, phases={"evaluation": 3.0})], "an evaluation between them"),
        ([line(1), line(2, monotonic_ns=SECOND)], "a pause between them"),
        ([line(1, None, monotonic_ns=SECOND), line(2, None)], "no time of a step"),
    ],
)
def test_lines_that_differ_stay_rows_of_their_own(lines: list[dict[str, Any]], apart: str) -> None:
    assert [count for _, count in counts(lines)] == [1, 1], apart


def test_a_row_covers_a_second_and_lines_with_many_steps_join_too() -> None:
    assert counts([line(step) for step in range(1, 251)]) == [(100, 100), (200, 100), (250, 50)]
    batches = [
        {**line(2 * n), "count": 2, "seconds": [0.01, 0.01], "monotonic_ns": n * SECOND // 50}
        for n in range(1, 4)
    ]
    assert counts(batches) == [(6, 6)]
