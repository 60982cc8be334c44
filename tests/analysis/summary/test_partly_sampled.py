"""A mean of a part of the window's samples says so beside means of all of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.analysis.comparison.side_by_side import compare
from gpuwatch.analysis.samples.window import Window
from gpuwatch.analysis.statistics.description import Statistic, describe
from gpuwatch.analysis.summary.load import partly_sampled
from gpuwatch.analysis.summary.missing import missing_notes
from gpuwatch.analysis.summary.summary import Summary, summarise
from gpuwatch.core.metrics import Method
from gpuwatch.session.reading.reader import SessionReader
from tests.analysis import sessions
from tests.analysis.recorded_studies import run


def _of(coverage: float | None) -> Statistic:
    known = describe([1.0, 2.0], unit="1", method=Method.MEASURED, source="", reason="")
    return replace(known, coverage=coverage)


@pytest.fixture
def session(tmp_path: Path) -> Summary:
    with SessionReader(run(tmp_path / "01.gpuwatch")) as reader:
        return summarise(reader)


def _with(session: Summary, kind: str, **coverage: float | None) -> Summary:
    metrics = {f"hw.{name.replace('_', '.')}": _of(share) for name, share in coverage.items()}
    return replace(session, metrics=metrics, window=Window(kind, 0, 10**10))


@pytest.mark.parametrize("kind", ["timed steps", "whole run"])
def test_any_metric_that_is_known_for_less_than_the_others_is_named(
    session: Summary, kind: str
) -> None:
    of = _with(session, kind, gpu_utilization=0.98, gpu_power=14 / 42, gpu_energy=None)
    note = f"GPU power: samples cover only 33 % of the {kind}"
    assert partly_sampled([of]) == (note,)


def test_what_was_read_once_is_not_known_for_no_part(session: Summary) -> None:
    once = _with(session, "whole run", gpu_power=0.0, cpu_utilization=1.0)
    (note,) = partly_sampled([once])
    assert note == "GPU power: samples cover less than 0.1 % of the whole run"
    assert not partly_sampled([replace(once, seconds=1.2, interval_seconds=0.5)]), "none could"
    runs = [_with(session, "timed steps", gpu_power=share) for share in (0.0, 0.49)]
    assert partly_sampled(runs) == (
        "GPU power: samples cover at most 49 % of the timed steps in 2 of 2 runs",
    )


def test_each_metric_has_its_own_share_and_number_of_runs(session: Summary) -> None:
    runs = [
        _with(session, "timed steps", cpu_utilization=share, gpu_power=power)
        for share, power in ((0.5, 1.0), (0.7, 0.8), (1.0, 1.0))
    ]
    assert partly_sampled(runs) == (
        "CPU utilization: samples cover only 50 to 70 % of the timed steps in 2 of 3 runs",
        "GPU power: samples cover only 80 % of the timed steps in 1 of 3 runs",
    )
    of = _with(session, "timed steps", cpu_utilization=0.7, gpu_power=0.7, gpu_utilization=0.81)
    (every,) = partly_sampled([of])
    assert "GPU utilization: samples cover only 70 to 81 % of the timed steps" in every
    (one,) = partly_sampled([of], {"hw.gpu.utilization"})
    assert one == "GPU utilization: samples cover only 81 % of the timed steps", "of what is shown"


def test_the_ends_of_a_short_run_that_no_sample_covers_are_no_news(session: Summary) -> None:
    of = {"gpu_utilization": 0.5, "cpu_utilization": 0.5}
    assert partly_sampled([_with(session, "whole run", **of)]) == ()
    (note,) = partly_sampled([_with(session, "timed steps", **of)])
    assert "only 50 % of the timed steps" in note


def test_the_start_of_a_recorded_machine_is_no_gap(session: Summary) -> None:
    machine = replace(session, workload={"kind": "machine"}, seconds=3.0, interval_seconds=0.5)
    begun = _with(machine, "whole run", cpu_utilization=0.67, memory_usage=1.0)
    assert partly_sampled([begun]) == ()
    assert partly_sampled([replace(begun, seconds=60.0)]) != ()


def test_a_gpu_that_never_had_it_is_no_gap_but_told_by_name(tmp_path: Path) -> None:
    bandwidth = "hw.gpu.memory.bandwidth"
    gauges = {("gpu0", bandwidth): 1e9, ("gpu1", bandwidth): None}
    found = sessions.summary(
        tmp_path / "a.gpuwatch", devices=(sessions.GPU, sessions.OTHER_GPU), gauges=gauges
    )
    assert found.metrics[bandwidth].coverage == pytest.approx(1)
    assert partly_sampled([found]) == ()
    (told,) = (each for each in missing_notes([found]) if "of gpu1" in each)
    assert told == "unavailable: GPU memory bandwidth of gpu1: not supported"


def test_each_gpu_lacks_only_what_it_never_had(tmp_path: Path) -> None:
    temperature, power = "hw.gpu.temperature", "hw.gpu.power"
    gauges = {
        ("gpu0", temperature): None,
        ("gpu1", temperature): 60.0,
        ("gpu0", power): 400.0,
        ("gpu1", power): None,
    }
    found = sessions.summary(
        tmp_path / "a.gpuwatch", devices=(sessions.GPU, sessions.OTHER_GPU), gauges=gauges
    )
    assert [each for each in missing_notes([found]) if " of gpu" in each] == [
        "unavailable: GPU temperature of gpu0: not supported",
        "unavailable: GPU power of gpu1: not supported",
    ]


@pytest.mark.parametrize("had", [6, 11])
def test_a_gpu_that_fell_out_before_the_steps_is_a_gap(tmp_path: Path, had: int) -> None:
    gauges = {
        ("gpu0", "hw.gpu.power"): 400.0,
        ("gpu1", "hw.gpu.power"): [*[100.0] * had, *[None] * 60],
    }
    found = sessions.summary(
        tmp_path / "a.gpuwatch", devices=(sessions.GPU, sessions.OTHER_GPU), gauges=gauges
    )
    assert partly_sampled([found]) == (
        "GPU power: samples cover less than 0.1 % of the timed steps",
    )


def test_a_rate_that_is_of_before_the_window_is_not_its_maximum(tmp_path: Path) -> None:
    """The sample at the start of the first timed step is of what was before it, as an import."""
    before, within = [9e11] * 11, [1e9] * 40
    gauges = {("gpu0", "hw.gpu.memory.bandwidth"): [*before, *within]}
    found = sessions.summary(tmp_path / "a.gpuwatch", gauges=gauges)
    assert found.metrics["hw.gpu.memory.bandwidth"].max == 1e9


def test_a_counter_that_was_last_read_before_the_end_is_not_told_as_of_all(tmp_path: Path) -> None:
    """10 s of steps at 100 B/s, of a program that ends with them."""

    def read_for(seconds: float) -> Summary:
        readings = [100.0 * n / 2 for n in range(round((5 + seconds) * 2) + 1)]
        gauges = {("workload", "process.io.write"): [*readings, *[None] * 40]}
        devices = (("workload", "workload", "io.py", None, {}),)
        path = tmp_path / f"{seconds}.gpuwatch"
        return sessions.summary(path, devices=devices, gauges=gauges)

    whole, most, half = (read_for(seconds) for seconds in (10, 9.5, 5))
    written = [each.metrics["process.io.write"] for each in (whole, most, half)]
    assert [each.max for each in written] == pytest.approx([1000, 950, 500])
    assert [each.method.value for each in written] == ["measured", "bound", "bound"]
    assert [each.coverage for each in written] == [None, 0.95, 0.5]
    assert written[2].per_second(10) == pytest.approx(100)
    (row,) = [each for each in compare([whole, half]).rows if each.name == "process.io.write"]
    assert (row.bound(1), row.ratios) == ("at least", (1, None))
    assert partly_sampled([most]) == ()
    assert partly_sampled([half]) == (
        "process I/O write: samples cover only 50 % of the timed steps",
    )


def test_what_a_lost_run_counted_up_to_its_last_sample_is_not_told_as_of_all(
    tmp_path: Path,
) -> None:
    devices = (("workload", "workload", "io.py", None, {}),)

    def written(name: str, **extra: object) -> Statistic:
        found = sessions.summary(
            tmp_path / name,
            devices=devices,
            counters={("workload", "process.io.write"): 100.0},
            steps=[],
            extra=extra,
        )
        assert partly_sampled([found]) == ()
        return found.metrics["process.io.write"]

    whole, lost = written("whole.gpuwatch", closed={"t": 17 * 10**9}), written("lost.gpuwatch")
    assert whole.max == lost.max == pytest.approx(1650)
    assert (whole.method.value, lost.method.value) == ("measured", "bound")
    assert lost.source.endswith("at least: between its first reading in the window and its last")
    assert lost.per_second(16.5) == pytest.approx(100)
