"""Step lines of several processes, and lines that tell no time: no figure is made of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.analysis.results import Kind
from gpuwatch.analysis.samples.gauges import run_series
from gpuwatch.analysis.samples.rates import mean_rate, samples_of
from gpuwatch.analysis.samples.step_lines import (
    LEAPS,
    NO_STEPS_YET,
    UNTIMED,
    mean_by_arrival,
    no_figure,
    no_steps,
)
from gpuwatch.analysis.study.read import read_sessions
from gpuwatch.analysis.summary.listing import listing
from gpuwatch.analysis.summary.missing import missing
from gpuwatch.analysis.summary.summary import Summary, summarise
from gpuwatch.core.metrics import DERIVED, Method
from gpuwatch.report import json as session_json
from gpuwatch.report.export.session_tables import series
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.rows import StepRow
from tests.analysis import sessions
from tests.analysis.sessions import BATCH, SECOND, WARM
from tests.tui.sessions import Script, write

POWER = {("gpu0", "hw.gpu.power"): 500.0, ("gpu0", "hw.gpu.energy"): 500.0}


def line(step: int, *, told: bool = True, end: float = 0.0, **more: Any) -> dict[str, Any]:
    ends = {"monotonic_ns": round((WARM + (end or step * 0.5)) * SECOND)} if told else {}
    return {"event": "step", "step": step, "samples": BATCH, "loss": 1.0, **ends, **more}


RANKS = [line(n, seconds=0.5, phases={"forward": 0.3}) for n in range(1, 21) for _ in range(2)]
"""Two ranks that print the same twenty steps."""
ARRIVED = [line(n, told=False) for n in range(1, 21)]


def summary(folder: Path, steps: list[dict[str, Any]], **options: Any) -> Summary:
    return sessions.summary(
        folder / "a.gpuwatch", steps=steps, gauges={("gpu0", "hw.gpu.power"): 500.0}, **options
    )


def rates_of(found: Summary) -> list[tuple[object, str | None]]:
    energy = found.efficiency.energy
    figures = [found.efficiency.mfu, found.efficiency.flop_rate, energy.gpu_per_step]
    figures.append(energy.gpu_per_sample)
    return [
        (found.steps.samples_per_second, found.steps.reason),
        (found.steps.median_seconds, found.steps.reason),
        *((each.value, each.reason) for each in figures),
        *((found.metrics[name].mean, found.metrics[name].reason) for name in DERIVED),
    ]


def test_two_ranks_are_never_added_up(tmp_path: Path) -> None:
    found = summary(tmp_path, RANKS)
    assert found.several_writers is not None
    assert "step 1 came after step 1" in found.several_writers
    assert rates_of(found) == [(None, found.several_writers)] * len(rates_of(found))
    assert (found.steps.count, found.steps.phases, found.steps.last_loss) == (None, {}, None)
    assert found.training.step.loss.figure.reason == found.several_writers
    assert any(found.several_writers in note for note in found.notes)
    assert found.efficiency.roofline.points == ()
    assert found.several_writers in missing([found])
    assert json.loads(session_json.dumps(session_json.summary(found)))["step"]["count"] is None


def test_one_rank_of_the_same_run_has_every_figure(tmp_path: Path) -> None:
    found = summary(tmp_path, RANKS[::2])
    assert found.several_writers is None
    assert found.steps.count == 20
    assert found.steps.samples_per_second == pytest.approx(BATCH / 0.5)
    assert found.efficiency.mfu.value is not None
    assert found.efficiency.energy.gpu_per_step.value == pytest.approx(250, rel=0.02)


def test_steps_that_took_longer_than_their_run_are_told(tmp_path: Path) -> None:
    def told(factor: float) -> list[str]:
        (tmp_path / str(factor)).mkdir()
        steps = [line(n, seconds=0.5 * factor) for n in range(1, 21)]
        return [note for note in summary(tmp_path / str(factor), steps).notes if "tell" in note]

    assert told(1) == []
    (note,) = told(1000)
    assert note.startswith("the step lines tell 10,000 s of steps, though the last one ended ")


def test_a_run_that_goes_on_has_no_steps_yet_and_nothing_to_mend(tmp_path: Path) -> None:
    script = Script(seconds=3, steps=False, count=False, kind="command")
    for alive, why in ((True, NO_STEPS_YET), (False, "the workload reported no steps")):
        path = tmp_path / f"{alive}.gpuwatch"
        write(path, replace(script, alive=alive))
        with SessionReader(path) as reader:
            found = summarise(reader)
        roofline = found.efficiency.roofline
        assert found.steps.reason == found.metrics["gpuwatch.flop.rate"].reason == why
        assert roofline.reason == why and (roofline.verdict.hint is None) is alive


def test_a_run_without_torch_and_steps_is_told_that_no_line_was_one() -> None:
    told, lines = "no Python program imported torch", "; no line of its output was recognised"
    assert no_steps({"hook": {"text": told}}).startswith(told + lines)
    assert "`step 10 loss 0.5`" in no_steps({"hook": {"text": told}})
    assert "`step 10 loss 0.5`" in no_figure({"hook": {"processes": 1}}, "loss")
    assert no_steps({"hook": {"text": told, "processes": 1}}) == told


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("python -E t.py", "E"),
        ("env A=1 /usr/bin/python3.12 -X dev -u -sI -m t", "I"),
        ("python -WS t.py -S", None),
        ("python t.py -E", None),
        ("python -m t -S", None),
    ],
)
def test_an_option_of_python_that_leaves_out_the_hook_is_named(
    command: str, option: str | None
) -> None:
    hook = {"given": True, "text": "no Python program imported torch", "processes": 0}
    why = no_steps({"hook": hook, "workload": {"arguments": command.split()}})
    assert why.startswith(
        f"python -{option} leaves out the hook; next: without -{option}" if option else "no Python"
    )
    assert no_steps({"hook": {**hook, "text": None}}) == "the workload reported no steps"
    assert "--hook off" in no_steps({"hook": {**hook, "text": None, "given": False}})


def test_a_list_of_runs_says_nothing_of_mixed_steps(tmp_path: Path) -> None:
    with SessionReader(sessions.record(tmp_path / "a.gpuwatch", steps=RANKS)) as reader:
        entry = listing(reader)
    keys = ("steps", "step_median_seconds", "samples_per_second", "mfu")
    assert [getattr(entry, key) for key in keys] == [None] * 4


@pytest.mark.parametrize("lines", [RANKS, ARRIVED])
def test_charts_and_exported_series_have_no_rates(
    tmp_path: Path, lines: list[dict[str, Any]]
) -> None:
    with SessionReader(sessions.record(tmp_path / "a.gpuwatch", steps=lines)) as reader:
        assert not {*DERIVED} & {*run_series(reader).metrics}
        export = series(reader)
        derived = [at for at, column in enumerate(export.columns) if column.metric in DERIVED]
        methods = {export.columns[at].method for at in derived}
        values = {row[at] for batch in export.batches() for row in batch for at in derived}
    assert (methods, values) == ({Method.UNAVAILABLE.value}, {None})


def test_a_comparison_with_mixed_steps_is_refused_with_what_to_do(tmp_path: Path) -> None:
    def runs(name: str, steps: list[dict[str, Any]]) -> list[Path]:
        (tmp_path / name).mkdir()
        return [
            sessions.record(tmp_path / name / f"{n}.gpuwatch", steps=steps, label=name)
            for n in range(5)
        ]

    (question,) = read_sessions([*runs("one", RANKS[::2]), *runs("two", RANKS)]).questions
    (contrast,) = question.contrasts
    assert question.metric == "step time"
    assert contrast.verdict.kind is Kind.INVALID
    assert contrast.verdict.estimate is None
    (reason,) = contrast.verdict.reasons
    assert "the steps of two are not those of one process" in reason
    assert "let only rank 0 print" in contrast.sentence


def test_lines_that_tell_no_time_give_no_rate_and_say_what_to_print(tmp_path: Path) -> None:
    found = summary(tmp_path, ARRIVED)
    assert rates_of(found) == [(None, UNTIMED)] * len(rates_of(found))
    assert "`seconds` or `monotonic_ns`" in UNTIMED
    assert (found.steps.count, found.steps.last_loss) == (20, 1.0)
    assert found.timing.ending_seconds is None
    assert found.efficiency.roofline.points == ()


def test_a_mean_by_arrival_needs_ten_of_them_and_is_of_the_steps_between(tmp_path: Path) -> None:
    def rows(count: int, held_back: int = 1) -> list[StepRow]:
        times = [(n // held_back) * held_back for n in range(1, count + 1)]
        rest = (*(None,) * 5, {}, (), None, None)
        return [
            StepRow(n, t * SECOND, 5 * n, 5, False, *rest)  # type: ignore[arg-type]
            for n, t in enumerate(times, 1)
        ]

    assert mean_by_arrival(rows(10)) == 0.2
    assert mean_by_arrival(rows(9)) is None
    assert mean_by_arrival(rows(40, held_back=20)) is None
    late = [*rows(9), replace(rows(10)[-1], t=13 * SECOND, evaluation=3.0)]
    assert mean_by_arrival(late) == 0.2


@pytest.mark.parametrize(
    ("more", "ends", "there"),
    [
        ({}, "told", False),
        ({}, "arrived", True),
        ({"seconds": [0.1] * 5}, "arrived", False),
        ({"seconds": [0.1] * 5, "partial": "all"}, "arrived", False),
    ],
)
def test_a_mean_by_arrival_is_there_only_where_lines_tell_no_time(
    tmp_path: Path, more: dict[str, Any], ends: str, there: bool
) -> None:
    steps = [line(5 * n, count=5, end=n * 0.5, **more) for n in range(1, 21)]
    for each in steps:
        each["partial"] = [each["step"] - n for n in range(5)] if "partial" in more else []
    found = summary(tmp_path, steps, extra={"step_ends": ends})
    assert (found.steps.arrival_seconds is not None) is there


def test_why_progress_lines_tell_no_time_is_told_in_place_of_what_to_print(tmp_path: Path) -> None:
    why = "the lines' own time is not trusted: nanoGPT's is taken before the GPU is done"
    found = summary(tmp_path, ARRIVED, extra={"untimed": why})
    assert rates_of(found) == [(None, why)] * len(rates_of(found))


def test_phases_that_the_workload_timed_need_no_time_of_the_step(tmp_path: Path) -> None:
    lines = [{**each, "phases": {"collate": 0.1}} for each in ARRIVED]
    assert summary(tmp_path, lines).steps.phases == pytest.approx({"collate": 0.1})


def test_ends_that_the_workload_told_are_as_good_as_seconds(tmp_path: Path) -> None:
    found = summary(tmp_path, [line(n) for n in range(1, 21)])
    assert found.steps.median_seconds == pytest.approx(0.5)
    assert found.steps.samples_per_second == pytest.approx(BATCH / 0.5)
    assert found.efficiency.mfu.value is not None


def test_ends_of_several_steps_together_give_rates_and_no_step_time(tmp_path: Path) -> None:
    lines = [line(n, count=5, samples=5 * BATCH) for n in (5, 10, 15, 20)]
    found = summary(tmp_path, lines)
    assert found.steps.median_seconds is None
    assert found.steps.samples_per_second == pytest.approx(BATCH / 0.5)
    assert found.efficiency.mfu.value is not None


def test_the_end_after_a_gap_in_the_numbers_is_no_step_time(tmp_path: Path) -> None:
    found = summary(tmp_path, [line(n, end=n * 0.5) for n in (1, 2, 12, 13)])
    assert (found.steps.min_seconds, found.steps.max_seconds) == pytest.approx((0.5, 0.5))


def test_a_first_line_without_seconds_takes_no_time_and_no_samples(tmp_path: Path) -> None:
    lines = [line(1, told=False), *(line(n, told=False, seconds=0.5) for n in range(2, 21))]
    assert summary(tmp_path, lines).steps.samples_per_second == pytest.approx(BATCH / 0.5)


def test_no_line_has_no_throughput() -> None:
    assert mean_rate([], samples_of, told=True) is None


def test_lines_of_every_tenth_step_give_no_rate_that_is_a_tenth(tmp_path: Path) -> None:
    found = summary(tmp_path, [line(n, end=n * 0.01) for n in range(10, 210, 10)])
    assert rates_of(found)[0][0] is None
    assert LEAPS in (found.steps.reason, rates_of(found)[2][1])


def test_lines_of_every_tenth_step_with_its_seconds_give_rates(tmp_path: Path) -> None:
    steps = [line(n, end=n * 0.01, seconds=0.01) for n in range(10, 210, 10)]
    assert summary(tmp_path, steps).steps.samples_per_second == pytest.approx(BATCH / 0.01)


def test_a_first_step_whose_start_nobody_told_is_not_a_timed_one(tmp_path: Path) -> None:
    lines = [line(n) for n in range(1, 21)]
    found = summary(tmp_path, lines)
    assert found.steps.count == 19
    assert found.window.seconds == pytest.approx(19 * (found.steps.mean_seconds or 0))
    assert found.steps.first_loss == lines[0]["loss"]
