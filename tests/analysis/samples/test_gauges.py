"""Curves of a run: where they begin, how they are thinned, what they know of steps."""

from __future__ import annotations

import math
import sqlite3
from pathlib import Path

import pytest

from gpuwatch.analysis.samples.gauges import LOSS, POINTS, RunSeries, points_for, run_series
from gpuwatch.core.metrics import Method
from gpuwatch.session.reading.reader import SessionReader
from tests.analysis.sessions import CPU, GPU, OTHER_GPU, SECOND, STEPS, WARM, record, step_line
from tests.session.samples import fill

UTILIZATION = "hw.gpu.utilization"


def series(path: Path, points: int = POINTS) -> RunSeries:
    with SessionReader(path) as reader:
        return run_series(reader, points)


def test_time_counts_from_the_start_of_the_first_timed_step(tmp_path: Path) -> None:
    found = series(record(tmp_path / "a.gpuwatch", gauges={("gpu0", UTILIZATION): 0.5}))
    assert found.zero == "first timed step"
    assert found.seconds[0] == -WARM and found.seconds[1] == 0.5 - WARM
    assert found.merged == 1
    assert set(found.metrics[UTILIZATION].values) == {0.5}
    assert found.metrics[UTILIZATION].method is Method.MEASURED


def test_steps_are_counted_between_step_lines_in_proportion_to_the_time(tmp_path: Path) -> None:
    """Steps take half a second; samples come every quarter."""
    found = series(record(tmp_path / "a.gpuwatch", interval=0.25))
    by_time = dict(zip(found.seconds, found.steps, strict=True))
    assert by_time[-0.25] is None
    assert by_time[0.0] == 0 and by_time[0.25] == 0.5 and by_time[5.0] == 10
    assert by_time[STEPS * 0.5] == STEPS
    assert by_time[STEPS * 0.5 + 0.25] is None


def test_warm_up_steps_are_not_counted(tmp_path: Path) -> None:
    lines = [step_line(step, 1.0, step, warmup=step <= 2) for step in range(1, 6)]
    found = series(record(tmp_path / "a.gpuwatch", steps=lines))
    assert found.seconds[0] == -2.0
    by_time = dict(zip(found.seconds, found.steps, strict=True))
    assert by_time[-1.0] is None and by_time[1.0] == 1 and by_time[3.0] == 3


def test_without_steps_time_counts_from_the_start(tmp_path: Path) -> None:
    found = series(record(tmp_path / "a.gpuwatch", steps=[], gauges={("gpu0", UTILIZATION): 0.5}))
    assert found.zero == "start of the recording"
    assert found.seconds[0] == 0.0 and set(found.steps) == {None}


def test_thinning_keeps_the_mean_and_says_how_many_samples_make_a_point(tmp_path: Path) -> None:
    """34 samples in 17 s: 0.2 and 0.6 in turn."""
    file = record(tmp_path / "a.gpuwatch", gauges={("gpu0", UTILIZATION): [0.2, 0.6]})
    found = series(file, 17)
    assert len(found.seconds) == 17 and found.merged == 2
    assert found.metrics[UTILIZATION].values == pytest.approx([0.4] * 17)
    assert found.seconds[0] == 0.25 - WARM


def test_an_unknown_sample_is_left_out_of_a_mean_and_never_a_zero(tmp_path: Path) -> None:
    gauge = [0.6, None, None, None]
    file = record(tmp_path / "a.gpuwatch", gauges={("gpu0", UTILIZATION): gauge})
    assert series(file).metrics[UTILIZATION].values[:5] == (0.6, None, None, None, 0.6)
    assert series(file, 17).metrics[UTILIZATION].values[:3] == (0.6, None, 0.6)


def test_a_gauge_that_was_never_known_has_no_curve(tmp_path: Path) -> None:
    file = record(tmp_path / "a.gpuwatch", gauges={("gpu0", UTILIZATION): None}, count={})
    assert UTILIZATION not in series(file).metrics


