"""Sessions recorded on a real NVIDIA H200 (2026-11-26), against what is known of their work.

``copy`` and ``product`` are ``benchmarks/known_work.py``; ``train`` is a training program of a user
(ResNet-50, bfloat16) that only the hook reports of; ``fp8`` is ``transformer-lm --dtype fp8``.
docs/validation.md has the same figures by ``ncu`` and by other runs.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuwatch.analysis.summary.summary import Summary, summarise
from gpuwatch.session.reading.reader import SessionReader

RECORDED = Path(__file__).parents[2] / "data" / "h200"


def recorded(name: str) -> Summary:
    with SessionReader(RECORDED / f"{name}.gpuwatch") as reader:
        return summarise(reader)


def mean(summary: Summary, metric: str) -> float:
    value = summary.metrics[metric].mean
    assert value is not None
    return value


@pytest.mark.parametrize("name", ["copy", "product", "train", "fp8"])
def test_the_peak_is_that_of_the_bus_that_the_card_has(name: str) -> None:
    """6,016 of 6,144 bits: NVIDIA's data sheet has 4.8 TB/s."""
    (gpu,) = [each for each in recorded(name).devices if each.kind == "gpu"]
    assert gpu.name == "NVIDIA H200"
    shares = {
        each.ceiling.kind: each.ceiling for each in recorded(name).efficiency.bandwidth_shares
    }
    assert shares["peak"].value == pytest.approx(4.8143e12, rel=1e-4)
    assert shares["sheet"].value == 4.8e12


def test_bandwidth_of_a_copy() -> None:
    summary = recorded("copy")
    moved = mean(summary, "hw.gpu.memory.bandwidth")
    assert moved == pytest.approx(mean(summary, "gpuwatch.bytes.rate"), rel=0.02)
    assert summary.metrics["hw.gpu.memory.bandwidth"].method == "measured"
    assert mean(summary, "hw.gpu.utilization") > 0.95
    assert mean(summary, "hw.gpu.tensor.activity") < 1e-4


def test_a_product_of_a_known_number_of_flop() -> None:
    summary = recorded("product")
    assert mean(summary, "gpuwatch.flop.rate") == pytest.approx(662e12, rel=0.01)
    assert mean(summary, "hw.gpu.tensor.activity") > 0.9
    assert mean(summary, "hw.gpu.throttle.power") > 0.9
    kinds = {finding.kind: finding for finding in summary.efficiency.findings}
    assert "pipes" not in kinds, "its data type is unknown, and so is what the pipes allow"
    assert kinds["clocks"].warning


@pytest.mark.parametrize("name", ["copy", "product"])
def test_both_ways_to_the_energy(name: str) -> None:
    """The counter was read once a second, and dated by the next sample, of 10 Hz."""
    summary = recorded(name)
    energy = summary.efficiency.energy.gpu
    by_power = mean(summary, "hw.gpu.power") * summary.window.seconds
    assert energy.value == pytest.approx(by_power, rel=0.02)
    assert "energy counter (" in energy.source


def test_an_unmodified_program_has_its_steps_phases_and_mfu() -> None:
    summary = recorded("train")
    steps = summary.steps
    assert steps.mean_seconds is not None
    assert sum(steps.phases.values()) == pytest.approx(steps.mean_seconds, rel=0.01)
    assert summary.efficiency.data_type == "bfloat16"
    flop = summary.count["flop_per_step"]
    rate = flop / steps.mean_seconds  # type: ignore[operator]
    assert summary.efficiency.mfu.value == pytest.approx(rate / 989.4e12, rel=0.01)
    assert summary.efficiency.roofline.verdict.bound == "host"
    (pipes,) = [found for found in summary.efficiency.findings if found.kind == "pipes"]
    assert not pipes.warning, "what was counted fits what the tensor pipes did"


def test_eight_bits_have_their_own_peak() -> None:
    summary = recorded("fp8")
    assert summary.efficiency.data_type == "fp8"
    assert summary.efficiency.mfu.value == pytest.approx(0.032, rel=0.02)
    assert all(not found.warning for found in summary.efficiency.findings if found.kind == "pipes")
