"""A mean of a part of the window's samples says so beside means of all of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuwatch.analysis.samples.window import Window
from gpuwatch.analysis.statistics.description import Statistic, describe
from gpuwatch.analysis.summary.metrics import partly_sampled
from gpuwatch.core.metrics import Method


def _of(coverage: float | None) -> Statistic:
    known = describe([1.0, 2.0], unit="1", method=Method.MEASURED, source="", reason="")
    return replace(known, coverage=coverage)


@pytest.mark.parametrize("kind", ["timed steps", "whole run"])
def test_any_metric_that_is_known_for_less_than_the_others_is_named(kind: str) -> None:
    metrics = {
        "hw.gpu.utilization": _of(0.98),
        "process.gpu.utilization": _of(14 / 42),
        "hw.gpu.energy": _of(None),
    }
    assert partly_sampled(metrics, Window(kind, 0, 10**10)) == [
        f"process GPU utilization: sampled over only 33 % of the {kind}, the part that statistics "
        "cover"
    ]


def test_the_ends_of_a_short_run_that_no_sample_covers_are_no_news() -> None:
    metrics = {"hw.gpu.utilization": _of(0.5), "hw.cpu.utilization": _of(0.5)}
    assert partly_sampled(metrics, Window("whole run", 0, 10**9)) == []
    (note,) = partly_sampled(metrics, Window("timed steps", 0, 10**9))
    assert "only 50 % of the timed steps" in note