def test_several_devices_are_averaged_and_counted(tmp_path: Path) -> None:
    gauges = {("gpu0", UTILIZATION): 0.2, ("gpu1", UTILIZATION): 0.6}
    file = record(tmp_path / "a.gpuwatch", gauges=gauges, devices=(GPU, OTHER_GPU, CPU))
    gauge = series(file).metrics[UTILIZATION]
    assert gauge.devices == 2 and gauge.values[0] == pytest.approx(0.4)


def test_rates_are_work_over_time_and_counted(tmp_path: Path) -> None:
    """2 TFLOP and 64 samples in each step of half a second."""
    found = series(record(tmp_path / "a.gpuwatch"))
    flop, samples = found.metrics["gpuwatch.flop.rate"], found.metrics["gpuwatch.throughput"]
    middle = found.seconds.index(5.0)
    assert flop.values[middle] == pytest.approx(4e12)
    assert samples.values[middle] == pytest.approx(128.0)
    assert flop.values[0] is None and flop.method is Method.COUNTED


def test_a_loss_is_at_the_points_that_it_was_told_before_and_nowhere_else(tmp_path: Path) -> None:
    """Steps of half a second, samples every quarter; every fifth step tells its loss."""
    told = {5: 2.0, 10: 1.0, 15: math.nan, 20: 0.5}
    steps = [
        step_line(step, **({"loss": told[step]} if step in told else {}))
        for step in range(1, STEPS + 1)
    ]
    file = record(tmp_path / "a.gpuwatch", steps=steps, interval=0.25)
    found = series(file)
    losses = dict(zip(found.seconds, found.metrics[LOSS].values, strict=True))
    known = {second: value for second, value in losses.items() if value is not None}
    assert [*known] == [2.5, 5.0, 7.5, 10.0] and math.isnan(known.pop(7.5))
    assert known == {2.5: 2.0, 5.0: 1.0, 10.0: 0.5}
    none, mean, lost = series(file, 3).metrics[LOSS].values
    assert (none, mean) == (None, 1.5) and lost is not None and math.isnan(lost)
    with sqlite3.connect(file) as db:
        db.execute("UPDATE step SET loss = NULL")
    db.close()
    assert LOSS not in series(file).metrics


def test_a_page_of_many_runs_gets_fewer_points_of_each() -> None:
    assert points_for(24) == POINTS
    assert points_for(1) == POINTS and points_for(0) == POINTS
    assert [points_for(runs) * runs <= 8400 for runs in (28, 60, 240)] == [True] * 3
    assert points_for(10_000) == 20


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 hours at two samples a second and ten step lines a second."""
    path = tmp_path_factory.mktemp("day") / "day.gpuwatch"
    record(path, step_seconds=0.1, gauges={("gpu0", UTILIZATION): 0.5})
    ticks, lines = 24 * 3600 * 2, 24 * 3600 * 10
    fill(path, ((n * SECOND // 2, [0.5]) for n in range(ticks)))
    with sqlite3.connect(path) as db:
        db.executemany(
            "INSERT INTO step (n, t, step, count, warmup, samples, seconds) "
            "SELECT ?1, ?2, ?1, 1, 0, samples, seconds FROM step WHERE n = 1",
            ((n, 5 * SECOND + n * SECOND // 10) for n in range(STEPS + 1, lines)),
        )
    db.close()
    return path


@pytest.mark.usefixtures("long_recording")
def test_a_day_is_read_in_as_many_points_as_an_hour(day: Path) -> None:
    found = series(day)
    assert len(found.seconds) == POINTS and found.merged == pytest.approx(580, abs=20)


def test_a_day_has_its_steps_and_its_rate(day: Path) -> None:
    found = series(day)
    middle = POINTS // 2
    assert found.steps[middle] == pytest.approx(10 * found.seconds[middle], rel=1e-3)
    rate = found.metrics["gpuwatch.throughput"]
    assert rate.values[middle] == pytest.approx(640.0, rel=1e-3)
    assert "301 step lines" in rate.source
