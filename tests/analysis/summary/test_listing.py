"""A session's row in the list: read cheaply, and with the figures of ``gpuwatch show``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpuwatch.analysis.summary.listing import ListedSession, elapsed, listing
from gpuwatch.analysis.summary.summary import summarise
from gpuwatch.session.reading.reader import SessionReader
from tests.analysis.sessions import CPU, GPU, OTHER_GPU, record, summary

GIB = 1024**3
OWN, IN_USE = "process.gpu.memory.usage", "hw.gpu.memory.usage"


def listed(path: Path) -> ListedSession:
    with SessionReader(path) as reader:
        return listing(reader)


@pytest.mark.parametrize("devices", [(GPU, CPU), (GPU, OTHER_GPU, CPU)])
def test_mfu_is_that_of_show(tmp_path: Path, devices: Any) -> None:
    path = tmp_path / "a.gpuwatch"
    shown, row = summary(path, devices=devices).efficiency, listed(path)
    for name in ("mfu", "mfu_at_maximum_clock"):
        value = getattr(shown, name).value
        assert value is not None and 0 < value < 1
        assert getattr(row, name) == pytest.approx(value)


@pytest.mark.parametrize(
    ("devices", "told"),
    [
        ((CPU,), "CPU"),
        ((GPU, CPU), "H100 80GB HBM3"),
        ((GPU, OTHER_GPU, CPU), "2 x H100 80GB HBM3"),
    ],
)
def test_devices_are_those_that_the_run_used(tmp_path: Path, devices: Any, told: str) -> None:
    assert listed(record(tmp_path / "a.gpuwatch", devices=devices)).device == told


def test_mfu_is_unknown_without_a_count_a_data_type_or_a_gpu(tmp_path: Path) -> None:
    uncounted = record(tmp_path / "a.gpuwatch", count={"flop_per_step": None})
    untyped = record(tmp_path / "b.gpuwatch", run={"dtype": None})
    on_cpu = record(tmp_path / "c.gpuwatch", devices=(CPU,), run={"device": "cpu"})
    assert [listed(path).mfu for path in (uncounted, untyped, on_cpu)] == [None] * 3


def test_peak_memory_is_what_the_runs_processes_held_at_most(tmp_path: Path) -> None:
    gauges = {
        ("workload", OWN): [None, 1.0 * GIB, 3.0 * GIB, 2.0 * GIB],
        ("gpu0", IN_USE): 70.0 * GIB,
    }
    found = listed(record(tmp_path / "a.gpuwatch", gauges=gauges))
    assert found.peak_gpu_memory_bytes == 3 * GIB
    assert found.peak_gpu_memory_method == "measured"


@pytest.mark.parametrize("interval", [0.5, 0.02])
def test_peak_memory_is_that_of_the_timed_steps_as_in_show(tmp_path: Path, interval: float) -> None:
    """Neither what the start held nor a profile after the steps."""
    outside, at_most = [0, 46], {6: 2.0, 25: 5.0, 44: 3.0}
    held = [GIB * at_most.get(n, 1.0) for n in range(47)]
    for second in outside:
        held[second] = 9.0 * GIB
    each = [value for value in held for _ in range(round(1 / interval))]
    path = record(
        tmp_path / "a.gpuwatch",
        gauges={("workload", OWN): each},
        interval=interval,
        step_seconds=2.0,
        devices=(GPU, CPU, ("workload", "workload", "workload", None, {})),
    )
    with SessionReader(path) as reader:
        assert summarise(reader).metrics[OWN].max == 5 * GIB
    assert listed(path).peak_gpu_memory_bytes == 5 * GIB


@pytest.mark.parametrize("own", [None, 0.0])
def test_where_the_driver_does_not_tell_it_is_at_most_what_was_in_use(
    tmp_path: Path, own: float | None
) -> None:
    gauges = {
        ("workload", OWN): own,
        ("gpu0", IN_USE): [5.0 * GIB, 7.0 * GIB],
        ("gpu1", IN_USE): 2.0 * GIB,
    }
    path = record(tmp_path / "a.gpuwatch", devices=(GPU, OTHER_GPU, CPU), gauges=gauges)
    found = listed(path)
    assert found.peak_gpu_memory_bytes == 9 * GIB
    assert found.peak_gpu_memory_method == "bound"


def test_peak_memory_is_unknown_without_a_gpu_or_a_sample(tmp_path: Path) -> None:
    on_cpu = record(tmp_path / "a.gpuwatch", devices=(CPU,), gauges={("workload", OWN): 0.0})
    unsampled = record(tmp_path / "b.gpuwatch", gauges={("gpu0", IN_USE): None})
    for path in (on_cpu, unsampled):
        found = listed(path)
        assert found.peak_gpu_memory_bytes is None
        assert found.peak_gpu_memory_method == "unavailable"


def test_a_study_takes_from_its_first_start_to_its_last_end() -> None:
    runs = [("2026-01-01T00:00:00+00:00", 60.0), ("2026-01-01T00:04:00+00:00", 81.0), ("", 5.0)]
    assert elapsed(runs) == 321
    assert elapsed([("2026-01-01T00:00:00+00:00", None)]) is None
