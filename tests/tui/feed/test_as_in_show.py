"""A figure is the same on the screen of a run that is over, in ``gpuwatch show`` and in lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuwatch.analysis.summary.listing import listing
from gpuwatch.analysis.summary.summary import summarise
from gpuwatch.core.metrics import CATALOGUE, Kind
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.tui.feed.snapshot import TIMED, View
from tests.analysis import sessions
from tests.analysis.sessions import BATCH, SECOND, WARM

from ..snapshots_of import snapshot_of

RECORDED = Path(__file__).parents[2] / "data" / "h200"


@pytest.mark.parametrize("name", ["copy", "product", "train", "fp8"])
def test_every_figure_of_a_recorded_card(name: str) -> None:
    path = RECORDED / f"{name}.gpuwatch"
    found = snapshot_of(path, View(seconds=TIMED, roofline=True))
    with SessionReader(path) as reader:
        summary, listed = summarise(reader), listing(reader)
    of, steps, work = summary.efficiency, summary.steps, found.work
    gauges = {each.key: each.reading for each in found.gauges}
    assert work is not None and found.roofline is not None
    pairs = {
        "utilization": (gauges["utilization"].value, summary.metrics["hw.gpu.utilization"].mean),
        "bandwidth": (gauges["bandwidth"].value, of.bandwidth.value),
        "FLOP/s": (gauges["flops"].value, of.flop_rate.value),
        "step": (work.step_seconds, steps.median_seconds),
        "step in lists": (listed.step_median_seconds, steps.median_seconds),
        "throughput": (work.throughput.value, steps.samples_per_second),
        "throughput in lists": (listed.samples_per_second, steps.samples_per_second),
        "MFU in lists": (listed.mfu, of.mfu.value),
        "loss": (work.loss, steps.last_loss),
        "elapsed in lists": (listed.elapsed_seconds, summary.timing.real_seconds),
        "elapsed in the title": (found.seconds, round(listed.elapsed_seconds or 0)),
    }
    for device in found.devices:
        for metric, reading in device.readings.items():
            described = summary.metrics[metric]
            if described.unit.startswith("{") or CATALOGUE[metric].kind is not Kind.GAUGE:
                continue
            memory = described.unit == "By"
            assert reading.peak == (memory and reading.value is not None), metric
            shown = described.max if memory else described.mean
            pairs[f"{metric} of {device.row.id}"] = reading.value, shown
            if metric == "process.gpu.memory.usage":
                pairs["peak GPU memory"] = reading.value, summary.peak_gpu_memory.value
    phases = {name: seconds for name, seconds in steps.phases.items() if seconds}
    for phase, share in () if found.shares is None else found.shares.parts:
        pairs[phase] = share, phases[phase] / sum(phases.values())
    assert len(pairs) > 30 and pairs["peak GPU memory"][0]
    for figure, (one, other) in pairs.items():
        assert one == (None if other is None else pytest.approx(other)), figure
    assert gauges["flops"].value is not None
    assert found.roofline.steady.verdict.text == of.roofline.verdict.text


@pytest.mark.parametrize("every", [1, 10], ids=["every step", "every tenth"])
def test_the_rates_and_the_step_time_of_very_many_lines_with_time_between(
    tmp_path: Path, every: int
) -> None:
    steps, end = [], WARM
    for n in range(1, 5_401):  # the first half is twice as slow
        seconds = 0.004 if n <= 2_700 else 0.002
        end += seconds + 0.001
        told = {"seconds": seconds, "samples": BATCH, "monotonic_ns": round(end * SECOND)}
        told["phases"] = {"forward": 0.001, "other": seconds - 0.001}
        steps.append({"event": "step", "step": n * every, **told})
    path = sessions.record(tmp_path / "a.gpuwatch", steps=steps, step_seconds=1.2)
    found = snapshot_of(path, View(seconds=TIMED))
    with SessionReader(path) as reader:
        summary = summarise(reader)
    assert found.work is not None
    rate = 5_400 / (2_700 * 0.006 + (0.001 * 5_399 if every == 1 else 0.0))
    assert found.work.throughput.value == pytest.approx(BATCH * rate, rel=1e-3)
    assert summary.steps.samples_per_second == pytest.approx(BATCH * rate, rel=1e-3)
    assert found.work.step_seconds == pytest.approx(summary.steps.median_seconds)
    phases, mean = summary.steps.phases, summary.steps.mean_seconds
    assert found.shares is not None and found.shares.seconds == pytest.approx(mean)
    assert dict(found.shares.parts)["forward"] == pytest.approx(phases["forward"] / mean, rel=1e-3)
    flops = next(each.reading for each in found.gauges if each.key == "flops")
    assert flops.value == pytest.approx(summary.efficiency.flop_rate.value, rel=1e-3)


def test_what_the_pipes_executed_at_most_where_the_clock_rises_with_the_work(
    tmp_path: Path,
) -> None:
    """The mean of clock times activity is not that of the clock times that of the activity."""
    working = [0.0, 0.0, 0.5, 1.0]
    gauges = {("gpu0", f"hw.gpu.{name}.activity"): working for name in ("tensor", "fp32")}
    gauges["gpu0", "hw.gpu.clock.sm"] = [345e6 + share * 1635e6 for share in working]
    path = sessions.record(tmp_path / "a.gpuwatch", gauges=gauges, steps=[], count={})
    gauge = next(each for each in snapshot_of(path).gauges if each.key == "flops")
    with SessionReader(path) as reader:
        most = summarise(reader).efficiency.most_executed
    assert gauge.title == "Executed FLOP/s" and most.value is not None
    assert gauge.reading.value == pytest.approx(most.value, rel=0.01)


@pytest.mark.parametrize("waited", [0.15, None])
def test_what_bounds_a_run_that_is_shorter_than_ten_samples(
    tmp_path: Path, waited: float | None
) -> None:
    path = sessions.record(
        tmp_path / "a.gpuwatch",
        step_seconds=0.17,  # neither end of the steps is at a sample
        interval=1.0,
        devices=((*sessions.CPU[:4], {"core.logical.count": 2}), sessions.WORKLOAD),
        run={"device": "cpu", "dtype": "float32"},
        gauges={("cpu", "hw.cpu.utilization"): 1.0},
        counters={
            ("workload", "process.cpu.time"): 0.03,
            **({("workload", "process.cpu.wait"): waited} if waited else {}),
        },
        phases={"forward": 0.01, "backward": 0.01, "optimizer": 0.01, "other": 0.14},
    )
    with SessionReader(path) as reader:
        shown = summarise(reader).efficiency.roofline.verdict.text
    expected = "the program waited at least 82 %" if waited else "82 % of a step is outside"
    assert expected in shown
    found = snapshot_of(path, View(roofline=True))
    assert found.roofline is not None and found.roofline.steady.verdict.text == shown
    assert found.bound == shown.replace(" what bounds the run", "", 1)


def test_a_run_without_steps_is_bound_by_nothing_that_its_start_shows(tmp_path: Path) -> None:
    path = sessions.record(
        tmp_path / "a.gpuwatch", steps=[], gauges={("gpu0", "hw.gpu.utilization"): 0.05}
    )
    found = snapshot_of(path, View(roofline=True)).roofline
    with SessionReader(path) as reader:
        shown = summarise(reader).efficiency.roofline.verdict
    assert found is not None
    assert found.steady.verdict.text == shown.text and shown.text.startswith("cannot tell")
