"""A figure is the same number in every view of a recording, and never a made-up one."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.analysis.comparison.side_by_side import compare
from gpuwatch.analysis.samples import source
from gpuwatch.analysis.summary.listing import ListedSession, listing
from gpuwatch.analysis.summary.summary import Summary, summarise
from gpuwatch.core.metrics import Method
from gpuwatch.core.units import NS
from gpuwatch.report import json as as_json
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.tui.compare.curves import LOSS, STEP_TIME, read_curves
from gpuwatch.tui.feed.snapshot import Snapshot, View
from tests.analysis.sessions import CPU, GPU, OTHER_GPU, record
from tests.tui.snapshots_of import snapshot_of

RECORDED = Path(__file__).parent / "data" / "h200"
GIB = 2.0**30
WORKLOAD: tuple[str, str, str, None, dict[str, Any]] = (
    "workload", "workload", "workload", None, {},
)  # fmt: skip
Make = Callable[[Path], Path]


def training(path: Path, **options: Any) -> Path:
    """Steps of a GPU with a start before them, and a profile behind them that looks otherwise."""
    ticks = round(1 / options.get("interval", 0.5))

    def course(start: float, *timed: float, behind: float) -> list[float]:
        """A value for each tick: five seconds, ten of timed steps, and what follows."""
        steps = [timed[n % len(timed)] for n in range(10 * ticks)]
        return [*[start] * (5 * ticks + 1), *steps, *[behind] * 10 * ticks]

    gauges = {
        ("gpu0", "hw.gpu.utilization"): course(0.1, 0.97, 0.99, 0.88, behind=0.2),
        ("gpu0", "hw.gpu.memory.bandwidth"): course(1e9, 1.1e12, 1.3e12, behind=4e12),
        ("gpu0", "hw.gpu.memory.usage"): course(1 * GIB, 8 * GIB, behind=60 * GIB),
        ("gpu0", "hw.gpu.sm.activity"): course(0.0, 0.7, 0.8, behind=0.1),
        ("workload", "process.gpu.memory.usage"): course(0.0, 7 * GIB, behind=16 * GIB),
        ("workload", "process.memory.usage"): course(1 * GIB, 4.7 * GIB, behind=7 * GIB),
        ("cpu", "hw.cpu.utilization"): course(0.5, 0.2, 0.3, behind=1.0),
    }
    given = {"devices": (GPU, CPU, WORKLOAD), "gauges": gauges, **options}
    return record(path, **given)


def two_gpus(path: Path) -> Path:
    busy = {(gpu, "hw.gpu.utilization"): [0.9, 0.8, 0.7] for gpu in ("gpu0", "gpu1")}
    return record(path, devices=(GPU, OTHER_GPU, CPU), gauges=busy)


def without_steps(path: Path) -> Path:
    return training(path, steps=())


def many_steps(path: Path) -> Path:
    """3,000 step lines in ten seconds, of which the last third takes longer."""
    taken = [0.003] * 2000 + [0.004] * 1000
    ends = accumulate(taken, initial=5.0)
    steps = [
        {"step": n, "seconds": own, "samples": 8, "monotonic_ns": round((end + own) * NS)}
        for n, (own, end) in enumerate(zip(taken, ends, strict=False), 1)
    ]
    return training(path, steps=[{"event": "step", **step} for step in steps])


KINDS: dict[str, Make] = {
    "training": training,
    "often sampled": lambda path: training(path, interval=0.05),
    "two GPUs": two_gpus,
    "without steps": without_steps,
    "with many steps": many_steps,
    "on a CPU": lambda path: record(
        path,
        devices=(CPU,),
        run={"device": "cpu"},
        gauges={("cpu", "hw.cpu.utilization"): [0.2, 0.9]},
    ),
}
KINDS |= {
    name: lambda _, name=name: RECORDED / f"{name}.gpuwatch"  # type: ignore[misc]
    for name in ("copy", "product", "train", "fp8")
}


def summary_of(path: Path) -> Summary:
    with SessionReader(path) as reader:
        return summarise(reader)


def alike(*values: float | None) -> None:
    first, *others = values
    for other in others:
        assert other == (None if first is None else pytest.approx(first, rel=1e-9))


@pytest.mark.parametrize("kind", KINDS)
def test_a_figure_is_the_same_in_every_view(kind: str, tmp_path: Path) -> None:
    path = KINDS[kind](tmp_path / "a.gpuwatch")
    shown = summary_of(path)
    with SessionReader(path) as reader:
        row = listing(reader)
    replayed = snapshot_of(path, View(seconds=None, roofline=True))
    curves = read_curves(path).curves
    rows = {(row.group, row.name): row.values[0] for row in compare([shown]).rows}
    found = json.loads(as_json.dumps(as_json.summary(shown)))
    several = len([gpu for gpu in shown.devices if gpu.kind == "gpu" and gpu.used]) > 1

    for name, statistic in shown.metrics.items():
        alike(statistic.mean, found["metrics"][name]["mean"])
        if ("mean", name) in rows:
            alike(statistic.mean, rows["mean", name])
        if name in curves and name != "gpuwatch.throughput":
            alike(statistic.mean, curves[name].figure)
    alike(shown.metrics["process.gpu.memory.usage"].max, own_peak(row))
    told = (shown.peak_gpu_memory.value, shown.peak_gpu_memory.method.value)
    assert told == (row.peak_gpu_memory_bytes, row.peak_gpu_memory_method)

    gauges = {gauge.key: gauge for gauge in replayed.gauges}
    if shown.window.kind == "timed steps" and not several:
        of_device = "hw.cpu.utilization" if kind == "on a CPU" else "hw.gpu.utilization"
        alike(shown.metrics[of_device].mean, gauges["utilization"].reading.value)
    if gauges["bandwidth"].reading.method is Method.MEASURED and row.steps:
        moved = shown.efficiency.bandwidth.value
        alike(shown.metrics["hw.gpu.memory.bandwidth"].mean, moved)
        alike(moved, gauges["bandwidth"].reading.value)
    flop = shown.efficiency.flop_rate.value
    alike(flop, shown.metrics["gpuwatch.flop.rate"].mean, gauges["flops"].reading.value)
    mfus = {name: reading.value for name, reading in gauges["flops"].mfus}
    alike(shown.efficiency.mfu.value, row.mfu, mfus["MFU"])
    alike(shown.efficiency.mfu_at_maximum_clock.value, row.mfu_at_maximum_clock)
    if shown.efficiency.mfu.value is not None:
        alike(shown.efficiency.mfu.value, gauges["flops"].share)
    roofline_is_that_of(shown, replayed)

    steps, work = shown.steps, replayed.work
    assert work is not None
    alike(steps.median_seconds, row.step_median_seconds, work.step_seconds)
    alike(steps.samples_per_second, row.samples_per_second, work.throughput.value)
    if STEP_TIME in curves:
        alike(steps.mean_seconds, curves[STEP_TIME].figure)
    if LOSS in curves:
        alike(steps.last_loss, curves[LOSS].figure)


def own_peak(row: ListedSession) -> float | None:
    """The peak of the run's own memory, not the bound that stands in for it."""
    return (
        row.peak_gpu_memory_bytes if row.peak_gpu_memory_method == Method.MEASURED.value else None
    )


