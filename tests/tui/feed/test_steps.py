"""What the live screen says of step lines whose rates are in doubt."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.analysis.samples.step_lines import LEAPS, UNTIMED
from gpuwatch.analysis.summary.listing import listing
from gpuwatch.analysis.summary.summary import summarise
from gpuwatch.core.metrics import Method
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.study.summary import NO_LOSS
from gpuwatch.session.writing.statements import meta
from gpuwatch.tui.feed.collector import Collector
from gpuwatch.tui.feed.snapshot import Gauge, Snapshot, View
from gpuwatch.tui.feed.steps import Steps, time_left
from gpuwatch.tui.live.rows import workload_rows
from tests.analysis import sessions
from tests.analysis.sessions import BATCH, SECOND, WARM
from tests.tui.sessions import put

from ..snapshots_of import snapshot_of


def snapshot(path: Path, steps: list[dict[str, Any]]) -> Snapshot:
    return snapshot_of(sessions.record(path, steps=steps), View(roofline=True))


def flops(found: Snapshot) -> Gauge:
    return next(gauge for gauge in found.gauges if gauge.key == "flops")


def lines(ranks: int, **more: Any) -> list[dict[str, Any]]:
    return [
        {"event": "step", "step": n, "samples": BATCH, "loss": 1.0, "total_steps": 20, **more}
        for n in range(1, 21)
        for _ in range(ranks)
    ]


def told(ranks: int) -> list[dict[str, Any]]:
    return [
        {**line, **sessions.step_line(line["step"], phases={"forward": 0.4})}
        for line in lines(ranks)
    ]


@pytest.mark.parametrize("late", [0.25, math.nan])
def test_a_loss_that_is_printed_after_the_last_step_is_the_newest(
    tmp_path: Path, late: float
) -> None:
    path = sessions.record(tmp_path / "a.gpuwatch", steps=told(1))
    put(path, meta("after_steps", {"loss": late, "t": 1}))
    found = snapshot_of(path, View())
    assert found.work is not None and (found.work.loss == late or math.isnan(late))
    assert any("(since step 20" in text for text in found.warnings) == math.isnan(late)
    with SessionReader(path) as reader:
        assert listing(reader).failure == ("" if late == 0.25 else NO_LOSS)


def test_one_process_has_its_figures(tmp_path: Path) -> None:
    found = snapshot(tmp_path / "a.gpuwatch", told(1))
    assert found.work is not None and found.work.step == 20
    assert found.work.throughput.value == pytest.approx(BATCH / 0.5)
    assert flops(found).reading.value == pytest.approx(4e12)
    assert [alert for alert in found.alerts if alert.kind == "steps"] == []


def test_time_between_steps_and_evaluations_count_as_in_show_and_in_lists(tmp_path: Path) -> None:
    steps = told(1)
    for line in steps:  # 0.1 s between steps, and an evaluation of 2 s after the tenth
        late = line["step"] * 0.1 + (2.0 if line["step"] > 10 else 0.0)
        line["monotonic_ns"] += round(late * SECOND)
    steps[10]["phases"] = {"forward": 0.2, "other": 0.3, "evaluation": 2.0}
    path = sessions.record(tmp_path / "a.gpuwatch", steps=steps, step_seconds=1.0)
    found = snapshot_of(path)
    with SessionReader(path) as reader:
        summary, listed = summarise(reader), listing(reader)
    rate = BATCH / ((20 * 0.5 + 19 * 0.1) / 20)
    assert found.work is not None and found.work.throughput.value == pytest.approx(rate)
    assert summary.steps.samples_per_second == pytest.approx(rate)
    assert listed.samples_per_second == pytest.approx(rate)
    flop = 4e12 * 0.5 * rate / BATCH
    assert flops(found).reading.value == pytest.approx(flop)
    assert summary.efficiency.flop_rate.value == pytest.approx(flop)


def test_of_two_ranks_no_figure_is_shown_but_why(tmp_path: Path) -> None:
    found = snapshot(tmp_path / "a.gpuwatch", told(2))
    work, gauge = found.work, flops(found)
    assert work is not None and work.reports
    assert (work.step, work.total, work.step_seconds, work.loss) == (None, None, None, None)
    assert (gauge.reading.value, set(gauge.history)) == (None, {None})
    assert found.shares is None
    (alert,) = [alert for alert in found.alerts if alert.kind == "steps"]
    assert "step 1 came after step 1" in alert.text and "let only rank 0 print" in alert.text
    assert work.throughput.reason == gauge.reading.reason == alert.text
    shown = "".join(text for row in workload_rows(found, 120, 2) for text, _ in row.spans())
    assert "of several processes" in shown
    assert found.roofline is not None and found.roofline.steady.points == ()


def test_of_lines_of_every_tenth_step_no_rate_is_shown_that_is_a_tenth(tmp_path: Path) -> None:
    steps = told(1)
    for line in steps:
        line["step"] *= 10
        del line["seconds"], line["phases"]
    found = snapshot(tmp_path / "a.gpuwatch", steps)
    assert found.work is not None and found.work.throughput.reason == LEAPS
    assert (flops(found).reading.value, flops(found).reading.reason) == (None, LEAPS)


def test_of_lines_that_tell_no_time_progress_is_shown_and_no_rate(tmp_path: Path) -> None:
    found = snapshot(tmp_path / "a.gpuwatch", lines(1))
    work, gauge = found.work, flops(found)
    assert work is not None
    assert (work.step, work.total, work.loss) == (20, 20, 1.0)
    assert (work.throughput.value, work.step_seconds) == (None, None)
    assert (gauge.reading.method, gauge.reading.reason) == (Method.UNAVAILABLE, UNTIMED)
    assert [alert.text for alert in found.alerts if alert.kind == "steps"] == [UNTIMED]


def test_lines_of_several_steps_that_tell_their_ends_have_no_mean_by_arrival(
    tmp_path: Path,
) -> None:
    steps = told(1)
    for line in steps:
        line |= {"step": 5 * line["step"], "count": 5, "seconds": None}
    for ends, there in (("told", False), ("arrived", True)):
        extra = {"step_ends": ends}
        work = snapshot_of(sessions.record(tmp_path / ends, steps=steps, extra=extra)).work
        assert work is not None and (work.arrival_seconds is not None) is there


def test_partial_batches_that_tell_their_times_have_no_mean_by_arrival(tmp_path: Path) -> None:
    steps = [{**line, "partial": [line["step"]]} for line in told(1)]
    extra = {"step_ends": "arrived"}
    work = snapshot_of(sessions.record(tmp_path / "a.gpuwatch", steps=steps, extra=extra)).work
    assert work is not None and (work.step_seconds, work.arrival_seconds) == (None, None)


def test_a_mean_by_arrival_is_told_with_what_it_is_by(tmp_path: Path) -> None:
    found = snapshot(tmp_path / "a.gpuwatch", lines(1))
    assert found.work is not None
    found = replace(found, work=replace(found.work, arrival_seconds=0.05))
    text = "".join(text for row in workload_rows(found, 80, 0) for text, _ in row.spans())
    assert "mean step 50.0 ms, by the arrival of lines  steps/s 20  " in text
    assert "median" not in text


def test_the_time_left_counts_evaluations_where_the_steps_tell_them(tmp_path: Path) -> None:
    evaluated = [
        {**line, "phases": {"forward": 0.4, "evaluation": 3.0 * (line["step"] % 10 == 5)}}
        for line in told(1)
    ]
    for steps, seconds in ((told(1), 50.0), (evaluated, 50.0 + 10 * 3.0)):
        path = sessions.record(tmp_path / f"{seconds}.gpuwatch", steps=steps)
        with SessionReader(path) as reader:
            rows = reader.steps()
        assert time_left(100, 0.5, rows) == pytest.approx(seconds)
        assert time_left(100, None, rows) == pytest.approx(50.0), "as the lines arrived"
    assert time_left(100, None, rows[:1]) is None


def test_a_warm_up_line_that_ends_after_the_first_timed_step_began_is_no_timed_one(
    tmp_path: Path,
) -> None:
    steps = told(1)
    steps[0].update(warmup=True, monotonic_ns=steps[0]["monotonic_ns"] + SECOND // 10)
    for line in steps[1:]:  # a gap before the first timed step would be in the rate
        line["monotonic_ns"] += SECOND // 20
    path = sessions.record(tmp_path / "a.gpuwatch", steps=steps)
    with SessionReader(path) as reader:
        summary = summarise(reader)
    found = flops(snapshot_of(path, View())).reading
    assert found.value == pytest.approx(summary.efficiency.flop_rate.value)


def test_a_mean_far_from_the_median_stands_beside_it(tmp_path: Path) -> None:
    def shown(seconds: float) -> str:
        steps = told(1)
        steps[10]["seconds"] = seconds
        found = snapshot(tmp_path / f"{seconds}.gpuwatch", steps)
        return " ".join(text for row in workload_rows(found, 120, 0) for text, _ in row.spans())

    assert "mean" not in shown(0.6)
    assert "500 ms, mean 575 ms" in shown(2.0)


def test_the_step_time_now_is_the_mean_of_the_last_two_seconds(tmp_path: Path) -> None:
    steps, end = told(1), WARM
    for line in steps:
        line["seconds"] = 0.75 if line["step"] % 2 else 0.25
        end += line["seconds"]
        line["monotonic_ns"] = round(end * SECOND)
    with SessionReader(sessions.record(tmp_path / "a.gpuwatch", steps=steps)) as reader:
        found = Steps(reader)
        found.update(reader.meta())
        assert found.last_seconds() == pytest.approx(0.5, abs=0.1)


def test_a_loss_that_is_no_number_any_more_is_a_warning(tmp_path: Path) -> None:
    steps = told(1)
    assert not snapshot(tmp_path / "a.gpuwatch", steps).alerts
    for line in steps[11:]:
        line["loss"] = math.nan
    (alert,) = snapshot(tmp_path / "b.gpuwatch", steps).alerts
    assert alert.text == "the loss is nan (since step 12 or before)"
    warm = [{"event": "step", "step": step, "warmup": True, "loss": 1 / step} for step in (1, 2)]
    warm[-1]["loss"] = math.nan
    (alert,) = snapshot(tmp_path / "c.gpuwatch", [*warm, *steps[11:]]).alerts
    assert alert.text == "the loss is nan (since warm-up step 2 or before)"


def test_a_loss_that_is_a_number_again_is_a_warning_and_a_note(tmp_path: Path) -> None:
    steps = told(1)
    for n in (4, 11, 12, 13):
        steps[n]["loss"] = math.nan
    path = tmp_path / "a.gpuwatch"
    (alert,) = snapshot(path, steps).alerts
    assert alert.text == "the loss was not finite at steps 12 to 14"
    with SessionReader(path) as reader:
        notes = " ".join(summarise(reader).notes)
    assert "the loss was not finite at step 5 (" in notes and alert.text in notes


def test_a_loss_that_is_now_and_then_no_number_gives_few_events(tmp_path: Path) -> None:
    steps = [
        {**line, "step": n, "loss": math.nan if n % 2 else 1.0} for n, line in enumerate(told(3))
    ]
    with SessionReader(sessions.record(tmp_path / "a.gpuwatch", steps=steps)) as reader:
        texts = [row.text for row in reader.events() if row.kind == "loss"]
    assert len(texts) == 20 and texts[-1].endswith("at step 39; later ones are not told")


def test_at_a_moment_after_the_last_step_there_is_no_rate() -> None:
    path = Path(__file__).parents[2] / "data" / "h200" / "train.gpuwatch"
    with SessionReader(path) as reader:
        (last,) = reader.steps(reader.last_step() - 1)
    assert flops(snapshot_of(path, View(at=last.t))).reading.value
    found = flops(snapshot_of(path, View(at=last.t + SECOND // 2))).reading
    assert (found.value, found.reason) == (None, "after the steps")


def test_figures_of_what_turns_out_to_be_an_evaluation_are_forgotten(tmp_path: Path) -> None:
    path = sessions.record(tmp_path / "a.gpuwatch", steps=told(1))
    with SessionReader(path) as reader:
        collector = Collector(reader)
        collector.update()
        before = collector.snapshot(View()).work
        put(path, meta("evaluated_until", round((WARM + 6) * SECOND)))
        collector.update()
        after = collector.snapshot(View()).work
    assert before is not None and after is not None
    assert (before.step_count, after.step_count) == (20, 8)
