"""Energy by the counter within two of its updates, by the integral of power without one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from gpuwatch.analysis.comparison.comparison_row import energy_notes
from gpuwatch.analysis.hardware.energy import Energy, energy_of
from gpuwatch.analysis.samples.channels import Samples
from gpuwatch.analysis.samples.window import Window, first_timed
from gpuwatch.analysis.summary.summary import DeviceSummary, Summary
from gpuwatch.core.metrics import Kind, Method
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.rows import ChannelRow
from tests.analysis.sessions import CPU, GPU, OTHER_GPU, SECOND, WARM, Make, step_line, summary

ENERGY, POWER = ("gpu0", "hw.gpu.energy"), ("gpu0", "hw.gpu.power")
UPDATE = 0.1
STARTED, IDLE, BUSY = 8.0, 120.0, 560.0
"""A training of 560 W begins after eight idle seconds, and its end is that of the load."""


def stair(watts: float, held: bool = True) -> list[float | None]:
    """A counter that is read with every second sample, half a second apart; ``held``: each value
    stands for the next sample too, as a thread of its own had read it up to half a second ago."""
    return [1000 + watts * (n // 2) if held or n % 2 == 0 else None for n in range(128)]


def joules(t: float, seconds: float) -> float:
    """What the counter would be at ``t`` without updates."""
    busy = min(max(t - STARTED, 0.0), seconds)
    return 5e6 + IDLE * (t - busy) + BUSY * busy


def measured(seconds: float, phase: float, held: bool = False) -> Energy:
    """Energy of a training of ``seconds``: a counter read every second, power every half.

    ``phase``: 0 to 1, where in a second the readings are, and in an update. ``held``: read at
    another moment than the samples, which repeat it.
    """
    samples: list[tuple[int, float]] = []
    power: list[tuple[int, float]] = []
    last = -math.inf
    value = 0.0
    for n in range(int(2 * (STARTED + seconds + 3))):
        t = n / 2 + phase / 2 + 0.05 * math.sin(n)
        moment = t - 0.3 if held else t
        if t - last >= 0.75:
            renewed = math.floor(moment / UPDATE - phase) * UPDATE + phase * UPDATE
            last, value = t, joules(renewed, seconds)
            samples.append((round(t * SECOND), value))
        elif held:
            samples.append((round(t * SECOND), value))
        since = power[-1][0] / SECOND if power else t - 0.5
        watts = (joules(t, seconds) - joules(since, seconds)) / (t - since)
        power.append((round(t * SECOND), watts))
    window = Window("timed steps", round(STARTED * SECOND), round((STARTED + seconds) * SECOND))
    both = [_channel(ENERGY[1], samples), _channel(POWER[1], power)]
    return energy_of(both, ["gpu0"], window, 20, 64.0)


def _channel(metric: str, values: Sequence[tuple[int, float]]) -> Samples:
    kind = Kind.COUNTER if metric == ENERGY[1] else Kind.GAUGE
    method = Method.MEASURED
    row = ChannelRow(1, "gpu0", metric, "J", kind.value, method, "test", None, method)
    return Samples(row, values)


def within(source: str) -> float:
    """The error that a source states, as a share, and half of its last digit."""
    return float(source.partition("±")[2].partition(" %")[0]) / 100 + 0.0005


@pytest.mark.parametrize("phase", np.linspace(0.02, 0.98, 13))
@pytest.mark.parametrize("seconds", [3.2, 4.33, 10.0, 40.0])
def test_the_counter_is_within_two_updates_whatever_the_load_is_before_and_after(
    seconds: float, phase: float
) -> None:
    total = measured(seconds, phase).gpu
    assert total.source.startswith("energy counter (test), ±")
    assert within(total.source) == pytest.approx(2 * UPDATE / seconds, abs=1.1e-3)
    assert total.value == pytest.approx(BUSY * seconds, rel=within(total.source))


def test_ten_seconds_are_within_two_per_cent_and_short_ones_say_that_they_are() -> None:
    told = "energy counter (test), ±2.0 %: dated to 0.1 s of 10 s"
    assert measured(10.0, 0.5).gpu.source == told
    assert "±6.2 %: dated to 0.1 s of 3.2 s" in measured(3.2, 0.5).gpu.source


@pytest.mark.parametrize("phase", np.linspace(0.02, 0.98, 13))
@pytest.mark.parametrize("seconds", [2.2, 4.33, 40.0])
def test_a_counter_that_is_dated_by_a_later_sample_gives_way_in_short_windows(
    seconds: float, phase: float
) -> None:
    found = measured(seconds, phase, held=True).gpu
    assert found.value == pytest.approx(BUSY * seconds, rel=within(found.source))
    assert ("energy counter (" in found.source) is (seconds > 20)


def test_without_timed_steps_it_is_that_of_the_window_and_none_of_a_step() -> None:
    power = [(n * SECOND, BUSY) for n in range(11)]
    window = Window("whole run", 0, 10 * SECOND)
    found = energy_of([_channel(POWER[1], power)], ["gpu0"], window, None, 64.0)
    assert found.gpu.value == pytest.approx(BUSY * 10)
    assert found.gpu_per_step.reason == found.gpu_per_sample.reason == "no timed step was sampled"


def test_power_that_varies_makes_the_ends_less_certain(make: Make) -> None:
    """A window of ten seconds from 5 on; readings at 5 to 15, then at 5.5 to 14.5."""
    grown = np.cumsum([0.0, *(900.0 if n % 8 < 4 else 100.0 for n in range(63))]).tolist()
    whole = [value if n % 2 == 0 else None for n, value in enumerate(grown)]
    found = make(gauges={ENERGY: whole}).efficiency.energy.gpu
    assert "±2.0 %" in found.source, "nothing lies outside"
    part = [value if n % 2 else None for n, value in enumerate(grown)]
    found = make(gauges={ENERGY: part}).efficiency.energy.gpu
    assert found.value == pytest.approx(grown[30] - grown[10], rel=within(found.source))
    assert within(found.source) > 0.05


def of_gpu(found: Summary, name: str) -> DeviceSummary:
    return next(device for device in found.devices if device.id == name)


@pytest.mark.parametrize("held", [True, False])
def test_energy_is_one_figure_everywhere(make: Make, held: bool) -> None:
    gauges = {ENERGY: stair(600, held), POWER: 590.0}
    found = make(step_seconds=2.0, gauges=gauges)
    total = found.efficiency.energy.gpu
    assert total.value == pytest.approx(24000) and "energy counter" in total.source
    for statistic in (found.metrics[ENERGY[1]], of_gpu(found, "gpu0").metrics[ENERGY[1]]):
        assert (statistic.max, statistic.source) == (total.value, total.source)


def test_energy_per_step_and_sample_come_from_the_counter(make: Make) -> None:
    found = make(
        counters={ENERGY: 600.0}, gauges={POWER: 1.0, ("cpu", "hw.cpu.power"): 100.0}
    ).efficiency.energy
    assert found.gpu_per_step.value == pytest.approx(300)
    assert found.gpu_per_sample.value == pytest.approx(300 / 64)
    assert "energy counter" in found.gpu.source
    assert found.cpu_per_step.value == pytest.approx(50)


def test_without_the_counter_power_is_integrated_and_said_so(make: Make) -> None:
    found = make(gauges={POWER: 500.0}).efficiency.energy
    assert found.gpu_per_step.value == pytest.approx(250)
    assert found.gpu.source.startswith("integral of power over time (test), ±0 %: ")
    assert found.gpu.source.endswith("; energy counter: not sampled")


def test_a_warm_up_that_is_told_late_takes_nothing_from_the_energy(tmp_path: Path) -> None:
    """It ends 0.2 s after the timed steps began by their own times, as a GPU's steps may."""
    steps = [step_line(n) for n in range(1, 21)]
    steps[0].update(warmup=True, monotonic_ns=WARM * SECOND + SECOND * 7 // 10)
    found = summary(tmp_path / "a.gpuwatch", gauges={POWER: 500.0}, steps=steps)
    assert found.efficiency.energy.gpu_per_step.value == pytest.approx(250)
    with SessionReader(tmp_path / "a.gpuwatch") as reader:
        assert first_timed(reader) == (WARM * SECOND + SECOND // 2, 2)


def test_several_gpus_are_taken_in_one_way(make: Make) -> None:
    """One without a counter: both by power, and never a sum of two ways."""
    gauges = {ENERGY: stair(600), POWER: 500.0, ("gpu1", POWER[1]): 100.0}
    found = make(devices=(GPU, OTHER_GPU, CPU), gauges=gauges)
    gpu = found.efficiency.energy.gpu
    assert gpu.value == pytest.approx(6000) and "sum over 2 GPUs" in gpu.source
    assert gpu.source.endswith("energy counter: gpu1 not sampled")


def test_windows_of_few_readings_take_the_integral_of_power_with_its_scatter(make: Make) -> None:
    found = make(step_seconds=0.09, gauges={ENERGY: stair(600, held=False), POWER: [500.0, 700.0]})
    total = found.efficiency.energy.gpu
    assert "integral of power" in total.source and "by the scatter of 3 samples" in total.source
    assert total.source.endswith("energy counter: too few readings in 1.8 s")
    assert total.value == pytest.approx(1080, rel=0.1) and total.method is Method.MEASURED
    assert found.metrics[ENERGY[1]].max == total.value


def test_a_counter_that_stands_still_is_none_and_power_takes_its_place(make: Make) -> None:
    found = make(gauges={ENERGY: 1000.0, POWER: 547.0})
    total = found.efficiency.energy.gpu
    assert total.value == pytest.approx(5470) and total.method is Method.MEASURED
    assert total.source.startswith("integral of power over time")
    assert total.source.endswith("energy counter: did not move in 10 s")
    table = found.metrics[ENERGY[1]]
    assert (table.max, table.source, table.mean) == (total.value, total.source, None)


def test_a_counter_that_was_reset_says_nothing(make: Make) -> None:
    reset = [600.0 * (n if n < 20 else n - 20) for n in range(64)]
    found = make(gauges={ENERGY: reset}).efficiency.energy.gpu
    assert found.value is None and "energy counter: was reset" in (found.reason or "")


@pytest.mark.parametrize(
    ("gauges", "why"),
    [
        ({ENERGY: 1000.0}, "did not move in 10 s; integral of power over time: not sampled"),
        ({ENERGY: 1000.0, POWER: 0.0}, "integral of power over time: was 0 in 10 s"),
    ],
)
def test_energy_is_never_nothing(
    make: Make, gauges: dict[tuple[str, str], float], why: str
) -> None:
    found = make(gauges=gauges)
    for figure in (found.efficiency.energy.gpu_per_step, found.metrics[ENERGY[1]]):
        assert figure.method is Method.UNAVAILABLE
        assert why in (figure.reason or "")


def test_two_gpus_of_one_kind_of_energy_are_added_up_in_the_table_too(make: Make) -> None:
    gauges = {ENERGY: stair(600, held=False), ("gpu1", ENERGY[1]): stair(300, held=False)}
    found = make(devices=(GPU, OTHER_GPU, CPU), gauges=gauges)
    assert found.metrics[ENERGY[1]].max == found.efficiency.energy.gpu.value
    assert of_gpu(found, "gpu1").metrics[ENERGY[1]].max == pytest.approx(3000)


def test_no_energy_is_told_of_less_than_a_second_in_any_table(make: Make) -> None:
    gauges = {ENERGY: stair(600), POWER: 600.0}
    found = make(step_seconds=0.04, interval=0.1, gauges=gauges)
    assert found.window.seconds == pytest.approx(0.8)
    assert found.efficiency.energy.gpu.value is None
    assert "needs at least a second" in (found.efficiency.energy.gpu.reason or "")
    assert found.metrics[ENERGY[1]].max is None and found.metrics[ENERGY[1]].reason


def test_energies_had_in_different_ways_are_told_beside_their_ratio(make: Make) -> None:
    gauges = {ENERGY: stair(600, held=False), POWER: 600.0}
    first = make(gauges=gauges)
    second = make(gauges=gauges, step_seconds=0.09)
    assert energy_notes([first, first]) == []
    (note,) = energy_notes([first, second])
    assert "energy was measured in different ways" in note