def roofline_is_that_of(shown: Summary, replayed: Snapshot) -> None:
    assert replayed.roofline is not None
    steady, whole = replayed.roofline.steady, shown.efficiency.roofline
    assert [point.bytes_kind for point in steady.points] == [
        point.bytes_kind for point in whole.points
    ]
    for here, there in zip(steady.points, whole.points, strict=True):
        alike(there.intensity, here.intensity)
        alike(there.rate, here.rate)
    assert steady.verdict.bound == whole.verdict.bound


@pytest.mark.parametrize("kind", KINDS)
def test_no_mean_is_above_its_maximum_and_no_zero_is_made_up(kind: str, tmp_path: Path) -> None:
    path = KINDS[kind](tmp_path / "a.gpuwatch")
    summaries = [summary_of(path)]
    with SessionReader(path) as reader:
        told = {channel.metric for channel in reader.channels()}
    for summary in summaries:
        for metrics in (summary.metrics, *(device.metrics for device in summary.devices)):
            for name, of in metrics.items():
                values = (of.mean, of.p50, of.p95)
                if of.max is None:
                    assert values == (None, None, None) and of.method is Method.UNAVAILABLE
                    assert of.reason, name
                    continue
                assert of.count > 0 and (name in told or name.startswith("gpuwatch."))
                for value in values:
                    assert value is not None and value <= of.max * (1 + 1e-12), name
        steps = summary.steps
        if steps.mean_seconds is not None and steps.phases:
            assert sum(steps.phases.values()) <= steps.mean_seconds * 1.01


def test_a_long_session_has_the_figures_of_all_its_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = {("gpu0", "hw.gpu.utilization"): [0.97, 0.99, 0.88], ("gpu0", "hw.gpu.power"): [4.0, 7]}
    path = record(tmp_path / "a.gpuwatch", step_seconds=3.0, interval=0.25, gauges=busy)
    with SessionReader(path) as reader:
        exact = summarise(reader)
        monkeypatch.setattr(source, "MOST_RATES", 200)
        short = summarise(reader)
    assert short.notes != exact.notes
    for name, statistic in exact.metrics.items():
        if statistic.mean is not None:
            assert short.metrics[name].mean == pytest.approx(statistic.mean, rel=1e-3)
            assert short.metrics[name].max == pytest.approx(statistic.max)
    replayed = snapshot_of(path, View(seconds=None))
    utilization = replayed.gauges[0].reading.value
    assert utilization == pytest.approx(exact.metrics["hw.gpu.utilization"].mean, rel=1e-3)
